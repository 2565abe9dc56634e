-- What a client of OpenID Connect reads and writes, by the product's names (authentik/providers/oauth2/models.py,
-- authentik/crypto/models.py): the columns of tables.txt's tables that count.
ALTER TABLE authentik_core_propertymapping ADD name text, ADD managed text UNIQUE;
ALTER TABLE authentik_providers_oauth2_scopemapping ADD scope_name text, ADD description text;
ALTER TABLE authentik_crypto_certificatekeypair ADD name text UNIQUE, ADD key_data text;
ALTER TABLE authentik_providers_oauth2_oauth2provider ADD client_type varchar(30), ADD _redirect_uris jsonb, ADD refresh_token_validity text, ADD grant_types text[];
ALTER TABLE authentik_providers_oauth2_authorizationcode ADD _scope text, ADD nonce text, ADD code_challenge varchar(255), ADD code_challenge_method varchar(255);
ALTER TABLE authentik_providers_oauth2_accesstoken ADD _scope text, ADD _id_token text;
ALTER TABLE authentik_providers_oauth2_refreshtoken ADD token text NOT NULL, ADD expires timestamptz NOT NULL, ADD revoked boolean NOT NULL DEFAULT false, ADD _scope text, ADD _id_token text;
CREATE INDEX ON authentik_providers_oauth2_accesstoken USING hash (token);
CREATE INDEX ON authentik_providers_oauth2_refreshtoken USING hash (token);
