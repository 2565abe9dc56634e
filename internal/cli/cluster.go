package cli

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
)

// cluster is the one that the kubeconfig and the flags name.
type cluster struct {
	kubeconfig, context, namespace string
}

// config is the way to the API server, and the namespace to work in.
func (c *cluster) config() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.context}
	overrides.Context.Namespace = c.namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("read kubeconfig: %w", err)
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("read kubeconfig: %w; name one with --kubeconfig or KUBECONFIG", err)
	}
	return config, namespace, nil
}

// client connects and returns the namespace to work in.
func (c *cluster) client() (client.Client, string, error) {
	config, namespace, err := c.config()
	if err != nil {
		return nil, "", err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, "", err
		}
	}
	k8s, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, "", fmt.Errorf("connect: %w", err)
	}
	return k8s, namespace, nil
}

// explain says what to do about an error of the API server.
func explain(err error, kind string, key client.ObjectKey) error {
	switch {
	case err == nil:
		return nil
	case meta.IsNoMatchError(err):
		return fmt.Errorf("this cluster has no AuthStacks: install the operator first, or name another cluster with --context: %w", err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no %s %s in namespace %s; kubectl get %ss -A lists them, -n names a namespace", kind, key.Name, key.Namespace, kind)
	}
	return err
}
