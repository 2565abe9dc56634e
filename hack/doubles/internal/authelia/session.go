package authelia

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"authstack.dev/authstack/hack/doubles/internal/resp"
)

// cookieAlphabet and cookieLength are those of the product's session cookie (§2).
const (
	cookieAlphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_!#$%^*"
	cookieLength   = 32
)

func newSessionID() string {
	b := make([]byte, cookieLength)
	_, _ = rand.Read(b)
	for i := range b {
		b[i] = cookieAlphabet[int(b[i])%len(cookieAlphabet)]
	}
	return string(b)
}

// userSession is what is stored of a session.
type userSession struct {
	CookieDomain string
	Username     string
	DisplayName  string
	Emails       []string
	Groups       []string
	RememberMe   bool `json:"KeepMeLoggedIn"`
	Level        int  `json:"AuthenticationLevel"`
	LastActivity int64
}

// store is the session provider: memory or Redis.
type store interface {
	get(ctx context.Context, id string) ([]byte, error) // nil when there is none
	set(ctx context.Context, id string, data []byte, ttl time.Duration) error
	rename(ctx context.Context, old, id string, ttl time.Duration) error // EXISTS, RENAME, EXPIRE
	del(ctx context.Context, id string) error
	ping(ctx context.Context) error
}

// memory is per process, and unencrypted like the product's.
type memory struct {
	mu sync.Mutex
	m  map[string]memItem
}

type memItem struct {
	data    []byte
	expires time.Time
}

func newMemory() *memory {
	m := &memory{m: map[string]memItem{}}
	go func() { // expired sessions are collected each minute
		for range time.Tick(time.Minute) {
			m.mu.Lock()
			for k, v := range m.m {
				if time.Now().After(v.expires) {
					delete(m.m, k)
				}
			}
			m.mu.Unlock()
		}
	}()
	return m
}

func (m *memory) get(_ context.Context, id string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if it, ok := m.m[id]; ok && time.Now().Before(it.expires) {
		return it.data, nil
	}
	return nil, nil
}

func (m *memory) set(_ context.Context, id string, data []byte, ttl time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.m[id] = memItem{data, time.Now().Add(ttl)}
	return nil
}

func (m *memory) rename(_ context.Context, old, id string, ttl time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if it, ok := m.m[old]; ok {
		delete(m.m, old)
		m.m[id] = memItem{it.data, time.Now().Add(ttl)}
	}
	return nil
}

func (m *memory) del(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.m, id)
	return nil
}

func (m *memory) ping(context.Context) error { return nil }

// redisStore dials for every command. That is not carelessness but the product's behaviour: it hands go-redis an
// idle limit of 300 nanoseconds, so that every pooled connection is stale when it is next wanted (§1.5, measured in
// §8: 46,862 connections for 94,102 commands, the greeting among them).
type redisStore struct {
	o    resp.Options
	slot chan struct{} // maximum_active_connections
	aead cipher.AEAD
}

// poolWait is how long go-redis waits for a slot: read timeout and one second; then a session counts as anonymous.
const poolWait = 4 * time.Second

func newRedis(c *SessionConfig) *redisStore {
	r := c.Redis
	o := resp.Options{Network: "tcp", Addr: net.JoinHostPort(r.Host, strconv.Itoa(r.Port)), Username: r.Username, Password: r.Password, DB: r.DB, Timeout: time.Duration(r.Timeout), Greet: true}
	if strings.HasPrefix(r.Host, "/") {
		o.Network, o.Addr = "unix", r.Host
	}
	if r.TLS != nil {
		name := r.TLS.ServerName
		if name == "" {
			name = r.Host
		}
		o.TLS = &tls.Config{ServerName: name, InsecureSkipVerify: r.TLS.SkipVerify} //nolint:gosec // as configured
	}
	key := sha256.Sum256([]byte(c.Secret))
	block, _ := aes.NewCipher(key[:])
	aead, _ := cipher.NewGCM(block)
	return &redisStore{o: o, slot: make(chan struct{}, r.MaxActive), aead: aead}
}

func (r *redisStore) do(ctx context.Context, args ...string) (any, error) {
	select {
	case r.slot <- struct{}{}:
		defer func() { <-r.slot }()
	case <-time.After(poolWait):
		return nil, errors.New("redis: connection pool timeout")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c, err := resp.Dial(ctx, r.o)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Do(args...)
}

func key(id string) string { return "authelia-session:" + id }

func (r *redisStore) get(ctx context.Context, id string) ([]byte, error) {
	v, err := r.do(ctx, "GET", key(id))
	s, ok := v.(string)
	if err != nil || !ok {
		return nil, err
	}
	n := r.aead.NonceSize()
	if len(s) < n {
		return nil, errors.New("unable to decrypt session")
	}
	return r.aead.Open(nil, []byte(s[:n]), []byte(s[n:]), nil)
}

func (r *redisStore) set(ctx context.Context, id string, data []byte, ttl time.Duration) error {
	nonce := make([]byte, r.aead.NonceSize())
	_, _ = rand.Read(nonce)
	_, err := r.do(ctx, "SET", key(id), string(r.aead.Seal(nonce, nonce, data, nil)), "EX", strconv.Itoa(int(ttl.Seconds())))
	return err
}

func (r *redisStore) rename(ctx context.Context, old, id string, ttl time.Duration) error {
	v, err := r.do(ctx, "EXISTS", key(old))
	if err != nil {
		return err
	}
	if n, _ := v.(int64); n == 1 {
		if _, err := r.do(ctx, "RENAME", key(old), key(id)); err != nil {
			return err
		}
		_, err = r.do(ctx, "EXPIRE", key(id), strconv.Itoa(int(ttl.Seconds())))
	}
	return err
}

func (r *redisStore) del(ctx context.Context, id string) error {
	_, err := r.do(ctx, "DEL", key(id))
	return err
}

func (r *redisStore) ping(ctx context.Context) error {
	_, err := r.do(ctx, "PING")
	return err
}

// sessions knows how long each kind lives.
type sessions struct {
	store store
	cfg   *SessionConfig
}

func (s *sessions) ttl(u *userSession) time.Duration {
	if u.RememberMe {
		return time.Duration(s.cfg.RememberMe)
	}
	return time.Duration(s.cfg.Expiration)
}

// load reads a session: one GET. What is not there, or of another domain, is an empty session.
func (s *sessions) load(ctx context.Context, id, domain string) (*userSession, error) {
	raw, err := s.store.get(ctx, id)
	u := &userSession{CookieDomain: domain}
	if err != nil || raw == nil {
		return u, err
	}
	if err := json.Unmarshal(raw, u); err != nil {
		return u, err
	}
	if u.CookieDomain != domain {
		return &userSession{CookieDomain: domain}, nil
	}
	return u, nil
}

// put is a bare SET: what a request without a cookie costs, each making a session of its own.
func (s *sessions) put(ctx context.Context, id string, u *userSession) error {
	raw, err := json.Marshal(u)
	if err != nil {
		return err
	}
	return s.store.set(ctx, id, raw, s.ttl(u))
}

// save reads the session again before it writes it: GET and SET.
func (s *sessions) save(ctx context.Context, id string, u *userSession) error {
	if _, err := s.store.get(ctx, id); err != nil {
		return err
	}
	return s.put(ctx, id, u)
}
