package authelia

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Version is what the double says it is.
var Version = "4.39.20"

// Server answers for Authelia.
type Server struct {
	cfg      *Config
	log      *slog.Logger
	users    map[string]User
	sessions *sessions
	storage  storage
	login    *delay
	basic    *delay
	oidc     *provider

	mu       sync.Mutex
	counters map[string]int
}

// Run starts the double and ends with ctx.
func Run(ctx context.Context, cfg *Config, log *slog.Logger) error {
	s := &Server{cfg: cfg, log: log, counters: map[string]int{}, login: newDelay(loginHistory, loginInitial, loginFloor), basic: newDelay(basicHistory, basicFloor, basicFloor)}
	if cfg.Backend.LDAP != nil {
		return errors.New("authentication_backend.ldap is not imitated by the double")
	}
	if cfg.Storage.MySQL != nil {
		return errors.New("storage.mysql is not imitated by the double")
	}
	var err error
	if s.users, err = loadUsers(cfg.Backend.File.Path); err != nil {
		return fmt.Errorf("error occurred running a startup check for the user provider: %w", err)
	}
	if f := cfg.Notifier.Filesystem; f != nil { // truncated or created at start: it wants a writable directory
		if err := os.WriteFile(f.Filename, nil, 0o600); err != nil {
			return fmt.Errorf("error occurred running a startup check for the notification provider: %w", err)
		}
	}
	if err := s.providers(ctx); err != nil {
		return err
	}
	return s.serve(ctx)
}

// providers opens storage and sessions; each is tried about 19 times, half a second apart, then the process ends.
func (s *Server) providers(ctx context.Context) error {
	s.storage = &local{bans: map[string]time.Time{}}
	var pg *postgres
	if s.cfg.Storage.Postgres != nil {
		var err error
		if pg, err = openPostgres(s.cfg.Storage.Postgres); err != nil {
			return err
		}
		s.storage = pg
	}
	s.sessions = &sessions{cfg: &s.cfg.Session}
	if s.cfg.Session.Redis != nil {
		s.sessions.store = newRedis(&s.cfg.Session)
	} else {
		s.sessions.store = newMemory()
	}
	for name, ping := range map[string]func(context.Context) error{"storage": s.storage.ping, "session": s.sessions.store.ping} {
		var err error
		for range 19 {
			if err = ping(ctx); err == nil || ctx.Err() != nil {
				break
			}
			time.Sleep(500 * time.Millisecond)
		}
		if err != nil {
			return fmt.Errorf("error occurred running a startup check for the %s provider: %w", name, err)
		}
	}
	if c := s.cfg.IdentityProviders.OIDC; c != nil {
		var store grants = newLocalGrants()
		if pg != nil {
			store = &sqlGrants{pg.db, pg.db}
		}
		var err error
		if s.oidc, err = newProvider(c, store); err != nil {
			return err
		}
	}
	if pg != nil {
		if err := pg.migrate(ctx, Version); err != nil {
			return fmt.Errorf("storage schema migration: %w", err)
		}
	}
	return nil
}

// healthcheckEnv writes the file of the image's health check. Where the root file system is read-only the product
// cannot write it and ends, unless server.disable_healthcheck is set; where it merely has no such directory, as in
// the double's image, nothing is lost.
func healthcheckEnv() error {
	_ = os.Mkdir("/app", 0o755)
	err := os.WriteFile("/app/.healthcheck.env", []byte("X_AUTHELIA_HEALTHCHECK=1\n"), 0o600)
	if errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("error occurred writing the healthcheck environment file: %w", err)
	}
	return nil
}

func (s *Server) serve(ctx context.Context) error {
	u, err := url.Parse(s.cfg.Server.Address)
	if err != nil {
		return err
	}
	var ln net.Listener
	prefix := strings.TrimSuffix(u.Path, "/")
	if u.Scheme == "unix" {
		prefix = strings.Trim(u.Query().Get("path"), "/")
		if prefix != "" {
			prefix = "/" + prefix
		}
		if m, err := strconv.ParseUint(u.Query().Get("umask"), 8, 32); err == nil && u.Query().Get("umask") != "" {
			defer syscall.Umask(syscall.Umask(int(m)))
		}
		ln, err = net.Listen("unix", u.Path) // an old socket is not removed: the product does not either
	} else {
		if !s.cfg.Server.DisableHealthcheck {
			if err := healthcheckEnv(); err != nil {
				return err
			}
		}
		port := u.Port()
		if port == "" {
			port = "9091"
		}
		ln, err = net.Listen("tcp", net.JoinHostPort(u.Hostname(), port))
	}
	if err != nil {
		return err
	}
	t := s.cfg.Server.Timeouts
	h := s.routes()
	if prefix != "" {
		h = http.StripPrefix(prefix, h)
	}
	srv := &http.Server{Handler: s.count(h), ReadTimeout: time.Duration(t.Read), WriteTimeout: time.Duration(t.Write), IdleTimeout: time.Duration(t.Idle), MaxHeaderBytes: s.cfg.Server.Buffers.Read}
	failed := make(chan error, 2)
	go func() { failed <- srv.Serve(ln) }()
	var ms *http.Server
	if m := s.cfg.Telemetry.Metrics; m.Enabled {
		mu, err := url.Parse(m.Address)
		if err != nil {
			return err
		}
		ms = &http.Server{Addr: mu.Host, Handler: http.HandlerFunc(s.metrics), ReadHeaderTimeout: 6 * time.Second}
		go func() { failed <- ms.ListenAndServe() }()
	}
	s.log.Info("Startup complete")
	s.log.Info("Listening for non-TLS connections on '" + ln.Addr().String() + "' path '" + prefix + "/'")
	select {
	case err = <-failed:
	case <-ctx.Done():
		s.log.Info("Shutdown initiated due to process signal")
	}
	stop, cancel := context.WithTimeout(context.Background(), 10*time.Second) // the product's bound
	defer cancel()
	_ = srv.Shutdown(stop)
	if ms != nil {
		_ = ms.Shutdown(stop)
	}
	return err
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/api/health", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		writeJSON(w, http.StatusOK, map[string]any{"status": "OK"})
	})
	mux.HandleFunc("POST /api/firstfactor", s.firstFactor)
	mux.HandleFunc("GET /api/state", s.state)
	mux.HandleFunc("POST /api/logout", s.logout)
	mux.HandleFunc("GET /api/configuration", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"status": "OK", "data": map[string]any{"available_methods": []string{}}})
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!DOCTYPE html><title>Login - Authelia</title><div id=\"root\"></div>\n"))
	})
	s.authzRoutes(mux)
	s.oidcRoutes(mux)
	return mux
}

type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(code int) {
	r.status = code
	r.ResponseWriter.WriteHeader(code)
}

func (s *Server) count(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Authstack-Double", "authelia")
		rec := &recorder{w, http.StatusOK}
		h.ServeHTTP(rec, r)
		s.inc(fmt.Sprintf(`authelia_request{code="%d",method=%q}`, rec.status, r.Method))
	})
}

func (s *Server) inc(series string) {
	s.mu.Lock()
	s.counters[series]++
	s.mu.Unlock()
}

func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	fmt.Fprintf(w, "# TYPE authelia_double gauge\nauthelia_double{version=%q} 1\n", Version)
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, v := range s.counters {
		fmt.Fprintf(w, "%s %d\n", k, v)
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// remoteIP is the first address of X-Forwarded-For, else the peer's.
func remoteIP(r *http.Request) net.IP {
	if f, _, _ := strings.Cut(r.Header.Get("X-Forwarded-For"), ","); f != "" {
		if ip := net.ParseIP(strings.TrimSpace(f)); ip != nil {
			return ip
		}
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	if ip := net.ParseIP(host); ip != nil {
		return ip
	}
	return net.IPv4(127, 0, 0, 1)
}

// cookieFor is the protected domain that host lies in; nil when there is none.
func (s *Server) cookieFor(host string) *CookieConfig {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(host)
	for i := range s.cfg.Session.Cookies {
		if d := &s.cfg.Session.Cookies[i]; host == d.Domain || strings.HasSuffix(host, "."+d.Domain) {
			return d
		}
	}
	return nil
}

// cookieValue reads the cookie as it stands: its alphabet holds characters that net/http's parser would refuse.
func cookieValue(r *http.Request, name string) string {
	for _, line := range r.Header.Values("Cookie") {
		for _, p := range strings.Split(line, ";") {
			if k, v, ok := strings.Cut(strings.TrimSpace(p), "="); ok && k == name {
				return v
			}
		}
	}
	return ""
}

func (s *Server) setCookie(w http.ResponseWriter, d *CookieConfig, id string, ttl time.Duration) {
	same := map[string]string{"none": "None", "strict": "Strict"}[s.cfg.Session.SameSite]
	if same == "" {
		same = "Lax"
	}
	v := d.Name + "=" + id
	if ttl < 0 {
		v = d.Name + "=; expires=" + time.Unix(0, 0).UTC().Format(http.TimeFormat)
	} else if ttl > 0 {
		v += "; expires=" + time.Now().Add(ttl).UTC().Format(http.TimeFormat)
	}
	w.Header().Add("Set-Cookie", v+"; domain="+d.Domain+"; path=/; HttpOnly; secure; SameSite="+same)
}
