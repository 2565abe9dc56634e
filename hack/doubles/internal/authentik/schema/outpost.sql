-- What the embedded outpost and the provider behind it read and write, by the product's names
-- (authentik/providers/proxy/models.py, authentik/providers/oauth2/models.py, authentik/outposts/models.py). The tables
-- are those of tables.txt; these are their columns that count. authentik_providers_proxy_proxysession holds the
-- outpost's sessions from 2025.10.
ALTER TABLE authentik_providers_oauth2_oauth2provider ADD client_id varchar(255) UNIQUE, ADD client_secret varchar(255), ADD access_token_validity text;
ALTER TABLE authentik_providers_proxy_proxyprovider ADD external_host text, ADD mode text, ADD cookie_secret text;
ALTER TABLE authentik_providers_proxy_proxysession RENAME proxysession_uuid TO uuid;
ALTER TABLE authentik_providers_proxy_proxysession ADD session_key text NOT NULL UNIQUE, ADD user_id uuid, ADD session_data jsonb NOT NULL, ADD expires timestamptz NOT NULL, ADD expiring boolean NOT NULL;
ALTER TABLE authentik_outposts_outpost ADD name text NOT NULL UNIQUE, ADD type text NOT NULL, ADD managed text UNIQUE, ADD _config jsonb NOT NULL;
ALTER TABLE authentik_providers_oauth2_authorizationcode ADD code varchar(255) NOT NULL UNIQUE, ADD expires timestamptz NOT NULL;
ALTER TABLE authentik_providers_oauth2_accesstoken ADD token text NOT NULL, ADD expires timestamptz NOT NULL;
