// Command capture records LLM serving traffic into a trace.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"tokentrace/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)   // a second signal ends it at once
	signal.Ignore(syscall.SIGPIPE) // a reader that went away is an error like others
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	tool := cli.Tool{
		Name:     "capture",
		Summary:  "records when every streamed token of LLM serving traffic arrived",
		Commands: []cli.Command{pcapCommand()},
	}
	return tool.Run(ctx, cli.Env{Stdin: stdin, Stdout: stdout, Stderr: stderr}, args)
}
