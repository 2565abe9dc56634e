// Package chart tests what the Helm chart renders, with the real helm: against golden files (-update
// writes them), against the generated manifests, and that wrong values are refused with their name.
package chart

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files")

const root = "../.."

// images are the values without which the chart is refused.
const images = "image.repository=registry.example.com/authstack-operator,images.k6=registry.example.com/authstack-k6:v1"

func TestMain(m *testing.M) {
	flag.Parse()
	// helm is built from its own pinned module; a second time nothing happens.
	command := exec.Command("make", "--no-print-directory", "bin/helm")
	command.Dir = root
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestRenderedObjects(t *testing.T) {
	for name, arguments := range map[string][]string{
		"defaults": {},
		"everything": {
			"--set", "replicaCount=3,image.repository=registry.example.com/operator,image.tag=v1,networkPolicy.enabled=true",
			"--set", "images.authentik=a.example.com/authentik,images.authelia=a.example.com/authelia,images.postgres=a.example.com/postgres",
			"--set", "images.redis=a.example.com/redis:8,images.k6=a.example.com/k6:1,images.probe=a.example.com/probe:1,podAnnotations.revision=abc,extraArgs={--zap-log-level=debug}",
			"--set", "metrics.serviceMonitor.enabled=true,metrics.prometheusRule.enabled=true,metrics.dashboard.enabled=true,imagePullSecrets[0].name=pull,serviceAccount.annotations.owner=team,priorityClassName=high",
		},
		"two namespaces": {"--set", "watchNamespaces={sso,login}", "--set", "rbac.aggregate=false,metrics.service.enabled=false"},
	} {
		t.Run(name, func(t *testing.T) {
			rendered := withoutGeneratedRules(render(t, append(arguments, "--set", "crds.install=false")...))
			golden := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".golden.yaml")
			if *update {
				if err := os.WriteFile(golden, rendered, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(rendered, want) {
				t.Errorf("the chart renders something else than %s; if that is meant: make chart-update\n%s", golden, firstDifference(want, rendered))
			}
		})
	}
}

func TestClusterRoleIsTheGeneratedOne(t *testing.T) {
	generated := read(t, "config/rbac/role.yaml")
	for _, object := range objects(t, render(t)) {
		if object["kind"] == "ClusterRole" && strings.HasSuffix(nameOf(object), "-manager") {
			if !reflect.DeepEqual(object["rules"], generated["rules"]) {
				t.Error("the chart's ClusterRole is not config/rbac/role.yaml; run make generate")
			}
			return
		}
	}
	t.Error("the chart renders no ClusterRole of the manager")
}

// With watchNamespaces the rules are split in two; together they are the whole role again, but for what
// would be written outside of the namespaces: the pools and classes of cephRBD.blockPool, and the namespaces
// and volumes of comparisons.
func TestNamespacedRolesAreTheGeneratedOne(t *testing.T) {
	want := grants(read(t, "config/rbac/role.yaml"))
	for grant := range want {
		verb, kind, _ := strings.Cut(grant, " ")
		reads := verb == "get" || verb == "list" || verb == "watch"
		outside := slices.ContainsFunc([]string{"storageclasses", "cephblockpools", "/namespaces", "/persistentvolumes"}, func(name string) bool { return strings.HasSuffix(kind, name) })
		if !reads && outside {
			delete(want, grant)
		}
	}
	got := map[string]bool{}
	for _, object := range objects(t, render(t, "--set", "watchNamespaces={sso}", "--set", "rbac.aggregate=false")) {
		switch {
		case object["kind"] == "ClusterRole":
			for grant := range grants(object) {
				if !strings.HasPrefix(grant, "get ") && !strings.HasPrefix(grant, "list ") && !strings.HasPrefix(grant, "watch ") {
					t.Errorf("with watchNamespaces the operator may %s in the whole cluster", grant)
				}
				got[grant] = true
			}
		case object["kind"] == "Role" && strings.HasSuffix(nameOf(object), "-manager"):
			for grant := range grants(object) {
				got[grant] = true
			}
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the split roles grant\n%v\nand the generated one\n%v", got, want)
	}
}

func TestCustomResourceDefinitionsAreTheGeneratedOnes(t *testing.T) {
	for _, keep := range []string{"true", "false"} {
		found := 0
		for _, object := range objects(t, render(t, "--set", "crds.keep="+keep)) {
			if object["kind"] != "CustomResourceDefinition" {
				continue
			}
			found++
			annotations := object["metadata"].(map[string]any)["annotations"].(map[string]any)
			if policy := annotations["helm.sh/resource-policy"]; (policy == "keep") != (keep == "true") {
				t.Errorf("crds.keep=%s: resource-policy of %s is %v", keep, nameOf(object), policy)
			}
			delete(annotations, "helm.sh/resource-policy")
			plural := strings.TrimSuffix(nameOf(object), ".authstack.dev")
			if !reflect.DeepEqual(object, read(t, "config/crd/bases/authstack.dev_"+plural+".yaml")) {
				t.Errorf("the chart's %s is not the generated one; run make generate", nameOf(object))
			}
		}
		if found != 3 {
			t.Errorf("the chart renders %d CustomResourceDefinitions, not 3", found)
		}
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	for name, row := range map[string]struct{ set, refusal string }{
		"a value that does not exist":          {"replicas=2", "replicas"},
		"an image with a tag where none fits":  {"images.authentik=ghcr.io/goauthentik/server:2026.8.3", "images/authentik"},
		"a replica count in words":             {"replicaCount=two", "replicaCount"},
		"a namespace that is no name":          {"watchNamespaces={Demo}", "watchNamespaces"},
		"a misspelt pull policy":               {"image.pullPolicy=Sometimes", "pullPolicy"},
		"an argument that is none":             {"extraArgs={debug}", "extraArgs"},
		"a ServiceMonitor without its Service": {"metrics.serviceMonitor.enabled=true,metrics.service.enabled=false", "write metrics.service.enabled: true"},
		"no ServiceAccount and no name":        {"serviceAccount.create=false", "write serviceAccount.name"},
		"no image of the operator":             {"image.repository=", "write image.repository: registry.example.com/authstack-operator"},
		"no image of k6":                       {"images.k6=", "write images.k6: registry.example.com/authstack-k6:v1"},
	} {
		t.Run(name, func(t *testing.T) {
			output, err := helm(t, "template", "authstack", "charts/authstack", "--set", images, "--set", row.set)
			if err == nil {
				t.Fatal("it was not refused")
			}
			if !strings.Contains(string(output)+err.Error(), row.refusal) {
				t.Errorf("the refusal does not say %q:\n%s", row.refusal, output)
			}
		})
	}
}

// The operator reaches the databases of stacks through their NetworkPolicies, which know it by this label.
func TestTheOperatorKeepsItsLabel(t *testing.T) {
	for _, object := range objects(t, render(t, "--set", "nameOverride=other")) {
		if object["kind"] != "Deployment" {
			continue
		}
		pod := object["spec"].(map[string]any)["template"].(map[string]any)["metadata"].(map[string]any)["labels"].(map[string]any)
		if got := pod["app.kubernetes.io/name"]; got != "authstack" {
			t.Errorf("with nameOverride the operator's Pods are labelled app.kubernetes.io/name=%v", got)
		}
	}
}

func TestChartPassesLint(t *testing.T) {
	if output, err := helm(t, "lint", "--strict", "charts/authstack", "--set", images); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

func render(t *testing.T, arguments ...string) []byte {
	t.Helper()
	output, err := helm(t, append([]string{"template", "authstack", "charts/authstack", "--namespace", "authstack-system", "--set", images}, arguments...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return output
}

func helm(t *testing.T, arguments ...string) ([]byte, error) {
	t.Helper()
	// go test's cache knows the files that this process reads while tests run, not those that helm reads.
	err := filepath.WalkDir(filepath.Join(root, "charts"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			_, err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "bin/helm", arguments...)
	command.Dir = root
	return command.CombinedOutput()
}

func objects(t *testing.T, manifests []byte) []map[string]any {
	t.Helper()
	var found []map[string]any
	for _, document := range strings.Split(string(manifests), "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		if object != nil {
			found = append(found, object)
		}
	}
	return found
}

func read(t *testing.T, path string) map[string]any {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, []byte("\n"+string(content)))[0]
}

func nameOf(object map[string]any) string {
	return object["metadata"].(map[string]any)["name"].(string)
}

// grants of a role, one for each verb, group and resource.
func grants(role map[string]any) map[string]bool {
	found := map[string]bool{}
	for _, rule := range role["rules"].([]any) {
		rule := rule.(map[string]any)
		for _, group := range rule["apiGroups"].([]any) {
			for _, resource := range rule["resources"].([]any) {
				for _, verb := range rule["verbs"].([]any) {
					found[verb.(string)+" "+group.(string)+"/"+resource.(string)] = true
				}
			}
		}
	}
	return found
}

// withoutGeneratedRules leaves out what comes from the markers in controllers/; that it is right is
// tested above, and golden files should not change with every marker.
func withoutGeneratedRules(manifests []byte) []byte {
	documents := strings.Split(string(manifests), "\n---\n")
	for i, document := range documents {
		role := strings.Contains(document, "\nkind: ClusterRole\n") || strings.Contains(document, "\nkind: Role\n")
		if generated := strings.Contains(document, "-manager\n") || strings.Contains(document, "-cluster-reader\n"); role && generated {
			head, _, _ := strings.Cut(document, "\nrules:\n")
			documents[i] = head + "\nrules: [] # left out here"
		}
	}
	return []byte(strings.Join(documents, "\n---\n"))
}

func firstDifference(want, got []byte) string {
	wanted, gotten := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	for i := range min(len(wanted), len(gotten)) {
		if wanted[i] != gotten[i] {
			return "golden:   " + wanted[i] + "\nrendered: " + gotten[i]
		}
	}
	return "one is longer than the other"
}
