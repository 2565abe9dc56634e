// Command conformance runs the conformance suite against a running authentik or Authelia, double or real, and exits
// 1 when a check fails, 2 when the suite could not run.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"authstack.dev/authstack/hack/doubles/conformance"
)

func main() {
	var o conformance.Options
	flag.StringVar(&o.Product, "product", "", "authentik or authelia")
	flag.StringVar(&o.URL, "url", "", "base URL")
	flag.StringVar(&o.Version, "version", "", "expected version of the product")
	flag.StringVar(&o.Token, "token", os.Getenv("CONFORMANCE_TOKEN"), "authentik: admin API token (or CONFORMANCE_TOKEN)")
	flag.StringVar(&o.DSN, "dsn", os.Getenv("CONFORMANCE_DSN"), "the product's database, to count commits and statements (or CONFORMANCE_DSN)")
	flag.BoolVar(&o.WorkerStopped, "worker-stopped", false, "authentik: no worker runs, count exactly")
	flag.IntVar(&o.Logins, "logins", 5, "how many logins to count")
	flag.StringVar(&o.Username, "username", "", "Authelia: user")
	flag.StringVar(&o.Password, "password", os.Getenv("CONFORMANCE_PASSWORD"), "Authelia: password (or CONFORMANCE_PASSWORD)")
	flag.StringVar(&o.Portal, "portal", "", "Authelia: the portal's host")
	flag.StringVar(&o.OneFactor, "one-factor", "", "Authelia: a host protected with one_factor")
	flag.StringVar(&o.Bypass, "bypass", "", "Authelia: a host with a bypass rule")
	flag.StringVar(&o.Denied, "denied", "", "Authelia: a host whose rule is deny")
	flag.StringVar(&o.ClientID, "client-id", "", "Authelia: a client of OpenID Connect with consent_mode implicit")
	flag.StringVar(&o.ClientSecret, "client-secret", os.Getenv("CONFORMANCE_CLIENT_SECRET"), "Authelia: its secret (or CONFORMANCE_CLIENT_SECRET)")
	flag.StringVar(&o.RedirectURI, "redirect-uri", "", "Authelia: its redirect URI")
	requests := flag.String("requests", "", "authentik: a file for the commits that wait and the rows that are written, request by request, as JSON; needs -dsn and -worker-stopped")
	timeout := flag.Duration("timeout", 5*time.Minute, "for the whole suite")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	if *requests != "" {
		if o.DSN == "" || !o.WorkerStopped {
			fmt.Fprintln(os.Stderr, "-requests needs -dsn and -worker-stopped: tasks of the worker would be counted as the requests'")
			os.Exit(2)
		}
		o.Counted = func(counts []conformance.RequestCount) {
			data, err := json.MarshalIndent(counts, "", "  ")
			if err == nil {
				err = os.WriteFile(*requests, append(data, '\n'), 0o600)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, "writing the counts:", err)
				os.Exit(2)
			}
		}
	}
	checks, err := conformance.Run(ctx, o)
	conformance.Print(os.Stdout, checks)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the suite could not finish:", err)
		os.Exit(2)
	}
	if conformance.Failed(checks) {
		os.Exit(1)
	}
}
