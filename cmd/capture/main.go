// Command capture records LLM serving traffic into a trace.
package main

import (
	"context"
	"io"

	"tokentrace/internal/cli"
)

func main() { cli.Main(run) }

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	tool := cli.Tool{
		Name:     "capture",
		Summary:  "records when every streamed token of LLM serving traffic arrived",
		Commands: []cli.Command{pcapCommand()},
	}
	return tool.Run(ctx, cli.Env{Stdin: stdin, Stdout: stdout, Stderr: stderr}, args)
}
