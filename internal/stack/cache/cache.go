// Package cache plans where a stack's cache and sessions are kept: in a Redis of its own, in its
// PostgreSQL, or in the product's memory. The product says which of them its version can use.
package cache

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack/part"
)

// Result is the planned cache.
type Result struct {
	Objects []client.Object
	State   part.State
	// Redis is how to reach it; nil where there is none.
	Redis *part.Redis
}

// Plan the cache that the product uses.
// The volume of Redis is of the StorageClass class, the database's; empty is the cluster's default.
func Plan(in part.Input, product part.Product, class string) (Result, error) {
	switch product.Cache {
	case part.CacheRedis:
		result, err := redis(in, product, class)
		if err != nil {
			return Result{}, fmt.Errorf("planning Redis: %w", err)
		}
		return result, nil
	default:
		return Result{State: part.Ready(product.CacheReason)}, nil
	}
}

// Status of the cache.
func Status(st *v1alpha1.AuthStack, product part.Product) *v1alpha1.CacheStatus {
	status := &v1alpha1.CacheStatus{Kind: product.Cache, Reason: product.CacheReason}
	if product.Cache == part.CacheRedis {
		status.Address = fmt.Sprintf("%s.%s.svc:%d", RedisName(st), st.Namespace, RedisPort)
	}
	return status
}

// Claims are the names of Redis' volume claims.
func Claims(st *v1alpha1.AuthStack, product part.Product) []string {
	if product.Cache != part.CacheRedis || appendOnly(redisSpec(st), product) == v1alpha1.RedisAppendDisabled {
		return nil
	}
	return []string{part.ClaimName(RedisName(st))}
}
