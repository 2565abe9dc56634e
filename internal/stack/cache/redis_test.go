package cache

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack/part"
)

func TestAppendOnly(t *testing.T) {
	for sentence, test := range map[string]struct {
		given    v1alpha1.RedisAppendOnly
		sessions bool
		want     v1alpha1.RedisAppendOnly
	}{
		"sessions are kept by the second": {"", true, v1alpha1.RedisAppendEverySecond},
		"a cache is not kept":             {"", false, v1alpha1.RedisAppendDisabled},
		"what the user gives counts":      {v1alpha1.RedisAppendAlways, false, v1alpha1.RedisAppendAlways},
		"even where it logs people out":   {v1alpha1.RedisAppendDisabled, true, v1alpha1.RedisAppendDisabled},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := appendOnly(v1alpha1.RedisCache{AppendOnly: test.given}, part.Product{CacheMustSurvive: test.sessions}); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// TestRedisStartsWithItsPassword runs the scripts and the configuration with a real Redis.
func TestRedisStartsWithItsPassword(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Fatal("redis-server is missing; `make test-unit` installs it: apt-get install redis-server")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	listener.Close()
	root := t.TempDir()
	here := strings.NewReplacer("/etc/authstack", root, "/run/secrets/authstack", root, "/run/redis", root, "dir "+dataMount, "dir "+root,
		"port 6379", "port "+port, "-p 6379", "-p "+port, "bind * -::*", "bind 127.0.0.1")
	// The password's file and Redis' rendered one are apart in the Pod.
	start := strings.NewReplacer("/run/redis/redis.conf", root+"/rendered.conf").Replace(script("start.sh"))
	for name, content := range map[string]string{
		"password": "canary", "redis.conf": configuration(v1alpha1.RedisAppendEverySecond, 256<<20), "start.sh": start, "ready.sh": script("ready.sh"),
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(here.Replace(content)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := exec.CommandContext(t.Context(), "/bin/sh", filepath.Join(root, "start.sh"))
	var log strings.Builder
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	deadline := time.Now().Add(time.Minute)
	for exec.Command("/bin/sh", filepath.Join(root, "ready.sh")).Run() != nil {
		if time.Now().After(deadline) {
			t.Fatalf("not ready:\n%s", log.String())
		}
		time.Sleep(50 * time.Millisecond)
	}
	ask := func(password, command string) string {
		client := exec.Command("redis-cli", append([]string{"-h", "127.0.0.1", "-p", port}, strings.Fields(command)...)...)
		client.Env = append(os.Environ(), "REDISCLI_AUTH="+password)
		out, _ := client.CombinedOutput()
		return string(out)
	}
	if out := ask("", "GET x"); !strings.Contains(out, "NOAUTH") {
		t.Errorf("without the password: %s", out)
	}
	for command, want := range map[string]string{
		"CONFIG GET maxmemory": "201326592", "CONFIG GET maxmemory-policy": "noeviction", "CONFIG GET appendonly": "yes",
		"CONFIG GET appendfsync": "everysec", "SHUTDOWN": "unknown command",
	} {
		if out := ask("canary", command); !strings.Contains(out, want) {
			t.Errorf("%s: %s, want %s", command, out, want)
		}
	}
	commandLine, err := os.ReadFile(filepath.Join("/proc", part.Itoa(server.Process.Pid), "cmdline"))
	if err != nil || strings.Contains(string(commandLine), "canary") {
		t.Errorf("the password is in the arguments: %q, %v", commandLine, err)
	}
}
