package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/idp"
	"authstack.dev/authstack/internal/latency"
)

// AdminAPI is Users over the products' real admin APIs.
type AdminAPI struct{}

// EnsureUser makes a user in authentik.
func (AdminAPI) EnsureUser(ctx context.Context, baseURL, token, username, password string) error {
	return (&idp.Authentik{BaseURL: baseURL, Token: token}).EnsureUser(ctx, username, password)
}

// RemoveUsers removes users of authentik.
func (AdminAPI) RemoveUsers(ctx context.Context, baseURL, token, prefix string) error {
	return (&idp.Authentik{BaseURL: baseURL, Token: token}).RemoveUsers(ctx, prefix)
}

// EnsureForwardAuth makes an application behind authentik's embedded outpost.
func (AdminAPI) EnsureForwardAuth(ctx context.Context, baseURL, token string, app idp.ForwardAuth) error {
	return (&idp.Authentik{BaseURL: baseURL, Token: token}).EnsureForwardAuth(ctx, app)
}

// RemoveForwardAuth removes an application of EnsureForwardAuth.
func (AdminAPI) RemoveForwardAuth(ctx context.Context, baseURL, token, name string) error {
	return (&idp.Authentik{BaseURL: baseURL, Token: token}).RemoveForwardAuth(ctx, name)
}

// EnsureOIDC makes an application with a provider of OpenID Connect.
func (AdminAPI) EnsureOIDC(ctx context.Context, baseURL, token string, app idp.OIDC) error {
	return (&idp.Authentik{BaseURL: baseURL, Token: token}).EnsureOIDC(ctx, app)
}

// RemoveOIDC removes an application of EnsureOIDC.
func (AdminAPI) RemoveOIDC(ctx context.Context, baseURL, token, name string) error {
	return (&idp.Authentik{BaseURL: baseURL, Token: token}).RemoveOIDC(ctx, name)
}

// mostUsers bounds the users of a test; virtual users beyond take turns.
const mostUsers = 16

// applicationName is the name of a test's application in authentik. It follows from the test, so that
// no operator ever makes a second one and any can find the first.
func applicationName(test *v1alpha1.LatencyTest) string {
	sum := sha256.Sum256([]byte(test.UID))
	return "authstack-latency-" + hex.EncodeToString(sum[:])[:10]
}

// oidcName is the name of a test's OpenID Connect application, and its client ID.
func oidcName(test *v1alpha1.LatencyTest) string { return applicationName(test) + "-oidc" }

// userPrefix starts the names of a test's users, which follow from the test likewise.
func userPrefix(test *v1alpha1.LatencyTest) string { return applicationName(test) + "-" }

// credentials are what a repeat logs in with: the users, and the client of the scenario OIDC. Where the
// product lets the operator make them, each run has its own.
func (r *LatencyTestReconciler) credentials(ctx context.Context, t *run, repeat int32) (latency.Credentials, error) {
	own, err := r.made(ctx, t, repeat)
	if err != nil {
		return own, err
	}
	if own.Users, err = r.users(ctx, t, own.Users); err != nil {
		return own, err
	}
	if t.plan.Asks(v1alpha1.ScenarioOIDC) {
		own.OIDC, err = r.client(ctx, t, own.OIDC)
	}
	return own, err
}

// users that a repeat logs in as; own are those that the operator makes.
func (r *LatencyTestReconciler) users(ctx context.Context, t *run, own []latency.User) ([]latency.User, error) {
	if t.target.UserSecretName != "" {
		data, err := r.secret(ctx, t, t.target.UserSecretName)
		if err != nil {
			return nil, err
		}
		user := latency.User{Username: string(data[t.target.UsernameKey]), Password: string(data[t.target.PasswordKey])}
		if user.Username == "" || user.Password == "" {
			return nil, fmt.Errorf("Secret %s needs the keys %s and %s", t.target.UserSecretName, t.target.UsernameKey, t.target.PasswordKey)
		}
		return []latency.User{user}, nil
	}
	admin, err := r.secret(ctx, t, t.target.AdminSecretName)
	if err != nil {
		return nil, err
	}
	for _, user := range own {
		if err := r.Users.EnsureUser(ctx, t.target.BaseURL, string(admin[t.target.AdminTokenKey]), user.Username, user.Password); err != nil {
			return nil, fmt.Errorf("making the test user with the key %s of Secret %s: %w", t.target.AdminTokenKey, t.target.AdminSecretName, err)
		}
	}
	return own, nil
}

// client of OpenID Connect: with Authelia the one that the test names, for authentik own is made.
func (r *LatencyTestReconciler) client(ctx context.Context, t *run, own *latency.OIDCClient) (*latency.OIDCClient, error) {
	ref, err := t.plan.Client()
	if err != nil {
		return nil, err
	}
	if ref != nil {
		name := ref.ClientSecretRef.Name
		data, err := r.secret(ctx, t, name)
		if err != nil {
			return nil, err
		}
		given := &latency.OIDCClient{ClientID: string(data["client_id"]), ClientSecret: string(data["client_secret"]), RedirectURI: string(data["redirect_uri"])}
		if given.ClientID == "" || given.ClientSecret == "" || given.RedirectURI == "" {
			return nil, fmt.Errorf("Secret %s needs the keys client_id, client_secret and redirect_uri, as the client stands in Authelia's configuration", name)
		}
		return given, nil
	}
	admin, err := r.secret(ctx, t, t.target.AdminSecretName)
	if err != nil {
		return nil, err
	}
	app := idp.OIDC{Name: own.Application, ClientID: own.ClientID, ClientSecret: own.ClientSecret, RedirectURI: own.RedirectURI}
	if err := r.Users.EnsureOIDC(ctx, t.target.BaseURL, string(admin[t.target.AdminTokenKey]), app); err != nil {
		return nil, fmt.Errorf("making the client for OIDC: %w", err)
	}
	return own, nil
}

// protect has something for forward auth to protect, where the plan asks for it: with Authelia the
// stack's own access rules name it, for authentik it is made.
func (r *LatencyTestReconciler) protect(ctx context.Context, t *run) error {
	if t.target.AdminSecretName == "" || !t.plan.Asks(v1alpha1.ScenarioForwardAuth) {
		return nil
	}
	admin, err := r.secret(ctx, t, t.target.AdminSecretName)
	if err != nil {
		return err
	}
	app := idp.ForwardAuth{Name: applicationName(t.test), Portal: "https://" + t.target.Host}
	app.Host = latency.ForwardAuthHost(app.Name, t.target.Host)
	if err := r.Users.EnsureForwardAuth(ctx, t.target.BaseURL, string(admin[t.target.AdminTokenKey]), app); err != nil {
		return fmt.Errorf("making the application for forward auth with the key %s of Secret %s: %w", t.target.AdminTokenKey, t.target.AdminSecretName, err)
	}
	t.target.ProtectedHost = app.Host
	return nil
}

func (r *LatencyTestReconciler) secret(ctx context.Context, t *run, name string) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	if err := r.Reader.Get(ctx, types.NamespacedName{Namespace: t.test.Namespace, Name: name}, secret); err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", name, err)
	}
	t.redactor.Add(secret.Data)
	return secret.Data, nil
}

// made are the credentials that the operator makes for a repeat: those of its Secret where an operator got
// so far before it died, else new ones. Whatever the Secret holds when the Job starts is what the identity
// provider was given.
func (r *LatencyTestReconciler) made(ctx context.Context, t *run, repeat int32) (latency.Credentials, error) {
	var all latency.Credentials
	secret := &corev1.Secret{}
	err := r.Reader.Get(ctx, types.NamespacedName{Namespace: t.test.Namespace, Name: latency.JobName(t.test.Name, t.number, repeat)}, secret)
	if err != nil || !metav1.IsControlledBy(secret, t.test) || json.Unmarshal(secret.Data["credentials.json"], &all) != nil || len(all.Users) == 0 {
		all = latency.Credentials{}
	}
	for len(all.Users) < userCount(t.plan) {
		password, err := r.password()
		if err != nil {
			return all, err
		}
		all.Users = append(all.Users, latency.User{Username: fmt.Sprintf("%s%d", userPrefix(t.test), len(all.Users)+1), Password: password})
	}
	if name := oidcName(t.test); all.OIDC == nil && t.plan.Asks(v1alpha1.ScenarioOIDC) {
		secret, err := r.password()
		if err != nil {
			return all, err
		}
		all.OIDC = &latency.OIDCClient{ClientID: name, ClientSecret: secret, RedirectURI: latency.OIDCRedirectURI(name, t.target.Host), Application: name}
	}
	for _, value := range all.Secrets() {
		t.redactor.AddString(value)
	}
	return all, nil
}

// password that nobody can guess.
func (r *LatencyTestReconciler) password() (string, error) {
	random := make([]byte, 24)
	if _, err := io.ReadFull(r.Random, random); err != nil {
		return "", fmt.Errorf("reading randomness for a password: %w", err)
	}
	return hex.EncodeToString(random), nil
}

func userCount(plan *latency.Plan) int {
	count := int32(1)
	for _, scenario := range plan.Scenarios {
		if scenario.VirtualUsers != nil {
			count = max(count, *scenario.VirtualUsers)
		}
	}
	return int(min(count, mostUsers))
}

// removeUsers removes the users and the applications of a test, where there is still something to
// remove them from.
func (r *LatencyTestReconciler) removeUsers(ctx context.Context, t *run) error {
	if t.stack == nil {
		return nil // They went with their stack, or go with it.
	}
	if err := t.resolveTarget(); err != nil || t.target.AdminSecretName == "" {
		return nil
	}
	admin, err := r.secret(ctx, t, t.target.AdminSecretName)
	if err != nil {
		if strings.Contains(err.Error(), "not found") {
			return nil
		}
		return err
	}
	token := string(admin[t.target.AdminTokenKey])
	// Whatever the test's spec says now: the run may have begun with another one.
	if err := r.Users.RemoveForwardAuth(ctx, t.target.BaseURL, token, applicationName(t.test)); err != nil {
		return err
	}
	if err := r.Users.RemoveOIDC(ctx, t.target.BaseURL, token, oidcName(t.test)); err != nil {
		return err
	}
	return r.Users.RemoveUsers(ctx, t.target.BaseURL, token, userPrefix(t.test))
}
