package addon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"authstack.dev/authstack/hack/devcluster/internal/cluster"
	"authstack.dev/authstack/hack/devcluster/internal/command"
	"authstack.dev/authstack/hack/devcluster/internal/kubeapi"
)

const (
	operatorModule    = "github.com/zalando/postgres-operator"
	operatorImage     = "ghcr.io/zalando/postgres-operator:v1.15.0"
	spiloImage        = "ghcr.io/zalando/spilo-17:4.0-p3"
	operatorNamespace = "postgres-operator"
)

// postgresOperator installs Zalando's operator: its CRDs and its roles come
// from its module, so that they are of the release that is run; its
// configuration and deployment are in manifests/addons.
func postgresOperator(ctx context.Context, c *cluster.Cluster) error {
	if err := c.Load(ctx, operatorImage, spiloImage); err != nil {
		return err
	}
	dir, err := command.Run(ctx, []string{"go", "list", "-m", "-f", "{{.Dir}}", operatorModule},
		command.In(c.Layout.InSource("postgres-operator")), command.Env("GOWORK=off"))
	if err != nil {
		return err
	}
	upstream := func(name string) (string, error) {
		data, err := os.ReadFile(filepath.Join(strings.TrimSpace(dir), "manifests", name))
		return "---\n" + string(data) + "\n", err
	}
	// The CRDs first: without them this release registers them itself, and ends
	// at its first start because it does so wrongly.
	crds := ""
	for _, name := range []string{"postgresql.crd.yaml", "operatorconfiguration.crd.yaml", "postgresteam.crd.yaml"} {
		text, err := upstream(name)
		if err != nil {
			return err
		}
		crds += text
	}
	if err := applyCRDs(ctx, c, crds, "postgresqls.acid.zalan.do", "operatorconfigurations.acid.zalan.do", "postgresteams.acid.zalan.do"); err != nil {
		return err
	}
	rbac, err := upstream("operator-service-account-rbac.yaml")
	if err != nil {
		return err
	}
	// Upstream's example lives in the namespace default.
	rbac = strings.ReplaceAll(rbac, "namespace: default", "namespace: "+operatorNamespace)
	ours, err := os.ReadFile(c.Layout.InSource("manifests", "addons", "postgres-operator.yaml"))
	if err != nil {
		return err
	}
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + operatorNamespace + "}\n"
	if err := c.Apply(ctx, []byte(namespace+rbac+"---\n"+string(ours))); err != nil {
		return err
	}
	api, err := c.API()
	if err != nil {
		return err
	}
	return c.Progress.Step("waiting for the postgres-operator", func() error {
		return kubeapi.Poll(ctx, 3*time.Minute, func(ctx context.Context) error {
			return api.DeploymentReady(ctx, operatorNamespace, "postgres-operator")
		})
	})
}
