// Command analyze answers questions about a trace of LLM serving traffic.
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
		Name:    "analyze",
		Summary: "answers questions about a trace of LLM serving traffic",
		Commands: []cli.Command{
			reportCommand(), percentilesCommand(), regressCommand(), timelineCommand(), sqlCommand(),
		},
	}
	return tool.Run(ctx, cli.Env{Stdin: stdin, Stdout: stdout, Stderr: stderr}, args)
}
