package controllers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/durability"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/idp"
	"authstack.dev/authstack/internal/probe"
	"authstack.dev/authstack/internal/result"
	"authstack.dev/authstack/internal/stack"
)

// fakeDatabases answer as a PostgreSQL does that has the settings of its configuration file in force.
// What a real one says is tested in internal/sqlclient.
type fakeDatabases struct {
	server client.Client
	mu     sync.Mutex
	// roles are the settings that ALTER ROLE holds, by host.
	roles    map[string]map[string]string
	analyzed map[string]int
	// err is the answer of every database while it is set.
	err error
	// silent is the address of a database that takes connections and says nothing.
	silent string
	// analyzeErr is the answer to ANALYZE while it is set.
	analyzeErr error
	// override of what is in force, by name.
	override map[string]string
	resets   []string
	// sampled counts the samples that were taken; sampleErr is the answer while it is set.
	sampled   int64
	sampleErr error
	// triggered are the triggers that decide which commits wait, by host; durabilityErr is the answer to a change of
	// them while it is set, and durabilityChanges are those that were made.
	triggered         map[string]facts.Durability
	durabilityErr     error
	durabilityChanges []durability.Change
	// hang, while it is set, keeps every commit waiting until it is closed.
	hang chan struct{}
	// commits counts those that were begun.
	commits int
}

// databases are both edges to PostgreSQL.
type databases interface {
	Databases
	Sampler
}

// Sample says that 72 logins of authentik wait for 24 commits of 10 ms each.
func (f *fakeDatabases) Sample(_ context.Context, target stack.DatabaseTarget) (*facts.DatabaseSample, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := cmp.Or(f.err, f.sampleErr); err != nil {
		return nil, err
	}
	if target.Password == "" || target.User == "" {
		return nil, errors.New("no password")
	}
	f.sampled++
	syncs := f.sampled * 72 * 24
	return &facts.DatabaseSample{WALKnown: true, WALTimed: true, WALSyncs: syncs, WALSyncMicros: syncs * 10_000, JoinCollapseLimit: 4}, nil
}

// set changes it while the operator may be asking.
func (f *fakeDatabases) set(change func(*fakeDatabases)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeDatabases) Commit(ctx context.Context, _ stack.DatabaseTarget) error {
	f.mu.Lock()
	hang := f.hang
	f.commits++
	f.mu.Unlock()
	if hang == nil {
		return nil
	}
	select {
	case <-hang:
	case <-ctx.Done():
	}
	return nil
}

func newFakeDatabases(server client.Client) *fakeDatabases {
	return &fakeDatabases{server: server, roles: map[string]map[string]string{}, analyzed: map[string]int{}, override: map[string]string{}, triggered: map[string]facts.Durability{}}
}

func (f *fakeDatabases) Observe(ctx context.Context, target stack.DatabaseTarget) (*facts.Database, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.silent != "" && target.Host == f.silent {
		return nil, facts.ErrStandsStill
	}
	if f.err != nil {
		return nil, f.err
	}
	name, rest, _ := strings.Cut(target.Host, ".")
	namespace, _, _ := strings.Cut(rest, ".")
	found := &v1alpha1.AuthStack{}
	if err := f.server.Get(ctx, types.NamespacedName{Namespace: namespace, Name: strings.TrimSuffix(name, "-postgres")}, found); err != nil {
		return nil, err
	}
	db := &facts.Database{Version: "17.5", Encoding: "UTF8", Migrated: true, Tables: 10,
		Settings: map[string]facts.Setting{}, RoleSettings: map[string]string{}, Durability: f.triggered[target.Host]}
	for name, value := range f.roles[target.Host] {
		db.RoleSettings[name] = value
	}
	if found.Status.Database != nil {
		for _, setting := range found.Status.Database.Settings {
			value := setting.Desired
			if setting.Scope == "Role" {
				value = f.roles[target.Host][setting.Name]
			}
			if other, ok := f.override[setting.Name]; ok {
				value = other
			}
			db.Settings[setting.Name] = facts.Setting{Value: value, VarType: "string", Source: "configuration file"}
		}
	}
	return db, nil
}

func (f *fakeDatabases) SetRole(_ context.Context, target stack.DatabaseTarget, has, want map[string]string, reset []string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return false, f.err
	}
	changed := false
	if f.roles[target.Host] == nil {
		f.roles[target.Host] = map[string]string{}
	}
	for name, value := range want {
		if has[name] != value {
			f.roles[target.Host][name], changed = value, true
		}
	}
	for _, name := range reset {
		f.resets = append(f.resets, name)
		delete(f.roles[target.Host], name)
	}
	return changed, nil
}

func (f *fakeDatabases) SetDurability(_ context.Context, target stack.DatabaseTarget, change durability.Change) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.durabilityErr != nil {
		return f.durabilityErr
	}
	f.durabilityChanges = append(f.durabilityChanges, change)
	f.triggered[target.Host] = facts.Durability{}
	if len(change.Install) > 0 {
		f.triggered[target.Host] = durability.Intact(change.Install)
	}
	return nil
}

func (f *fakeDatabases) Analyze(_ context.Context, target stack.DatabaseTarget) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.analyzeErr != nil {
		return f.analyzeErr
	}
	f.analyzed[target.Host]++
	return nil
}

// fakeUsers are the users of an authentik.
type fakeUsers struct {
	mu    sync.Mutex
	held  map[string]string
	made  int
	token string
	err   error
	// tells has it answer with what it was told, which told keeps.
	tells bool
	told  []string
	// apps are the applications behind the outpost by name, with their host; slow is how often the
	// outpost does not answer for one yet.
	apps map[string]string
	slow int
	// clients are the clients of OpenID Connect by the name of their application.
	clients map[string]idp.OIDC
}

func (f *fakeUsers) EnsureForwardAuth(_ context.Context, _, _ string, app idp.ForwardAuth) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	if f.apps == nil {
		f.apps = map[string]string{}
	}
	f.apps[app.Name] = app.Host
	if f.slow > 0 {
		f.slow--
		return idp.ErrNotAnswering
	}
	return nil
}

func (f *fakeUsers) RemoveForwardAuth(_ context.Context, _, _, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		delete(f.apps, name)
	}
	return f.err
}

func (f *fakeUsers) EnsureOIDC(_ context.Context, _, _ string, app idp.OIDC) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	if f.clients == nil {
		f.clients = map[string]idp.OIDC{}
	}
	f.clients[app.Name] = app
	return nil
}

func (f *fakeUsers) RemoveOIDC(_ context.Context, _, _, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		delete(f.clients, name)
	}
	return f.err
}

func (f *fakeUsers) EnsureUser(_ context.Context, _, token, username, password string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	if f.tells {
		f.told = append(f.told, token, password)
		return fmt.Errorf("the token %s may not give the password %s", token, password)
	}
	if _, found := f.held[username]; !found {
		f.made++
	}
	f.held[username], f.token = password, token
	return nil
}

func (f *fakeUsers) RemoveUsers(_ context.Context, _, _, prefix string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	for name := range f.held {
		if strings.HasPrefix(name, prefix) {
			delete(f.held, name)
		}
	}
	return nil
}

// fakeLogs are what k6 printed.
type fakeLogs struct {
	// each is how long a login took.
	each time.Duration
	// text takes the place of the log.
	text string
	err  error
	// probe changes what a storage probe printed.
	probe func(*probe.Result)
}

func (f *fakeLogs) Stream(_ context.Context, _, pod, container string) (io.ReadCloser, error) {
	if f.err != nil {
		return nil, f.err
	}
	if container == probe.Container {
		return io.NopCloser(strings.NewReader(f.probeLog(strings.TrimSuffix(pod, podSuffix)))), nil
	}
	text := f.text
	if text == "" {
		job, _, _ := strings.Cut(pod, podSuffix)
		text = loginLog(job, f.each)
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

// probeLog is the log of a storage probe of a fast disk.
func (f *fakeLogs) probeLog(job string) string {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	found := &probe.Result{PlanID: job, StartedAt: began, EndedAt: began.Add(time.Minute), Syncs: []probe.Sync{
		{Phase: probe.Short, Seconds: 10, Count: 60_000, PerSecond: 6000, P50Micros: 120, P99Micros: 300, P999Micros: 900, MaxMicros: 2000},
		{Phase: probe.Long, Seconds: 120, Count: 720_000, PerSecond: 6000, P50Micros: 125, P99Micros: 310, P999Micros: 950, MaxMicros: 2500, Course: []int64{6000, 6000, 6010}},
	}}
	if f.probe != nil {
		f.probe(found)
	}
	var text bytes.Buffer
	fmt.Fprintln(&text, "Short: 10 s")
	if err := probe.Write(&text, found); err != nil {
		panic(err)
	}
	return text.String()
}

// podSuffix ends the names of the Pods of Jobs.
const podSuffix = "-abcde"

var errNoLog = errors.New("container \"k6\" is waiting to start")

// loginLog is the log of a good run of 60 logins that each took so long.
func loginLog(job string, each time.Duration) string {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run := &result.Run{
		Format: result.Format, PlanID: job, StartedAt: began, EndedAt: began.Add(time.Minute),
		Scenarios: []result.Scenario{{Name: "Login", Iterations: 60, WarmUpIterations: 12}},
		Generator: result.Generator{K6Version: "v1", GoVersion: "go1", GOMAXPROCS: 2, WallMicros: 60_000_000, CPUMicros: 5_000_000, MaxRSSBytes: 1 << 26},
	}
	for i, name := range []string{"login", "identification-get", "identification-post", "password-get", "password-post", "mfa-get", "login-get"} {
		histogram := result.NewHistogram()
		for range 60 {
			histogram.Record(each.Microseconds())
		}
		run.Series = append(run.Series, result.Series{Scenario: "Login", Endpoint: name, Whole: i == 0, Requests: 60, WarmUpRequests: 12,
			LastMicros: 59_000_000, Total: histogram})
	}
	var text bytes.Buffer
	fmt.Fprintln(&text, "some other line of k6")
	if err := result.Write(&text, run); err != nil {
		panic(err)
	}
	return text.String()
}
