//go:build calibration

// Package soak measures for long enough that a server's slowing down is told, with the plugin and the real k6
// (make bench-calibration).
package soak

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"authstack.dev/authstack/internal/cli"
	"authstack.dev/authstack/test/k6binary"
)

// soak is a little longer than the shortest run that drift is looked for in (internal/latency/knee.go).
const soak = 190 * time.Second

// first answers as Authelia's first factor after 30 ms, and after up to as much more at the end of a soak where it slows down.
func first(slowing bool) http.Handler {
	began := time.Now()
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		wait := 30 * time.Millisecond
		if slowing {
			wait += time.Duration(float64(wait) * time.Since(began).Seconds() / soak.Seconds())
		}
		time.Sleep(wait)
		http.SetCookie(w, &http.Cookie{Name: "authelia_session", Value: "s", Path: "/"})
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"status":"OK","data":{}}`)
	})
}

// A server that takes twice as long at the end fails a soak without any objective; one that stays as it is does not.
func TestASoakTellsDrift(t *testing.T) {
	k6 := k6binary.Build(t, "../..")
	t.Setenv("AUTHSTACK_USERNAME", "probe")
	t.Setenv("AUTHSTACK_PASSWORD", "secret")
	for name, want := range map[string]struct {
		slowing bool
		exit    int
		says    string
	}{
		"a server that becomes slower": {true, cli.ExitFailed, "the stack became slower during the run: Login: median"},
		"a server that stays":          {false, cli.ExitPassed, "PASSED"},
	} {
		// Both at once: neither needs more than a part of a processor.
		t.Run("of "+name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(first(want.slowing))
			t.Cleanup(server.Close)
			var out, problems strings.Builder
			app := &cli.App{Name: "authstack", Out: &out, Err: &problems, Poll: time.Second, Now: time.Now}
			code := app.Run(t.Context(), []string{"test", "--url", server.URL, "--host", "login.example.com", "--provider", "authelia",
				"--scenario", fmt.Sprintf("Login=%.0fs", soak.Seconds()), "--k6", k6})
			fmt.Printf("\n%s, %s:\n%s", strings.ToUpper(name), soak, out.String())
			if code != want.exit || !strings.Contains(out.String(), want.says) {
				t.Errorf("exit code %d, want %d and %q\n%s", code, want.exit, want.says, problems.String())
			}
		})
	}
}
