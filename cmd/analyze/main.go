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
