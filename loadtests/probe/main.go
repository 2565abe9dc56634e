// Command authstack-probe measures the volume that it is given, with fio, and the CPU, and prints one
// framed result (internal/probe). It writes to an empty volume only, and leaves it empty.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"authstack.dev/authstack/internal/probe"
)

func main() {
	plan, err := probe.Parse(os.Getenv(probe.PlanVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	result := (&runner{plan: plan, scratch: os.TempDir(), fio: "fio", say: os.Stderr}).run(ctx)
	if err := probe.Write(os.Stdout, result); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
