package authentik

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// live costs the core its middlewares' look-ups: 10 statements (facts/authentik-measured.md §2.2).
func (s *Server) live(w http.ResponseWriter, r *http.Request) {
	if err := s.probe(r.Context(), budget{10, 4}); err != nil {
		s.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// ready asks the database on a connection of its own, beside the request's: two connections, 12 statements.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	err := s.probe(r.Context(), budget{10, 4})
	if err == nil {
		err = s.probe(r.Context(), budget{2, 1})
	}
	if err == nil {
		err = s.cache.ping(r.Context())
	}
	if err != nil {
		s.log.Warn("not ready", "error", err.Error())
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (s *Server) probe(ctx context.Context, b budget) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	d, err := s.cfg.open(ctx, b)
	if err != nil {
		return err
	}
	defer d.close()
	return d.finish()
}

// metrics is a small part of what the product exports on 9300.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(w, "# HELP authentik_double 1 where a stand-in answers for authentik\n# TYPE authentik_double gauge\nauthentik_double{version=%q} 1\n", s.cfg.Version)
	fmt.Fprint(w, "# HELP authentik_main_request_duration_seconds API request latencies in seconds\n# TYPE authentik_main_request_duration_seconds summary\n")
	for dest, sm := range s.requests {
		fmt.Fprintf(w, "authentik_main_request_duration_seconds_sum{dest=%q} %g\nauthentik_main_request_duration_seconds_count{dest=%q} %d\n", dest, sm.sum, dest, sm.n)
	}
}

// Healthcheck is `ak healthcheck`: the exec probe of the worker.
func (c *Config) Healthcheck() error {
	_, port, err := net.SplitHostPort(c.HTTP)
	if err != nil {
		return err
	}
	cl := http.Client{Timeout: 5 * time.Second}
	res, err := cl.Get("http://" + net.JoinHostPort("localhost", port) + "/-/health/live/")
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	if res.StatusCode >= 300 {
		return fmt.Errorf("live answered %d", res.StatusCode)
	}
	return nil
}
