package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/baseline"
	"authstack.dev/authstack/internal/latency"
	"authstack.dev/authstack/internal/report"
	"authstack.dev/authstack/internal/result"
)

// localTarget is an address that the caller names, for a run without a cluster.
type localTarget struct {
	url, host, provider, version, protectedHost, credentials, k6 string
}

func (l *localTarget) flags(flags *pflag.FlagSet) {
	flags.StringVar(&l.url, "url", "", "without a cluster: address of the identity provider, http(s)://host[:port]")
	flags.StringVar(&l.provider, "provider", "", "with --url: authentik or authelia")
	flags.StringVar(&l.version, "provider-version", "", "with --url: its version, for the report")
	flags.StringVar(&l.host, "host", "", "with --url: the name that people use, where the address has another one")
	flags.StringVar(&l.protectedHost, "forward-auth-host", "", "with --url: the application that forward auth is asked for. Default on Authelia: authstack-latency. and the parent domain of the host")
	flags.StringVar(&l.credentials, "credentials", "", `with --url: file with {"users": [{"username": "…", "password": "…"}]}, and for OIDC "oidc": {"clientID": "…", "clientSecret": "…", "redirectURI": "…", "application": "…"}. `+
		"Default: AUTHSTACK_USERNAME and AUTHSTACK_PASSWORD of the environment, and AUTHSTACK_OIDC_CLIENT_ID, _CLIENT_SECRET, _REDIRECT_URI and, for authentik, _APPLICATION")
	flags.StringVar(&l.k6, "k6", "", "with --url: path of k6 with this project's output. Default: authstack-k6 or k6 on the PATH")
}

// target checks what the caller wrote and is what the scripts are told.
func (l *localTarget) target() (latency.Target, error) {
	u, err := url.Parse(l.url)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return latency.Target{}, fmt.Errorf("--url %s: write http(s)://host[:port] without a path, for example https://sso.example.com", l.url)
	}
	if l.provider != latency.Authentik && l.provider != latency.Authelia {
		return latency.Target{}, fmt.Errorf("--provider %q: write authentik or authelia", l.provider)
	}
	host := l.host
	if host == "" {
		host = u.Host
	}
	protected := l.protectedHost
	if protected == "" && l.provider == latency.Authelia {
		protected = latency.ForwardAuthHost("authstack-latency", host)
	}
	return latency.Target{Provider: l.provider, Version: l.version, BaseURL: u.Scheme + "://" + u.Host, Host: host, ForwardAuthHost: protected}, nil
}

// secrets come from a file or the environment.
func (l *localTarget) secrets() (latency.Credentials, error) {
	if l.credentials != "" {
		var file latency.Credentials
		content, err := os.ReadFile(l.credentials)
		if err != nil {
			return file, err
		}
		// The error would quote the file, and with it a password.
		incomplete := func(u latency.User) bool { return u.Username == "" || u.Password == "" }
		if json.Unmarshal(content, &file) != nil || len(file.Users) == 0 || slices.ContainsFunc(file.Users, incomplete) {
			return latency.Credentials{}, fmt.Errorf(`--credentials %s: it must hold {"users": [{"username": "…", "password": "…"}]}`, l.credentials)
		}
		return file, nil
	}
	user := latency.User{Username: os.Getenv("AUTHSTACK_USERNAME"), Password: os.Getenv("AUTHSTACK_PASSWORD")}
	if user.Username == "" || user.Password == "" {
		return latency.Credentials{}, errors.New("set AUTHSTACK_USERNAME and AUTHSTACK_PASSWORD to a user without a second factor, or name a file with --credentials")
	}
	client := latency.OIDCClient{ClientID: os.Getenv("AUTHSTACK_OIDC_CLIENT_ID"), ClientSecret: os.Getenv("AUTHSTACK_OIDC_CLIENT_SECRET"),
		RedirectURI: os.Getenv("AUTHSTACK_OIDC_REDIRECT_URI"), Application: os.Getenv("AUTHSTACK_OIDC_APPLICATION")}
	return latency.Credentials{Users: []latency.User{user}, OIDC: &client}, nil
}

// checkClient refuses a client that the scenario OIDC cannot use.
func checkClient(provider string, client *latency.OIDCClient) error {
	if client == nil || client.ClientID == "" || client.ClientSecret == "" || client.RedirectURI == "" {
		return errors.New("scenario OIDC signs in to a client: set AUTHSTACK_OIDC_CLIENT_ID, AUTHSTACK_OIDC_CLIENT_SECRET and AUTHSTACK_OIDC_REDIRECT_URI, " +
			"or write oidc with clientID, clientSecret and redirectURI into the file of --credentials; in a cluster a LatencyTest of authentik makes one")
	}
	if provider == latency.Authentik && client.Application == "" {
		return errors.New("scenario OIDC checks the issuer of ID tokens, and authentik names it after the application: set AUTHSTACK_OIDC_APPLICATION to its slug, " +
			"or write application beside clientID into the file of --credentials")
	}
	return nil
}

func (l *localTarget) binary() (string, error) {
	names := []string{"authstack-k6", "k6"}
	if l.k6 != "" {
		names = []string{l.k6}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", fmt.Errorf("there is no %s: build k6 with this project's output (make k6 writes bin/authstack-k6) and name it with --k6", strings.Join(names, " and no "))
}

var writeTimeout = regexp.MustCompile(`write timeoutSeconds: (\d+)`)

// testLocally runs the plan with k6 on this machine. Nil without an error: a dry run.
func (a *App) testLocally(ctx context.Context, m *measurement, l *localTarget) (*report.Report, error) {
	target, err := l.target()
	if err != nil {
		return nil, err
	}
	test, err := m.object("local", target.Host)
	if err != nil {
		return nil, err
	}
	test.Name = "local"
	// k6 on this machine has no Job whose time it could have beside that of the command.
	seconds := int32(min(m.timeout.Seconds(), 86_400))
	test.Spec.TimeoutSeconds = &seconds
	plan, err := latency.Resolve(test, l.stack(target))
	if err != nil {
		// The same, in the words of this command.
		text := strings.ReplaceAll(err.Error(), "spec.timeoutSeconds", "--timeout")
		return nil, errors.New(writeTimeout.ReplaceAllString(text, "write --timeout ${1}s"))
	}
	if plan.Asks(v1alpha1.ScenarioForwardAuth) && target.ForwardAuthHost == "" {
		return nil, errors.New("scenario ForwardAuth asks authentik's embedded outpost for an application: " +
			"write --forward-auth-host with the external host of a proxy provider in mode forward_single, or measure in a cluster, where a LatencyTest makes one")
	}
	if m.dryRun {
		_, err := fmt.Fprintf(a.Out, "k6 would run against %s (%s, as %s):\n%s", target.BaseURL, target.Provider, target.Host, describePlan(plan))
		return nil, err
	}
	secret, err := l.secrets()
	if err != nil {
		return nil, err
	}
	if !plan.Asks(v1alpha1.ScenarioOIDC) {
		secret.OIDC = nil
	} else if err := checkClient(target.Provider, secret.OIDC); err != nil {
		return nil, err
	}
	binary, err := l.binary()
	if err != nil {
		return nil, err
	}
	test.Status.StartedAt = &metav1.Time{Time: a.Now()}
	evidence := latency.Evidence{Outside: true}
	var runs []*result.Run
	for range plan.Repeats {
		run, job, err := a.runK6(ctx, binary, plan, target, secret)
		if err != nil {
			return nil, err
		}
		runs, evidence.Jobs = append(runs, run), append(evidence.Jobs, job)
	}
	outcome := latency.Judge(plan, runs, evidence)
	now := metav1.Time{Time: a.Now()}
	status := &test.Status
	status.Verdict, status.CompletedAt = outcome.Verdict, &now
	status.Scenarios, status.Objectives, status.Guards = outcome.Scenarios, outcome.Objectives, outcome.Guards
	status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Message: outcome.Message}}
	status.Subject = &v1alpha1.Subject{Stack: target.Host, IdentityProvider: target.Provider, Version: target.Version}
	return report.New(report.Input{
		Test: test, Run: outcome.Merged, Sizes: baseline.SizesOf(plan), Repeats: baseline.RepeatsOf(plan, runs), Now: a.Now(),
	}), nil
}

// stack stands for the installation behind the address, as far as a plan asks for it.
func (l *localTarget) stack(target latency.Target) *v1alpha1.AuthStack {
	stack := &v1alpha1.AuthStack{Spec: v1alpha1.AuthStackSpec{Host: target.Host}}
	if target.Provider == latency.Authelia {
		stack.Spec.Authelia = &v1alpha1.AutheliaSpec{Version: target.Version}
	} else {
		stack.Spec.Authentik = &v1alpha1.AuthentikSpec{Version: target.Version}
	}
	return stack
}

func describePlan(plan *latency.Plan) string {
	var b strings.Builder
	for _, s := range plan.Scenarios {
		size := ""
		if s.Iterations != nil {
			size = fmt.Sprintf("%d iterations", *s.Iterations)
		}
		if s.Duration != nil {
			size = s.Duration.Duration.String()
		}
		switch {
		case s.RatePerMinute != nil:
			size += fmt.Sprintf(" at %d a minute", *s.RatePerMinute)
		case len(s.RateStepsPerMinute) > 0:
			size += fmt.Sprintf(" at each of %d a minute", s.RateStepsPerMinute)
		}
		fmt.Fprintf(&b, "  %s: %s after %d iterations of warm-up, %d virtual users, connections %s\n", s.Name, size, *s.WarmUpIterations, *s.VirtualUsers, s.Connections)
	}
	for _, o := range plan.Objectives {
		fmt.Fprintf(&b, "  objective: %s/%s p%d below %s\n", o.Scenario, o.Endpoint, o.Percentile, o.Below.Duration)
	}
	return b.String()
}

// localRun is the id that ties the result to the plan.
const localRun = "local"

// runK6 starts k6 in a folder that only this user can read, and that is gone afterwards.
func (a *App) runK6(ctx context.Context, binary string, plan *latency.Plan, target latency.Target, secret latency.Credentials) (*result.Run, latency.JobOutcome, error) {
	job := latency.JobOutcome{Name: localRun}
	folder, err := os.MkdirTemp("", "authstack-")
	if err != nil {
		return nil, job, err
	}
	defer os.RemoveAll(folder)
	run := latency.Local(folder, localRun, plan, target, secret)
	for path, text := range run.Files {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, job, err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, job, err
		}
	}
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, binary, run.Arguments...)
	command.Dir, command.Stdout, command.Stderr = folder, &stdout, &stderr
	command.Env = append(run.Environment, "HOME="+folder, "PATH="+os.Getenv("PATH"))
	for _, passed := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		if value, ok := os.LookupEnv(passed); ok {
			command.Env = append(command.Env, passed+"="+value)
		}
	}
	// k6 ends an interrupted run by itself; a second later it has no more to say.
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	command.WaitDelay = 5 * time.Second
	if err := command.Start(); err != nil {
		return nil, job, fmt.Errorf("start k6: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- command.Wait() }()
	for ended := false; !ended; {
		select {
		case err = <-done:
			ended = true
		case <-time.After(a.Poll):
			a.progress("k6 runs against " + target.BaseURL)
		}
	}
	a.lines.end(a)
	if ctx.Err() != nil {
		return nil, job, errors.New("interrupted; nothing was measured")
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, job, fmt.Errorf("run k6: %w", err)
	}
	code := int32(command.ProcessState.ExitCode())
	job.ExitCode = &code
	found, err := result.Read(bytes.NewReader(append(stdout.Bytes(), stderr.Bytes()...)))
	job.LogError = err
	if err != nil || code != 0 {
		a.quote(stderr.String(), secret)
	}
	return found, job, nil
}

// quote shows the end of what k6 said, without the passwords should it ever say one.
func (a *App) quote(text string, secret latency.Credentials) {
	for _, value := range secret.Secrets() {
		text = strings.ReplaceAll(text, value, "…")
	}
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
	for _, line := range lines[max(0, len(lines)-10):] {
		fmt.Fprintln(a.Err, "k6:", line)
	}
}
