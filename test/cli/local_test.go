package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"authstack.dev/authstack/internal/cli"
	"authstack.dev/authstack/test/k6binary"
)

// expiredCertificate of 127.0.0.1 ended yesterday.
func expiredCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().AddDate(0, -3, 0), NotAfter: time.Now().AddDate(0, 0, -1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Without a cluster: the real k6 with our output against a server that answers as Authelia's first factor.
func TestTestWithoutACluster(t *testing.T) {
	k6 := k6binary.Build(t, root)
	var logins, pause atomic.Int64
	status := http.StatusOK
	product := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Username, Password string }
		if r.URL.Path != "/api/firstfactor" || json.NewDecoder(r.Body).Decode(&body) != nil || body.Username != "probe" || body.Password != "canary-of-the-password" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		logins.Add(1)
		time.Sleep(time.Duration(pause.Load()))
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
	// Repeats, and the one report against the other: from a pause to one many times as long, so that no
	// noise of a busy machine is in the way.
	report := func(name string, each time.Duration) string {
		pause.Store(int64(each))
		defer pause.Store(0)
		path := filepath.Join(t.TempDir(), name+".json")
		said := w.call(t.Context(), "test", "--url", product.URL, "--host", "login.example.com", "--provider", "authelia",
			"--scenario", "Login=10", "--repeats", "3", "--k6", k6, "-o", "json")
		if said.code != cli.ExitPassed {
			t.Fatalf("%s: exit code %d: %s", name, said.code, said.err)
		}
		must(t, os.WriteFile(path, []byte(said.out), 0o600))
		return path
	}
	before, slower := report("before", 20*time.Millisecond), report("slower", 300*time.Millisecond)
	if got := w.call(t.Context(), "compare", before, slower); got.code != cli.ExitFailed || !strings.Contains(got.out, "Login/login p50") {
		t.Errorf("a server that is far slower ends with %d: %s%s", got.code, got.out, got.err)
	}
	if got := w.call(t.Context(), "gate", "-f", before, "--baseline", slower); got.code != cli.ExitPassed {
		t.Errorf("a server that is far faster ends with %d: %s%s", got.code, got.out, got.err)
	}
	status = http.StatusInternalServerError
	if wrong := w.call(t.Context(), args...); wrong.code != cli.ExitFailed || !strings.Contains(wrong.out, "answered wrongly") {
		t.Errorf("a server that answers 500 ends with %d: %s%s", wrong.code, wrong.err, wrong.out)
	}
	product.Close()
	gone := w.call(t.Context(), args...)
	if gone.code != cli.ExitError || !strings.Contains(gone.out, "no answer from the target in 10 iterations in a row, at last: no answer (connection refused).") {
		t.Errorf("a server that is gone ends with %d: %s%s", gone.code, gone.err, gone.out)
	}
	product = httptest.NewUnstartedServer(http.NotFoundHandler())
	product.Config.ErrorLog = log.New(io.Discard, "", 0) // It tells of every handshake that the other side ends.
	product.TLS = &tls.Config{Certificates: []tls.Certificate{expiredCertificate(t)}}
	product.StartTLS()
	defer product.Close()
	args[slices.Index(args, "--url")+1] = product.URL
	untrusted := w.call(t.Context(), args...)
	if untrusted.code != cli.ExitError || !strings.Contains(untrusted.out, "at last: no answer (the certificate has expired or is not yet valid).") {
		t.Errorf("a server whose certificate has expired ends with %d: %s%s", untrusted.code, untrusted.err, untrusted.out)
	}
	if all := got.out + w.problems.String() + gone.out + gone.err + untrusted.out + untrusted.err; strings.Contains(all, "canary-of-the-password") {
		t.Error("the password is in what the command says")
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) != 0 {
		t.Errorf("files are left behind: %v %v", left, err)
	}
}
