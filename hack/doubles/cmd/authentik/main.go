// Command authentik stands in for authentik where its image cannot be had: `authentik server`, `authentik worker`.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"authstack.dev/authstack/hack/doubles/internal/authentik"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	args := os.Args[1:]
	if len(args) != 1 {
		return fmt.Errorf("usage: authentik server|worker|healthcheck|dump_config|version")
	}
	if args[0] == "version" {
		fmt.Println(authentik.DefaultVersion, "(double)")
		return nil
	}
	cfg, err := authentik.LoadConfig(os.Getenv)
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	switch strings.ToLower(cfg.LogLevel) {
	case "debug", "trace":
		level = slog.LevelDebug
	case "warning", "warn":
		level = slog.LevelWarn
	case "error":
		level = slog.LevelError
	}
	log := slog.New(slog.NewJSONHandler(os.Stdout, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.MessageKey:
			a.Key = "event"
		case slog.TimeKey:
			a.Key = "timestamp"
		case slog.LevelKey:
			a = slog.String("level", strings.ToLower(a.Value.String()))
		}
		return a
	}}))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	switch args[0] {
	case "server", "worker":
		fmt.Printf("{\"event\":\"This is a DOUBLE, not authentik: a stand-in of the AuthStack project\",\"level\":\"warning\",\"double\":true,\"version\":%q,\"role\":%q}\n", cfg.Version, args[0])
		if args[0] == "server" {
			return authentik.RunServer(ctx, cfg, log)
		}
		return authentik.RunWorker(ctx, cfg, log)
	case "healthcheck":
		return cfg.Healthcheck()
	case "dump_config":
		fmt.Println(cfg.Dump())
		return nil
	}
	return fmt.Errorf("%s: the double knows server, worker, healthcheck, dump_config and version", args[0])
}
