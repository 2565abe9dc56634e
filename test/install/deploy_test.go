package install

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// What `make deploy` applies, applied with the kubectl of this Kubernetes to a real API server, and a
// second time over itself; then the minimal samples beside it.
func TestDeployWithoutHelm(t *testing.T) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run make test-api, or set it to the directory that devcluster envtest-assets prints")
	}
	environment := &envtest.Environment{}
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	user, err := environment.AddUser(envtest.User{Name: "installer", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, credentials, 0o600); err != nil {
		t.Fatal(err)
	}
	try := func(stdin io.Reader, name string, arguments ...string) ([]byte, error) {
		command := exec.CommandContext(t.Context(), name, arguments...)
		command.Dir, command.Stdin = root, stdin
		command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+assets+":"+os.Getenv("PATH"))
		var stderr bytes.Buffer
		command.Stderr = &stderr
		output, err := command.Output()
		if err != nil {
			err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(arguments, " "), err, stderr.String())
		}
		return output, err
	}
	run := func(stdin io.Reader, name string, arguments ...string) []byte {
		t.Helper()
		output, err := try(stdin, name, arguments...)
		if err != nil {
			t.Fatal(err)
		}
		return output
	}
	manifests := run(nil, "hack/render-install.sh", "registry.example.com/operator:v1", "registry.example.com/k6:v1")
	for range 2 {
		run(bytes.NewReader(manifests), "kubectl", "apply", "--server-side", "-f", "-")
	}
	cluster, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	operator := &appsv1.Deployment{}
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: "authstack-system", Name: "authstack"}, operator); err != nil {
		t.Fatal(err)
	}
	container := operator.Spec.Template.Spec.Containers[0]
	if container.Image != "registry.example.com/operator:v1" || !strings.Contains(strings.Join(container.Args, " "), "--k6-image=registry.example.com/k6:v1") {
		t.Errorf("the operator runs %s with %v", container.Image, container.Args)
	}
	established := func() error {
		_, err := try(nil, "kubectl", "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
		return err
	}
	err = established()
	// kubectl cannot wait for what has no conditions yet.
	for until := time.Now().Add(time.Minute); err != nil && strings.Contains(err.Error(), "conditions accessor error") && time.Now().Before(until); err = established() {
		time.Sleep(200 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	run(nil, "kubectl", "apply", "-k", "config/samples")
	// Each other sample is taken too; only its objects of other kinds need what this cluster has not.
	files, err := filepath.Glob(filepath.Join(root, "config/samples/*.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d samples, %v", len(files), err)
	}
	for _, file := range files {
		if filepath.Base(file) != "kustomization.yaml" {
			run(nil, "kubectl", "apply", "--server-side", "--dry-run=server", "-f", strings.TrimPrefix(file, root+"/"))
		}
	}
}
