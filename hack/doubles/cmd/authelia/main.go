// Command authelia stands in for Authelia where its image cannot be had.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"authstack.dev/authstack/hack/doubles/internal/authelia"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	files := os.Getenv("X_AUTHELIA_CONFIG")
	filters := os.Getenv("X_AUTHELIA_CONFIG_FILTERS")
	password := ""
	var words []string
	for i := 0; i < len(args); i++ {
		name, value, inline := strings.Cut(args[i], "=")
		switch name {
		case "--config", "-c", "--config.experimental.filters", "--password":
			if !inline {
				if i++; i >= len(args) {
					return fmt.Errorf("flag needs an argument: %s", name)
				}
				value = args[i]
			}
			switch name {
			case "--password":
				password = value
			case "--config", "-c":
				files = value
			default:
				filters = value
			}
		case "--version", "-v":
			fmt.Println("authelia version v" + authelia.Version + " (double)")
			return nil
		default:
			words = append(words, args[i])
		}
	}
	switch strings.Join(words, " ") {
	case "crypto hash generate argon2", "crypto hash generate":
		if password == "" {
			return errors.New("--password is required: the double does not prompt")
		}
		fmt.Println("Digest: " + authelia.Hash(password))
		return nil
	}
	if files == "" {
		files = "/config/configuration.yml"
	}
	cfg, errs := authelia.Load(strings.Split(files, ","), os.Environ(), filters)
	switch strings.Join(words, " ") {
	case "config validate", "validate-config":
		if len(errs) == 0 {
			fmt.Println("Configuration parsed and loaded successfully without errors.")
			return nil
		}
		fmt.Println("Configuration parsed and loaded with errors:")
		for _, e := range errs {
			fmt.Println("\n\t - " + e.Error())
		}
		return errors.New("configuration is not valid")
	case "":
	default:
		return fmt.Errorf("unknown command %q for \"authelia\" (double)", strings.Join(words, " "))
	}
	fmt.Printf("level=warning msg=\"This is a DOUBLE, not Authelia: a stand-in of the AuthStack project\" double=true version=%s\n", authelia.Version)
	if len(errs) > 0 {
		for _, e := range errs {
			fmt.Fprintln(os.Stderr, "Configuration: "+e.Error())
		}
		return errors.New("Can't continue due to the errors loading the configuration")
	}
	level := map[string]slog.Level{"trace": slog.LevelDebug, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}[cfg.Log.Level]
	opts := &slog.HandlerOptions{Level: level}
	log := slog.New(slog.NewTextHandler(os.Stdout, opts))
	if cfg.Log.Format == "json" {
		log = slog.New(slog.NewJSONHandler(os.Stdout, opts))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return authelia.Run(ctx, cfg, log)
}
