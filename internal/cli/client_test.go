package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"authstack.dev/authstack/internal/latency"
)

func TestTheClientOfALocalRun(t *testing.T) {
	whole := latency.OIDCClient{ClientID: "probe", ClientSecret: "s", RedirectURI: "https://probe.example.com/callback"}
	with := func(change func(*latency.OIDCClient)) *latency.OIDCClient {
		client := whole
		change(&client)
		return &client
	}
	for name, row := range map[string]struct {
		provider string
		client   *latency.OIDCClient
		says     string
	}{
		"Authelia's":                         {latency.Authelia, &whole, ""},
		"authentik's with its slug":          {latency.Authentik, with(func(c *latency.OIDCClient) { c.Application = "probe" }), ""},
		"authentik's without its slug":       {latency.Authentik, &whole, "set AUTHSTACK_OIDC_APPLICATION to its slug"},
		"none":                               {latency.Authelia, nil, "set AUTHSTACK_OIDC_CLIENT_ID"},
		"one without a place to go back to":  {latency.Authelia, with(func(c *latency.OIDCClient) { c.RedirectURI = "" }), "AUTHSTACK_OIDC_REDIRECT_URI"},
		"one without a secret":               {latency.Authelia, with(func(c *latency.OIDCClient) { c.ClientSecret = "" }), "AUTHSTACK_OIDC_CLIENT_SECRET"},
		"none, where a cluster would do one": {latency.Authentik, nil, "in a cluster a LatencyTest of authentik makes one"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkClient(row.provider, row.client)
			if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestSecretsOfALocalRun(t *testing.T) {
	t.Run("from a file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "credentials.json")
		text := `{"users": [{"username": "u", "password": "p"}], "oidc": {"clientID": "probe", "clientSecret": "s", "redirectURI": "https://r", "application": "a"}}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := (&localTarget{credentials: path}).secrets()
		if err != nil || found.Users[0].Password != "p" || *found.OIDC != (latency.OIDCClient{ClientID: "probe", ClientSecret: "s", RedirectURI: "https://r", Application: "a"}) {
			t.Errorf("%+v, %v", found, err)
		}
	})
	t.Run("from the environment", func(t *testing.T) {
		for name, value := range map[string]string{"USERNAME": "u", "PASSWORD": "p", "OIDC_CLIENT_ID": "probe", "OIDC_CLIENT_SECRET": "s", "OIDC_REDIRECT_URI": "https://r"} {
			t.Setenv("AUTHSTACK_"+name, value)
		}
		found, err := (&localTarget{}).secrets()
		if err != nil || checkClient(latency.Authelia, found.OIDC) != nil || len(found.Secrets()) != 2 {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

func TestTheClientOfATestIsASecret(t *testing.T) {
	named := measurement{scenarios: []string{"OIDC", "Login"}, client: "latency-client"}
	test, err := named.object("sso", "gate")
	if err != nil || test.Spec.Scenarios[0].OIDC.ClientSecretRef.Name != "latency-client" || test.Spec.Scenarios[1].OIDC != nil {
		t.Errorf("%+v, %v", test, err)
	}
	stray := measurement{scenarios: []string{"Login"}, client: "latency-client"}
	if _, err := stray.object("sso", "gate"); err == nil || !strings.Contains(err.Error(), "add --scenario OIDC") {
		t.Errorf("%v", err)
	}
}
