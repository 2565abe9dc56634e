package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"authstack.dev/authstack/internal/cli"
)

// Without a cluster: the real k6 with our output against a server that answers as Authelia's first factor.
func TestTestWithoutACluster(t *testing.T) {
	k6 := filepath.Join(t.TempDir(), "authstack-k6")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", k6, ".")
	build.Dir = filepath.Join(root, "loadtests", "k6")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	var logins atomic.Int64
	status := http.StatusOK
	product := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Username, Password string }
		if r.URL.Path != "/api/firstfactor" || json.NewDecoder(r.Body).Decode(&body) != nil || body.Username != "probe" || body.Password != "canary-of-the-password" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		logins.Add(1)
		http.SetCookie(w, &http.Cookie{Name: "authelia_session", Value: "s", Path: "/"})
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"status":"OK","data":{}}`))
	}))
	t.Cleanup(product.Close)
	t.Setenv("AUTHSTACK_USERNAME", "probe")
	t.Setenv("AUTHSTACK_PASSWORD", "canary-of-the-password")
	t.Setenv("TMPDIR", t.TempDir())
	w := &world{t: t, namespace: "none", problems: &locked{}}
	args := []string{"test", "--url", product.URL, "--host", "login.example.com", "--provider", "authelia", "--provider-version", "4.39.20",
		"--scenario", "Login=60", "--k6", k6}

	got := w.call(t.Context(), append(args, "--objective", "Login:p95<30s")...)
	if got.code != cli.ExitPassed || !strings.Contains(got.out, "local of stack local/login.example.com: PASSED") || logins.Load() < 60 {
		t.Errorf("exit code %d after %d logins: %s\n%s", got.code, logins.Load(), got.err, got.out)
	}
	if missed := w.call(t.Context(), append(args, "--objective", "Login:p95<1us")...); missed.code != cli.ExitFailed {
		t.Errorf("an objective that nobody meets ends with %d: %s", missed.code, missed.err)
	}
	status = http.StatusInternalServerError
	if wrong := w.call(t.Context(), args...); wrong.code != cli.ExitFailed || !strings.Contains(wrong.out, "answered wrongly") {
		t.Errorf("a server that answers 500 ends with %d: %s%s", wrong.code, wrong.err, wrong.out)
	}
	product.Close()
	gone := w.call(t.Context(), args...)
	if gone.code != cli.ExitError || !strings.Contains(gone.out, "no answer from the target in 10 iterations in a row.") {
		t.Errorf("a server that is gone ends with %d: %s%s", gone.code, gone.err, gone.out)
	}
	if all := got.out + w.problems.String() + gone.out; strings.Contains(all, "canary-of-the-password") {
		t.Error("the password is in what the command says")
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) != 0 {
		t.Errorf("files are left behind: %v %v", left, err)
	}
}
