package stack

import (
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack/authelia"
	"authstack.dev/authstack/internal/stack/authentik"
	"authstack.dev/authstack/internal/stack/part"
)

// product is an identity provider: another one is another folder and another value here.
type product struct {
	describe        func(*v1alpha1.AuthStack) (part.Product, error)
	image           func(Input) string
	serviceName     func(*v1alpha1.AuthStack) string
	adminSecretName func(*v1alpha1.AuthStack) string
	// check says what is wrong before anything is planned.
	check func(Input) State
	plan  func(Input, part.Database, *part.Redis) ([]client.Object, State, error)
	// workloads that the plan makes; Secrets and ConfigMaps that it reads, its own among them; claims of
	// somebody else that it mounts.
	workloads, secrets, configMaps, claims func(*v1alpha1.AuthStack) []string
	// uploads says where uploaded files are kept; "" where the product has none.
	uploads func(Input) string
	target  func(*v1alpha1.AuthStack) (Target, error)
}

var authentikProduct = product{
	describe:        authentik.Product,
	image:           authentik.Image,
	serviceName:     authentik.ServiceName,
	adminSecretName: authentik.AdminSecretName,
	check:           authentik.Check,
	plan:            authentik.Plan,
	workloads:       authentik.Workloads,
	secrets:         authentik.Secrets,
	configMaps:      authentik.ConfigMaps,
	claims:          authentik.Claims,
	uploads:         authentik.Uploads,
	target:          authentikTarget,
}

var autheliaProduct = product{
	describe:        authelia.Product,
	image:           authelia.Image,
	serviceName:     authelia.ServiceName,
	adminSecretName: authelia.AdminSecretName,
	check:           authelia.Check,
	plan:            authelia.Plan,
	workloads:       authelia.Workloads,
	secrets:         authelia.Secrets,
	configMaps:      authelia.ConfigMaps,
	claims:          func(*v1alpha1.AuthStack) []string { return nil },
	uploads:         func(Input) string { return "" },
	target:          autheliaTarget,
}

// productOf the stack.
func productOf(st *v1alpha1.AuthStack) (product, part.Product, error) {
	var chosen product
	switch {
	case st.Spec.Authentik != nil && st.Spec.Authelia != nil:
		return product{}, part.Product{}, errors.New("set exactly one of spec.authentik and spec.authelia; a stack has one identity provider")
	case st.Spec.Authentik != nil:
		chosen = authentikProduct
	case st.Spec.Authelia != nil:
		chosen = autheliaProduct
	default:
		return product{}, part.Product{}, errors.New("set one of spec.authentik and spec.authelia")
	}
	described, err := chosen.describe(st)
	return chosen, described, err
}
