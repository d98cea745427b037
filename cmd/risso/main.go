// Command risso is the remote-DBA team in one binary.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/rissodb/risso/internal/face/cli"
	"github.com/rissodb/risso/internal/face/cli/screen"
)

func main() {
	// SIGQUIT, which Ctrl-\ sends, would end the program immediately, with settings of a server still changed.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	streams := screen.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	if outputClosed() {
		streams.Out = closed{}
	}
	code := cli.Main(ctx, cli.WipePasswords(os.Args[1:]), streams)
	stop()
	os.Exit(code)
}

// closed is a standard output that takes nothing.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, syscall.EBADF }
