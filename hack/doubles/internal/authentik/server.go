package authentik

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"authstack.dev/authstack/hack/doubles/internal/authentik/schema"
)

// Server is the state both roles share.
type Server struct {
	cfg   *Config
	log   *slog.Logger
	cache *cache
	embed *outpost
	up    atomic.Bool // the core runs: migrations are done

	appsSQL, bindingsSQL, stageSQL, sourcesSQL string

	mu       sync.Mutex
	requests map[string]*sample // by dest
}

// sample is one summary in the metrics.
type sample struct {
	n   uint64
	sum float64
}

func newServer(cfg *Config, log *slog.Logger) *Server {
	m := schema.Load()
	return &Server{cfg: cfg, log: log, cache: newCache(cfg), embed: newOutpost(cfg), requests: map[string]*sample{},
		appsSQL: m.Applications(), bindingsSQL: m.Bindings(), stageSQL: m.Stage(), sourcesSQL: m.Sources()}
}

// RunServer is the server: the API, the health endpoints and the metrics.
func RunServer(ctx context.Context, cfg *Config, log *slog.Logger) error {
	s := newServer(cfg, log)
	return s.serve(ctx, s.serverHandler(), func(ctx context.Context) error {
		if cfg.Redis {
			<-ctx.Done()
			return nil
		}
		// One LISTEN connection per event loop, that is per gunicorn worker (facts/authentik.md §1.3).
		var wg sync.WaitGroup
		for range cfg.num("WEB__WORKERS", 2) {
			wg.Go(func() { s.listen(ctx, "channels_messages", func() {}) })
		}
		wg.Wait()
		return nil
	})
}

// serve listens at once, as the outer router does, answers 502 until the core is up, migrates, then runs work.
func (s *Server) serve(ctx context.Context, h http.Handler, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 4)
	var servers []*http.Server
	for _, l := range []struct {
		addr string
		h    http.Handler
	}{{s.cfg.HTTP, s.outer(h)}, {s.cfg.Metrics, http.HandlerFunc(s.metrics)}} {
		ln, err := net.Listen("tcp", l.addr)
		if err != nil {
			return err
		}
		srv := &http.Server{Handler: l.h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 60 * time.Second, IdleTimeout: 120 * time.Second}
		servers = append(servers, srv)
		go func() {
			if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
				failed <- err
			}
		}()
	}
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		if err := s.start(ctx); err != nil {
			failed <- err
			return
		}
		s.up.Store(true)
		s.log.Info("Starting authentik core", "version", s.cfg.Version)
		if err := work(ctx); err != nil {
			failed <- err
		}
	}()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		s.log.Info("shutting down")
	}
	stop, done := context.WithTimeout(context.Background(), 25*time.Second)
	defer done()
	for _, srv := range servers {
		_ = srv.Shutdown(stop) // requests in flight end first
	}
	cancel()
	select {
	case <-worked:
	case <-stop.Done():
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// start waits for database (and Redis) and migrates.
func (s *Server) start(ctx context.Context) error {
	conn, err := s.cfg.WaitForDB(ctx, s.log)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	for try := 0; ; try++ {
		if err = s.cache.ping(ctx); err == nil {
			break
		}
		if try >= 29 || ctx.Err() != nil {
			return err
		}
		s.log.Info("Redis Connection failed, retrying...", "attempt", try+1)
		sleep(ctx, time.Second)
	}
	return s.cfg.Migrate(ctx, conn, s.log)
}

type ctxKey struct{}

func requestID(r *http.Request) string {
	id, _ := r.Context().Value(ctxKey{}).(string)
	return id
}

// outer is the router in front of the core: headers, the access log with its runtime, 502 while the core starts.
func (s *Server) outer(h http.Handler) http.Handler {
	h = slower(h, s.cfg.Slower)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		id := strings.ReplaceAll(uuid.NewString(), "-", "")
		r = r.WithContext(context.WithValue(r.Context(), ctxKey{}, id))
		rec := &recorder{ResponseWriter: w, status: http.StatusOK}
		hd := rec.Header()
		hd.Set("X-Powered-By", "authentik")
		hd.Set("X-Authstack-Double", "authentik")
		if s.up.Load() {
			hd.Set("X-Authentik-Id", id)
			h.ServeHTTP(rec, r)
		} else {
			writeJSON(rec, http.StatusBadGateway, map[string]string{"error": "authentik starting"})
		}
		took := time.Since(start)
		s.mu.Lock()
		sm := s.requests["core"]
		if sm == nil {
			sm = &sample{}
			s.requests["core"] = sm
		}
		sm.n, sm.sum = sm.n+1, sm.sum+took.Seconds()
		s.mu.Unlock()
		if !strings.HasPrefix(r.URL.Path, "/-/health/") || rec.status >= 400 {
			// Without the query: it may hold a code of an authorisation.
			s.log.Info(r.URL.Path, "logger", "authentik.asgi", "method", r.Method, "remote", clientIP(r), "scheme", scheme(r), "status", rec.status, "runtime", took.Milliseconds(), "request_id", id)
		}
	})
}

type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(code int) {
	r.status = code
	r.ResponseWriter.WriteHeader(code)
}

func scheme(r *http.Request) string {
	if isTLS(r) {
		return "https"
	}
	return "http"
}

// clientIP is the first address of X-Forwarded-For, else the peer's.
func clientIP(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	if f := r.Header.Get("X-Forwarded-For"); f != "" {
		f, _, _ = strings.Cut(f, ",")
		if ip := net.ParseIP(strings.TrimSpace(f)); ip != nil {
			return ip.String()
		}
	}
	if ip := net.ParseIP(host); ip != nil {
		return ip.String()
	}
	return "255.255.255.255"
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// readBody reads a small JSON body; an empty one leaves v as it is.
func readBody(r *http.Request, v any) error {
	b, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil || len(strings.TrimSpace(string(b))) == 0 {
		return err
	}
	return json.Unmarshal(b, v)
}

// fail logs what went wrong and answers as Django does: 500 without detail.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	s.log.Error("request failed", "path", r.URL.Path, "error", err.Error(), "request_id", requestID(r))
	writeJSON(w, http.StatusInternalServerError, map[string]string{"detail": "internal error"})
}

func methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusMethodNotAllowed, map[string]string{"detail": `Method "` + r.Method + `" not allowed.`})
}

func randomInt(n int64) int64 {
	v, err := rand.Int(rand.Reader, big.NewInt(n))
	if err != nil {
		return 0
	}
	return v.Int64()
}
