package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// EnvtestAssets returns a folder with what controller-runtime's envtest runs.
// The executable behaves as the program whose name it is called by.
func (c *Cluster) EnvtestAssets(ctx context.Context) (string, error) {
	kubernetes, err := c.Kubernetes(ctx)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(filepath.Dir(kubernetes), "envtest")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"kube-apiserver", "etcd", "kubectl"} {
		err := os.Symlink(filepath.Join("..", filepath.Base(kubernetes)), filepath.Join(dir, name))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return "", err
		}
	}
	return dir, nil
}

// ExecKubectl becomes kubectl.
func (c *Cluster) ExecKubectl(args []string) error {
	path := c.Layout.InState("bin", "kubectl")
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("there is no cluster in %s: run `devcluster up` first", c.Layout.State)
	}
	env := append(os.Environ(), "KUBECONFIG="+c.Layout.Kubeconfig())
	return unix.Exec(path, append([]string{"kubectl"}, args...), env)
}
