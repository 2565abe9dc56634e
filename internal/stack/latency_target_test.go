package stack_test

import (
	"strings"
	"testing"

	"authstack.dev/authstack/internal/stack"
)

func TestLatencyTarget(t *testing.T) {
	for name, want := range map[string]stack.Target{
		smallest: {
			Provider: "authentik", Version: "2026.8.3", BaseURL: "http://sso-authentik.auth.svc:80", ServiceName: "sso-authentik", Host: "sso.example.com",
			AdminSecretName: "sso-authentik-admin", AdminTokenKey: "token",
		},
		replicas: {
			Provider: "authelia", Version: "4.38.19", BaseURL: "http://sso-authelia.auth.svc:80", ServiceName: "sso-authelia", Host: "sso.example.com", ProtectedHost: "authstack-latency.example.com",
			UserSecretName: "sso-latency-user", UsernameKey: "username", PasswordKey: "password",
		},
	} {
		got, err := stack.LatencyTarget(cases[name]().Stack)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	in := cases["Authelia with LDAP on Zalando's PostgreSQL"]()
	in.Stack.Spec.Latency = nil
	if _, err := stack.LatencyTarget(in.Stack); err == nil || !strings.Contains(err.Error(), "spec.latency.userSecretName") {
		t.Errorf("LDAP without a user to measure with: %v", err)
	}
}
