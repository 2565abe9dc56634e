// Package prometheus runs a real Prometheus that scrapes what the operator shows. Its own tests have it load the alert
// rules and answer the queries of the dashboard; those on a cluster have it scrape the operator's Pod.
package prometheus

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Server is a running Prometheus.
type Server struct {
	t   *testing.T
	url string
}

// Start a Prometheus that scrapes one target (host:port) each second and has those rules; it ends with the test.
func Start(t *testing.T, target, rules string) *Server {
	t.Helper()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatal("these tests need Prometheus: hack/install-packages.sh prometheus")
	}
	if rules, err = filepath.Abs(rules); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs:\n- job_name: authstack\n  static_configs: [{targets: [%q]}]\n",
		rules, target)
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), binary, "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--enable-feature=native-histograms")
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("Prometheus:\n%s", text)
		}
	})
	return &Server{t, "http://" + address}
}

// Sample of a vector.
type Sample struct {
	Metric map[string]string
	Value  [2]any
}

// Get asks the HTTP API and decodes data.
func (s *Server) Get(path string, query url.Values, data any) error {
	response, err := http.Get(s.url + path + "?" + query.Encode())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("%s %s: %w", path, query, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s %s: %s", path, query, answer.Error)
	}
	return json.Unmarshal(answer.Data, data)
}

// Query asks for a vector at this moment.
func (s *Server) Query(expr string) ([]Sample, error) {
	var data struct{ Result []Sample }
	err := s.Get("/api/v1/query", url.Values{"query": {expr}}, &data)
	return data.Result, err
}

// Eventually asks until the answer holds.
func (s *Server) Eventually(what string, holds func() (bool, error)) {
	s.t.Helper()
	var err error
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		var ok bool
		if ok, err = holds(); ok {
			return
		}
	}
	s.t.Fatalf("%s: not in two minutes (%v)", what, err)
}
