package authentik

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"authstack.dev/authstack/hack/doubles/internal/resp"
)

const (
	embeddedOutpost     = "goauthentik.io/outposts/embedded"
	embeddedOutpostName = "authentik Embedded Outpost"
	// outpostRefresh is how often an outpost reads its providers anew (refresh_interval).
	outpostRefresh = 5 * time.Minute
	// outpostLook is how soon it looks again for a host that it did not find.
	outpostLook = time.Second
)

// proxyApp is an application behind a proxy provider of the embedded outpost.
type proxyApp struct {
	PK                           int
	Name, Slug, Host, Portal     string
	ClientID, ClientSecret       string
	CookieSecret, ValidityString string
	Validity                     time.Duration
}

// cookie is authentik_proxy_ with the first 8 hex digits of the client ID's SHA-256.
func (a *proxyApp) cookie() string {
	h := sha256.Sum256([]byte(a.ClientID))
	return "authentik_proxy_" + hex.EncodeToString(h[:4])
}

func (a *proxyApp) callback() string {
	return "https://" + a.Host + outpostPath + "/callback?X-authentik-auth-callback=true"
}

// outpostSession is a session of the outpost, and outpostClaims who is logged in with it.
type outpostSession struct {
	SID    string
	Claims *outpostClaims
	stored bool
}

type outpostClaims struct {
	Sub      string `json:"sub"`
	Exp      int64  `json:"exp"`
	Email    string `json:"email"`
	Name     string `json:"name"`
	Username string `json:"preferred_username"`
	RawToken string `json:"raw_token,omitempty"`
}

// outpost is the embedded outpost's memory: its applications by host, and its own pool of at most four connections
// (facts/authentik.md §1.3); before 2025.10 its sessions are in Redis.
type outpost struct {
	cfg   *Config
	redis *resp.Pool

	mu     sync.Mutex
	pool   *pgxpool.Pool
	apps   map[string]*proxyApp
	loaded time.Time
}

func newOutpost(cfg *Config) *outpost {
	return &outpost{cfg: cfg, redis: newCache(cfg).redis}
}

// db is the pool, opened at the first use; each new connection reads the settings anew.
func (o *outpost) db(ctx context.Context) (*pgxpool.Pool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pool != nil {
		return o.pool, nil
	}
	c, err := pgxpool.ParseConfig(o.cfg.DSN(false))
	if err != nil {
		return nil, errors.New("the PostgreSQL settings do not parse") // not err: it may quote the password
	}
	c.MaxConns = 4
	c.BeforeConnect = func(_ context.Context, to *pgx.ConnConfig) error {
		if now, err := pgx.ParseConfig(o.cfg.DSN(false)); err == nil {
			to.Host, to.Port, to.User, to.Password = now.Host, now.Port, now.User, now.Password
		}
		return nil
	}
	o.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), c)
	return o.pool, err
}

// forget has the outpost read its providers at the next question: what a change of the outpost does on the product,
// through the worker and a websocket, up to ten seconds later.
func (o *outpost) forget() {
	o.mu.Lock()
	o.loaded = time.Time{}
	o.mu.Unlock()
}

// app is the application of a host; nil where there is none.
func (o *outpost) app(ctx context.Context, host string) (*proxyApp, error) {
	o.mu.Lock()
	found, age := o.apps[host], time.Since(o.loaded)
	o.mu.Unlock()
	if age > outpostRefresh || (found == nil && age > outpostLook) {
		if err := o.refresh(ctx); err != nil {
			return nil, err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.apps) == 1 {
		for _, only := range o.apps {
			return only, nil
		}
	}
	return o.apps[host], nil
}

func (o *outpost) refresh(ctx context.Context) error {
	db, err := o.db(ctx)
	if err != nil {
		return err
	}
	rows, err := db.Query(ctx, `SELECT p.id, p.name, a.slug, x.external_host, COALESCE(f._config->>'authentik_host', ''), c.client_id, c.client_secret, x.cookie_secret, c.access_token_validity
FROM authentik_providers_proxy_proxyprovider x
JOIN authentik_providers_oauth2_oauth2provider c ON c.provider_ptr_id = x.oauth2provider_ptr_id
JOIN authentik_core_provider p ON p.id = c.provider_ptr_id
JOIN authentik_core_application a ON a.provider_id = p.id
JOIN authentik_outposts_outpost_providers m ON m.provider_id = p.id
JOIN authentik_outposts_outpost f ON f.outpost_uuid = m.outpost_id AND f.managed = $1`, embeddedOutpost)
	if err != nil {
		return err
	}
	apps := map[string]*proxyApp{}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (*proxyApp, error) {
		a := &proxyApp{}
		return a, r.Scan(&a.PK, &a.Name, &a.Slug, &a.Host, &a.Portal, &a.ClientID, &a.ClientSecret, &a.CookieSecret, &a.ValidityString)
	})
	if err != nil {
		return err
	}
	for _, a := range list {
		_, a.Host, _ = strings.Cut(a.Host, "://")
		a.Host = strings.TrimRight(a.Host, "/")
		a.Validity = validity(a.ValidityString)
		apps[a.Host] = a
	}
	o.mu.Lock()
	o.apps, o.loaded = apps, time.Now()
	o.mu.Unlock()
	return nil
}

// validity reads hours=24 and its like; what it does not know is a day, the product's default.
func validity(text string) time.Duration {
	unit, n, _ := strings.Cut(text, "=")
	units := map[string]time.Duration{"seconds": time.Second, "minutes": time.Minute, "hours": time.Hour, "days": 24 * time.Hour}
	if count, err := strconv.Atoi(n); err == nil && units[unit] > 0 {
		return time.Duration(count) * units[unit]
	}
	return 24 * time.Hour
}

const outpostRedisPrefix = "authentik_proxy_session_"

// load is one SELECT. A session that is gone leaves se without claims.
func (o *outpost) load(ctx context.Context, se *outpostSession) error {
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	var data string
	if o.redis != nil {
		v, err := o.redis.Do(ctx, "GET", outpostRedisPrefix+se.SID)
		if data, se.stored = v.(string); err != nil || !se.stored {
			return err
		}
	} else {
		db, err := o.db(ctx)
		if err != nil {
			return err
		}
		err = db.QueryRow(ctx, "SELECT session_data::text FROM authentik_providers_proxy_proxysession WHERE session_key = $1 AND expires > now()", se.SID).Scan(&data)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		se.stored = true
	}
	var held struct {
		Claims *outpostClaims `json:"claims"`
	}
	_ = json.Unmarshal([]byte(data), &held)
	se.Claims = held.Claims
	return nil
}

// save is one upsert in its own commit.
func (o *outpost) save(ctx context.Context, se *outpostSession, age time.Duration) error {
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	held := map[string]any{}
	if se.Claims != nil {
		held["claims"] = se.Claims
	}
	data, _ := json.Marshal(held)
	se.stored = true
	if o.redis != nil {
		_, err := o.redis.Do(ctx, "SET", outpostRedisPrefix+se.SID, string(data), "EX", strconv.Itoa(int(age.Seconds())+1))
		return err
	}
	db, err := o.db(ctx)
	if err != nil {
		return err
	}
	_, err = db.Exec(ctx, `INSERT INTO authentik_providers_proxy_proxysession (uuid, session_key, session_data, expires, expiring) VALUES ($1, $2, $3::jsonb, $4, true)
ON CONFLICT (session_key) DO UPDATE SET user_id = EXCLUDED.user_id, session_data = EXCLUDED.session_data, expires = EXCLUDED.expires`, uuid.New(), se.SID, string(data), time.Now().Add(age))
	return err
}
