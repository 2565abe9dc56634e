package authentik

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"authstack.dev/authstack/hack/doubles/internal/authentik/schema"
)

// migrationLock is the advisory lock under which server and worker both migrate (facts/authentik.md §4).
const migrationLock = 1000

// fixed ids of what the first start makes, so that the code need not look them up to know them.
var (
	idTenant     = uuid.NewSHA1(uuid.NameSpaceDNS, []byte("tenant"))
	idFlow       = uuid.NewSHA1(uuid.NameSpaceDNS, []byte("default-authentication-flow"))
	idAdmins     = uuid.NewSHA1(uuid.NameSpaceDNS, []byte("authentik Admins"))
	stageNames   = []string{"default-authentication-identification", "default-authentication-password", "default-authentication-mfa-validation", "default-authentication-login"}
	stageOrders  = []int{10, 20, 30, 100}
	stageModels  = []string{"identification_identificationstage", "password_passwordstage", "authenticator_validate_authenticatorvalidatestage", "user_login_userloginstage"}
	notification = []string{"default-notify-configuration-error", "default-notify-exception", "default-notify-update"}
)

func idStage(i int) uuid.UUID { return uuid.NewSHA1(uuid.NameSpaceDNS, []byte(stageNames[i])) }

// WaitForDB tries 30 times, a second apart, then gives up: the product's process exits then.
func (c *Config) WaitForDB(ctx context.Context, log *slog.Logger) (*pgx.Conn, error) {
	var err error
	for try := range 30 {
		var conn *pgx.Conn
		if conn, err = c.connectDirect(ctx); err == nil {
			return conn, nil
		}
		log.Info("PostgreSQL connection failed, retrying...", "attempt", try+1)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
	return nil, fmt.Errorf("PostgreSQL is not to be reached after 30 tries: %w", err)
}

// Migrate makes the schema and the default objects, under the lock that keeps all others waiting.
func (c *Config) Migrate(ctx context.Context, conn *pgx.Conn, log *slog.Logger) error {
	if c.UTF8Only {
		var enc string
		if err := conn.QueryRow(ctx, "SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()").Scan(&enc); err != nil {
			return err
		}
		if enc != "UTF8" {
			return fmt.Errorf("the database's encoding is %s; authentik %s wants UTF8", enc, c.Version)
		}
	}
	if _, err := conn.Exec(ctx, "SET client_min_messages = warning"); err != nil {
		return err
	}
	log.Info("waiting to acquire database lock")
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", migrationLock); err != nil {
		return err
	}
	defer func() { _, _ = conn.Exec(context.Background(), "SELECT pg_advisory_unlock($1)", migrationLock) }()
	var have bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass('public.django_migrations') IS NOT NULL").Scan(&have); err != nil {
		return err
	}
	if !have {
		log.Info("Applying migrations")
		if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return c.install(ctx, tx) }); err != nil {
			return err
		}
	}
	// A database of an earlier double has no outpost yet.
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'authentik_providers_proxy_proxysession'::regclass AND attname = 'session_key')").Scan(&have); err != nil {
		return err
	}
	if !have {
		if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return installOutpost(ctx, tx) }); err != nil {
			return err
		}
	}
	// Neither a new one nor one of an earlier double has OpenID Connect's columns yet.
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'authentik_providers_oauth2_refreshtoken'::regclass AND attname = 'token')").Scan(&have); err != nil {
		return err
	}
	if !have {
		if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return installOIDC(ctx, tx) }); err != nil {
			return err
		}
	}
	var seen bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM authentik_version_history WHERE version = $1)", c.Version).Scan(&seen); err != nil {
		return err
	}
	if !seen {
		if _, err := conn.Exec(ctx, `INSERT INTO authentik_version_history ("timestamp", version, build) VALUES (now(), $1, 'double')`, c.Version); err != nil {
			return err
		}
	}
	log.Info("Finished migrations")
	return nil
}

// install makes tables and the default blueprints' objects.
func (c *Config) install(ctx context.Context, tx pgx.Tx) error {
	exec := func(sql string, args ...any) error {
		if _, err := tx.Exec(ctx, sql, args...); err != nil {
			return fmt.Errorf("%.80s: %w", sql, err)
		}
		return nil
	}
	m := schema.Load()
	for _, sql := range m.DDL() {
		if err := exec(sql); err != nil {
			return err
		}
	}
	pbm := func() (uuid.UUID, error) {
		id := uuid.New()
		return id, exec("INSERT INTO authentik_policies_policybindingmodel VALUES ($1, 'any')", id)
	}
	err := firstError(
		exec(`INSERT INTO django_migrations (app, name, applied) VALUES ('authentik_core', '0001_initial', now()), ('authentik_flows', '0001_initial', now()), ('authentik_tasks', '0001_initial', now()), ('django_postgres_cache', '0001_initial', now())`),
		exec(`INSERT INTO authentik_tenants_tenant VALUES ($1, 'public', 'Default', true, 'gravatar,initials', true, false, false, 'days=365', -5, 5, '[]', true, true, 'days=1', 60)`, idTenant),
		exec(`INSERT INTO authentik_tenants_domain (domain, is_primary, tenant_id) VALUES ('localhost', true, $1)`, idTenant),
		exec(`INSERT INTO authentik_core_group VALUES ($1, 'authentik Admins', true, '{}')`, idAdmins),
	)
	if err != nil {
		return err
	}
	id, err := pbm()
	if err != nil {
		return err
	}
	if err := exec(`INSERT INTO authentik_flows_flow VALUES ($1, $2, 'Welcome to authentik!', 'default-authentication-flow', 'Welcome to authentik!', 'authentication', '', 'stacked', false, 'message_continue', 'none')`, idFlow, id); err != nil {
		return err
	}
	for slug, designation := range outpostFlows {
		id, err := pbm()
		if err != nil {
			return err
		}
		if err := exec(`INSERT INTO authentik_flows_flow VALUES ($1, $2, $3, $3, $3, $4, '', 'stacked', false, 'message_continue', 'require_authenticated')`, uuid.New(), id, slug, designation); err != nil {
			return err
		}
	}
	if err := exec(`INSERT INTO authentik_outposts_outpost (outpost_uuid, name, type, managed, _config) VALUES ($1, 'authentik Embedded Outpost', 'proxy', $2, '{"log_level":"info","authentik_host":"","authentik_host_insecure":false,"refresh_interval":"minutes=5"}')`, uuid.New(), embeddedOutpost); err != nil {
		return err
	}
	if err := exec(`INSERT INTO authentik_brands_brand VALUES ($1, 'authentik-default', true, 'authentik', '/static/dist/assets/icons/icon_left_brand.svg', '/static/dist/assets/icons/icon.png', '', $2, '{}')`, uuid.New(), idFlow); err != nil {
		return err
	}
	for i, name := range stageNames {
		id, err := pbm()
		if err != nil {
			return err
		}
		err = firstError(
			exec(`INSERT INTO authentik_flows_stage VALUES ($1, $2)`, idStage(i), name),
			exec(fmt.Sprintf(`INSERT INTO %s (stage_ptr_id) VALUES ($1)`, schema.Cut("authentik_stages_"+stageModels[i])), idStage(i)),
			exec(`INSERT INTO authentik_flows_flowstagebinding VALUES ($1, $2, false, true, 'retry', $3, $4, $5)`, uuid.New(), id, stageOrders[i], idStage(i), idFlow),
		)
		if err != nil {
			return err
		}
	}
	for _, n := range notification {
		id, err := pbm()
		if err != nil {
			return err
		}
		if err := exec(`INSERT INTO authentik_events_notificationrule (notificationrule_uuid, col_01, ref_01_id, ref_02_id) VALUES ($1, $2, $3, $4)`, uuid.New(), n, id, idAdmins); err != nil {
			return err
		}
	}
	return nil
}

// installOutpost makes the columns of the outpost's tables, the flows of its providers and the embedded outpost.
func installOutpost(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, schema.Outpost()); err != nil {
		return err
	}
	for slug, designation := range outpostFlows {
		id := uuid.New()
		if _, err := tx.Exec(ctx, "INSERT INTO authentik_policies_policybindingmodel VALUES ($1, 'any')", id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `INSERT INTO authentik_flows_flow VALUES ($1, $2, $3, $3, $3, $4, '', 'stacked', false, 'message_continue', 'require_authenticated')`, uuid.New(), id, slug, designation); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `INSERT INTO authentik_outposts_outpost (outpost_uuid, name, type, managed, _config) VALUES ($1, $2, 'proxy', $3, '{"log_level":"info","authentik_host":"","authentik_host_insecure":false,"refresh_interval":"minutes=5"}')`, uuid.New(), embeddedOutpostName, embeddedOutpost)
	return err
}

// seedApplications makes the demonstration applications, each with an OAuth2 provider and the first four with a
// group binding, as in the measured data (facts/authentik-measured.md §1).
func (c *Config) seedApplications(ctx context.Context, tx pgx.Tx, names []string) error {
	for i, name := range names {
		slug := strings.ToLower(strings.ReplaceAll(name, " ", "-"))
		var provider int
		id := uuid.New()
		err := firstError(
			tx.QueryRow(ctx, `INSERT INTO authentik_core_provider (name, is_backchannel, authorization_flow_id) VALUES ($1, false, $2) ON CONFLICT (name) DO UPDATE SET is_backchannel = false RETURNING id`, name, idFlow).Scan(&provider))
		if err != nil {
			return err
		}
		for _, s := range []struct {
			sql  string
			args []any
		}{
			{`INSERT INTO authentik_providers_oauth2_oauth2provider (provider_ptr_id) VALUES ($1) ON CONFLICT DO NOTHING`, []any{provider}},
			{`INSERT INTO authentik_policies_policybindingmodel VALUES ($1, 'any')`, []any{id}},
			{`INSERT INTO authentik_core_application VALUES ($1, $2, $3, '', false, $4, '', '', '', $5) ON CONFLICT DO NOTHING`, []any{id, name, slug, "https://" + slug + ".example.com", provider}},
			{`INSERT INTO authentik_policies_policybinding SELECT $1, true, 0, 30, false, false, NULL, $2, NULL, $3 WHERE $4 < 4 AND EXISTS (SELECT FROM authentik_core_application WHERE policybindingmodel_ptr_id = $2)`, []any{uuid.New(), id, idAdmins, i}},
		} {
			if _, err := tx.Exec(ctx, s.sql, s.args...); err != nil {
				return fmt.Errorf("%.80s: %w", s.sql, err)
			}
		}
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
