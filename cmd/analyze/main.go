// Command analyze answers questions about a trace of LLM serving traffic.
package main

import (
	"context"
	"io"

	"tokentrace/internal/cli"
)

func main() { cli.Main(run) }

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	tool := cli.Tool{
		Name:    "analyze",
		Summary: "answers questions about a trace of LLM serving traffic",
		Commands: []cli.Command{
			reportCommand(), percentilesCommand(), regressCommand(), timelineCommand(), sqlCommand(),
		},
	}
	return tool.Run(ctx, cli.Env{Stdin: stdin, Stdout: stdout, Stderr: stderr}, args)
}
