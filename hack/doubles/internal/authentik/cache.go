package authentik

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"authstack.dev/authstack/hack/doubles/internal/resp"
)

// The cache keys, prefixed as django-tenants does it.
const cachePrefix = "public:authentik_cache:1:goauthentik.io/"

const (
	policyPrefix  = cachePrefix + "policies/"
	appListPrefix = policyPrefix + "app_access/"
	planPrefix    = cachePrefix + "flows/planner/"
)

func throttleKey(ip string) string { return "public:authentik_cache:1:throttle_anon_" + ip }

// policyPadding is the size of a pickled policy result, before base64.
const policyPadding = 450

// pickle stands for the pickled value in base64: random, so that it compresses no better than the real one.
func pickle(n int) string {
	return base64.StdEncoding.EncodeToString([]byte(randomString(n, alnum)))
}

// cache is Django's cache: rows in PostgreSQL from 2025.10, Redis before.
type cache struct {
	redis *resp.Pool
}

func newCache(c *Config) *cache {
	if !c.Redis {
		return &cache{}
	}
	db, _ := strconv.Atoi(c.redisDB)
	return &cache{redis: resp.NewPool(resp.Options{Network: "tcp", Addr: c.RedisAddr(), Password: c.redisPassword, DB: db}, 32)}
}

// ping tells whether Redis answers, where this version needs it.
func (c *cache) ping(ctx context.Context) error {
	if c.redis == nil {
		return nil
	}
	if _, err := c.redis.Do(ctx, "PING"); err != nil {
		return fmt.Errorf("Redis connection failed: %w", err)
	}
	return nil
}

func (c *cache) get(d *reqDB, key string) (value string, found bool, err error) {
	if c.redis != nil {
		v, err := c.redis.Do(d.ctx, "GET", key)
		s, ok := v.(string)
		return s, ok, err
	}
	var expires time.Time
	found, err = d.one([]any{&value, &expires}, "SELECT value, expires FROM django_postgres_cache_cacheentry WHERE cache_key = $1", key)
	return value, found && expires.After(time.Now()), err
}

// set is one upsert in its own commit (facts/authentik.md §1.3).
func (c *cache) set(d *reqDB, key, value string, ttl time.Duration) error {
	if c.redis != nil {
		_, err := c.redis.Do(d.ctx, "SET", key, value, "EX", strconv.Itoa(int(ttl.Seconds())))
		return err
	}
	return d.exec(`INSERT INTO django_postgres_cache_cacheentry (cache_key, value, expires) VALUES ($1, $2, $3) ON CONFLICT (cache_key) DO UPDATE SET value = EXCLUDED.value, expires = EXCLUDED.expires`, key, value, time.Now().Add(ttl))
}

// throttle is DRF's anonymous throttle: one row per client address, read and written back by every anonymous API
// request up to 2026.5. An expired row is deleted when it is read, as Django's cache does it: the one DELETE more
// that a first hit may show (facts/authentik-measured.md §2.1). The rate is 1000 a second, so it never refuses here.
func (c *cache) throttle(d *reqDB, ip string) error {
	key := throttleKey(ip)
	if c.redis == nil {
		var value string
		var expires time.Time
		found, err := d.one([]any{&value, &expires}, "SELECT value, expires FROM django_postgres_cache_cacheentry WHERE cache_key = $1", key)
		if err != nil {
			return err
		}
		if found && expires.Before(time.Now()) {
			d.others++ // one statement more than the steady count
			if err := d.raw("DELETE FROM django_postgres_cache_cacheentry WHERE cache_key = $1", key); err != nil {
				return err
			}
		}
	} else if _, _, err := c.get(d, key); err != nil {
		return err
	}
	return c.set(d, key, pickle(40), throttleTTL)
}

// throttleTTL is the window of the 1000/second rate.
const throttleTTL = time.Second

// flush deletes everybody's policy results and application lists: what saving last_login did before 2026.5.4. The
// keys are found by scanning the table with a pattern, then deleted in one commit.
func (c *cache) flush(d *reqDB) error {
	if c.redis != nil {
		v, err := c.redis.Do(d.ctx, "KEYS", policyPrefix+"*")
		keys, _ := v.([]any)
		if err != nil || len(keys) == 0 {
			return err
		}
		del := []string{"DEL"}
		for _, k := range keys {
			if s, ok := k.(string); ok {
				del = append(del, s)
			}
		}
		_, err = c.redis.Do(d.ctx, del...)
		return err
	}
	if err := d.all(nil, `SELECT cache_key FROM django_postgres_cache_cacheentry WHERE cache_key ~ $1`, "^"+policyPrefix+".*$"); err != nil {
		return err
	}
	return d.exec(`DELETE FROM django_postgres_cache_cacheentry WHERE cache_key ~ $1`, "^"+policyPrefix+".*$")
}
