package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	rec := fs.String("record", "", "record a sandbox under load into this tick file, and end")
	dur := fs.Duration("for", time.Hour, "how long to record")
	servers := fs.String("servers", "mariadb", "server of the sandbox")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *rec != "" {
		return record(ctx, *rec, *servers, *dur)
	}
	return fmt.Errorf("nothing to do")
}
