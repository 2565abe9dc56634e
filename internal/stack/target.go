package stack

import (
	"errors"
	"fmt"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/stack/authelia"
	"authstack.dev/authstack/internal/stack/authentik"
	"authstack.dev/authstack/internal/stack/postgres"
)

// Target is where a latency test measures, from inside the cluster: always a Service that the
// operator made, with a user or token that it made.
type Target struct {
	// Provider is authentik or authelia, of this version.
	Provider, Version string
	// BaseURL of the Service, http://SERVICE.NAMESPACE.svc:PORT, without a trailing slash.
	BaseURL string
	// ServiceName is that Service.
	ServiceName string
	// Host is what a browser would have asked for; a script sends it as Host (authentik) or
	// X-Forwarded-Host with X-Forwarded-Proto https (Authelia).
	Host string
	// ProtectedHost is the name that the latency user may reach in forward authentication; empty for
	// authentik, where the test makes its own.
	ProtectedHost string
	// AdminSecretName with AdminTokenKey is authentik's API token, for making test users; empty for Authelia.
	AdminSecretName, AdminTokenKey string
	// UserSecretName with UsernameKey and PasswordKey is an existing user to log in as; empty for
	// authentik, where the test makes its own.
	UserSecretName, UsernameKey, PasswordKey string
}

// LatencyTarget of a stack.
func LatencyTarget(st *v1alpha1.AuthStack) (Target, error) {
	maker, _, err := productOf(st)
	if err != nil {
		return Target{}, err
	}
	return maker.target(st)
}

func authentikTarget(st *v1alpha1.AuthStack) (Target, error) {
	return Target{
		Provider: authentik.Name, Version: st.Spec.Authentik.Version,
		BaseURL:         fmt.Sprintf("http://%s.%s.svc:%d", authentik.ServiceName(st), st.Namespace, authentik.ServicePort),
		ServiceName:     authentik.ServiceName(st),
		Host:            st.Spec.Host,
		AdminSecretName: authentik.AdminSecretName(st), AdminTokenKey: authentik.KeyToken,
	}, nil
}

func autheliaTarget(st *v1alpha1.AuthStack) (Target, error) {
	target := Target{
		Provider: authelia.Name, Version: st.Spec.Authelia.Version,
		BaseURL:        fmt.Sprintf("http://%s.%s.svc:%d", authelia.ServiceName(st), st.Namespace, authelia.ServicePort),
		ServiceName:    authelia.ServiceName(st),
		Host:           st.Spec.Host,
		ProtectedHost:  authelia.ProtectedHost(st.Spec.Host),
		UserSecretName: authelia.LatencyUserSecret(st), UsernameKey: "username", PasswordKey: "password",
	}
	if target.UserSecretName == "" {
		return Target{}, errors.New("with LDAP the operator cannot make a user to measure with; name a Secret with username and password in spec.latency.userSecretName")
	}
	return target, nil
}

// DatabaseTargetOf is how to reach the database of a stack that runs, by the Secrets in the facts; nil
// where the one that opens it is missing.
func DatabaseTargetOf(st *v1alpha1.AuthStack, known facts.Stack) *DatabaseTarget {
	_, product, err := productOf(st)
	if err != nil {
		return nil
	}
	return postgres.New(st, product).Target(Input{Stack: st, Facts: known})
}

// LogLevel of the identity provider where it matters to its latency, empty where it does not.
func LogLevel(st *v1alpha1.AuthStack, known facts.Stack) string {
	if st.Spec.Authelia == nil {
		return ""
	}
	return authelia.LogLevel(Input{Stack: st, Facts: known})
}
