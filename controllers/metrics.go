package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/metrics"
	"authstack.dev/authstack/internal/result"
)

// Metrics shows the stacks of these namespaces (none means all) to Prometheus: stacks from the cache,
// full results from the API server, each once.
func Metrics(cached client.Client, reader client.Reader, namespaces []string) *metrics.Collector {
	return &metrics.Collector{
		List: func(ctx context.Context) ([]v1alpha1.AuthStack, error) {
			var stacks v1alpha1.AuthStackList
			if err := cached.List(ctx, &stacks); err != nil {
				return nil, fmt.Errorf("listing the AuthStacks: %w", err)
			}
			return slices.DeleteFunc(stacks.Items, func(st v1alpha1.AuthStack) bool {
				return len(namespaces) > 0 && !slices.Contains(namespaces, st.Namespace)
			}), nil
		},
		Load: func(ctx context.Context, namespace, test string) (*result.Run, error) {
			var config corev1.ConfigMap
			err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: resultName(test)}, &config)
			if err != nil {
				// A test that ended before it began has none, and an old one may be gone.
				return nil, client.IgnoreNotFound(err)
			}
			text, kept := config.Data["result.txt"]
			if !kept {
				return nil, nil
			}
			run, err := result.Read(strings.NewReader(text))
			if err != nil {
				return nil, fmt.Errorf("reading the result of LatencyTest %s/%s: %w", namespace, test, err)
			}
			return run, nil
		},
	}
}
