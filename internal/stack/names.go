package stack

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack/cache"
	"authstack.dev/authstack/internal/stack/part"
	"authstack.dev/authstack/internal/stack/postgres"
)

// SecretNames are the Secrets that a plan of this stack reads: those it makes, those that Zalando's
// operator makes, and those that the spec names.
func SecretNames(st *v1alpha1.AuthStack) []string {
	maker, product, err := productOf(st)
	if err != nil {
		return nil
	}
	names := append(maker.secrets(st), postgres.New(st, product).Secret())
	if product.Cache == part.CacheRedis {
		names = append(names, cache.RedisName(st))
	}
	return tidy(names)
}

// ConfigMapNames are the ConfigMaps that the spec names.
func ConfigMapNames(st *v1alpha1.AuthStack) []string {
	maker, _, err := productOf(st)
	if err != nil {
		return nil
	}
	return tidy(maker.configMaps(st))
}

// GivenClaims are the PersistentVolumeClaims that the spec names. Unlike Claims, they are somebody
// else's: the operator mounts them and never changes or deletes them.
func GivenClaims(st *v1alpha1.AuthStack) []string {
	maker, _, err := productOf(st)
	if err != nil {
		return nil
	}
	return tidy(maker.claims(st))
}

// WorkloadNames are the Deployments and StatefulSets of the stack; that of Zalando's operator too.
func WorkloadNames(st *v1alpha1.AuthStack) []string {
	maker, product, err := productOf(st)
	if err != nil {
		return nil
	}
	names := maker.workloads(st)
	if db := postgres.New(st, product); !db.External() {
		names = append(names, postgres.ClusterName(st))
	}
	if product.Cache == part.CacheRedis {
		names = append(names, cache.RedisName(st))
	}
	return tidy(names)
}

// ServiceNames are the Services of the stack whose ClusterIP a plan may need.
func ServiceNames(st *v1alpha1.AuthStack) []string {
	maker, product, err := productOf(st)
	if err != nil {
		return nil
	}
	names := []string{maker.serviceName(st)}
	if db := postgres.New(st, product); !db.External() {
		names = append(names, postgres.ClusterName(st))
	}
	if product.Cache == part.CacheRedis {
		names = append(names, cache.RedisName(st))
	}
	return tidy(names)
}

// Claims are the PersistentVolumeClaims that the stack's data is on.
func Claims(st *v1alpha1.AuthStack) []string {
	_, product, err := productOf(st)
	if err != nil {
		return nil
	}
	return tidy(append(postgres.New(st, product).Claims(), cache.Claims(st, product)...))
}

// DatabaseSize is the size of each volume of the stack's database.
func DatabaseSize(st *v1alpha1.AuthStack) resource.Quantity {
	_, product, err := productOf(st)
	if err != nil {
		return resource.Quantity{}
	}
	return postgres.New(st, product).Size()
}

// ZalandoClusterName is the name of the postgresql resource, or "" where the stack has none.
func ZalandoClusterName(st *v1alpha1.AuthStack) string {
	if st.Spec.Postgres == nil || st.Spec.Postgres.Zalando == nil {
		return ""
	}
	return postgres.ClusterName(st)
}

func tidy(names []string) []string {
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}
