package latency

import (
	"errors"

	"authstack.dev/authstack/api/v1alpha1"
)

// User is a test user. There may be several; they take turns.
type User struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// OIDCClient is the client that the scenario OIDC signs in to.
type OIDCClient struct {
	ClientID     string `json:"clientID"`
	ClientSecret string `json:"clientSecret"`
	RedirectURI  string `json:"redirectURI"`
	// Application is the slug of its application in authentik, which its issuer is named after.
	Application string `json:"application,omitempty"`
}

// Credentials are what a run needs that is secret: credentials.json. They go into a Secret, or a file that
// only its owner can read, and nowhere else.
type Credentials struct {
	// Users to log in as.
	Users []User `json:"users"`
	// OIDC is the client of the scenario OIDC; nil without it.
	OIDC *OIDCClient `json:"oidc,omitempty"`
}

// Secrets are the values that may stand in no message.
func (c *Credentials) Secrets() []string {
	var all []string
	for _, user := range c.Users {
		all = append(all, user.Password)
	}
	if c.OIDC != nil {
		all = append(all, c.OIDC.ClientSecret)
	}
	return all
}

// Client is the client that the test names for the scenario OIDC. Nil without an error: there is no such
// scenario, or the client is made for the run. The error is a sentence for the status that says what to
// write; a run outside of a cluster has its client from its caller and asks for none.
func (p *Plan) Client() (*v1alpha1.OIDCClient, error) {
	for _, s := range p.Scenarios {
		switch {
		case s.Name != v1alpha1.ScenarioOIDC:
		case p.Provider == Authentik && s.OIDC != nil:
			return nil, errors.New("scenario OIDC makes its own client in authentik; remove oidc")
		case p.Provider == Authelia && s.OIDC == nil:
			return nil, errors.New("scenario OIDC needs a client, and Authelia has its clients in its configuration; write scenarios: " +
				"[{name: OIDC, oidc: {clientSecretRef: {name: latency-client}}}] with a Secret of the keys client_id, client_secret and redirect_uri, " +
				"and declare the client in the AuthStack's spec.authelia.extraConfig as docs/scenarios.md shows")
		default:
			return s.OIDC, nil
		}
	}
	return nil, nil
}
