package postgres

import (
	"cmp"

	"k8s.io/utils/ptr"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack/part"
)

// external is a database that exists: nothing is created, only the product's role is set.
type external struct {
	st   *v1alpha1.AuthStack
	spec v1alpha1.ExternalPostgres
}

func (external) name() string     { return "external" }
func (external) claims() []string { return nil }

// major is not known before it answers; only role settings are computed, which need it not.
func (external) major() int { return majorOf("") }

func (e external) secret(string) string { return e.spec.SecretName }

func (e external) plan(in part.Input, order order) (Result, error) {
	if state := part.RequireSecret(in, "spec.postgres.external.secretName", e.spec.SecretName, "username", "password"); !state.Ready {
		return Result{State: state}, nil
	}
	secret := in.Facts.Secrets[e.spec.SecretName]
	return Result{
		State: part.Ready(""),
		Database: &part.Database{
			Target: part.DatabaseTarget{
				Host: e.spec.Host, Port: ptr.Deref(e.spec.Port, Port), Database: order.database,
				User: string(secret["username"]), Password: string(secret["password"]),
				SSLMode: cmp.Or(e.spec.SSLMode, "require"),
			},
			ProductHost: e.spec.Host,
			SecretName:  e.spec.SecretName, UsernameKey: "username", PasswordKey: "password",
		},
	}, nil
}
