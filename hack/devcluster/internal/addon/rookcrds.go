package addon

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"authstack.dev/authstack/hack/devcluster/internal/cluster"
	"authstack.dev/authstack/hack/devcluster/internal/command"
)

const (
	rookModule = "github.com/rook/rook@v1.18.0"
	// rookSum is the hash of the module's zip. The checksum database does not
	// answer for this module everywhere, so it stands here as it would in a go.sum.
	rookSum = "h1:vkI3HeSoC1h595WHzC/4NuFjB/x6Westw8iEozfrbVE="
)

// rookKinds are what is wanted of Rook's CRDs.
var rookKinds = []string{"cephclusters.ceph.rook.io", "cephblockpools.ceph.rook.io"}

// rookCRDs installs Rook's CRDs and nothing that acts on them: whoever tests
// against them writes their status, too.
func rookCRDs(ctx context.Context, c *cluster.Cluster) error {
	// Apart from any module: none of ours depends on Rook.
	dir, err := os.MkdirTemp("", "devcluster-rook")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	out, err := command.Run(ctx, []string{"go", "mod", "download", "-json", rookModule},
		command.In(dir), command.Env("GOWORK=off", "GOFLAGS=-mod=mod", "GONOSUMDB=github.com/rook/rook"))
	if err != nil {
		return err
	}
	var module struct{ Dir, Sum string }
	if err := json.Unmarshal([]byte(out), &module); err != nil {
		return err
	}
	if module.Sum != rookSum {
		return fmt.Errorf("%s has the hash %s, not %s: it is not what was released", rookModule, module.Sum, rookSum)
	}
	data, err := os.ReadFile(filepath.Join(module.Dir, "deploy", "examples", "crds.yaml"))
	if err != nil {
		return err
	}
	chosen, err := choose(string(data), rookKinds)
	if err != nil {
		return err
	}
	return applyCRDs(ctx, c, chosen, rookKinds...)
}

// choose returns the objects of these names out of many YAML documents.
func choose(documents string, names []string) (string, error) {
	var chosen []string
	for document := range strings.SplitSeq(documents, "\n---\n") {
		var object struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return "", err
		}
		if slices.Contains(names, object.Metadata.Name) {
			chosen = append(chosen, document)
		}
	}
	if len(chosen) != len(names) {
		return "", fmt.Errorf("%d objects are there of %v", len(chosen), names)
	}
	return strings.Join(chosen, "\n---\n"), nil
}
