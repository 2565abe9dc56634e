// Command kubectl-authstack shows, measures and gates AuthStacks. As kubectl-authstack on the PATH it
// is `kubectl authstack`; under the name authstack it works by itself.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"authstack.dev/authstack/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	app := cli.New(filepath.Base(os.Args[0]), os.Stdout, os.Stderr)
	code := app.Run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
