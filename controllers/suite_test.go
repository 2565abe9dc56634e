package controllers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// The API server of these tests, and a client of it that no fault touches.
var (
	config *rest.Config
	server client.WithWatch
)

// logged is what the operator logs.
var logged logBuffer

type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		fmt.Fprintln(os.Stderr, "These tests need a real API server: run make test-api, or set KUBEBUILDER_ASSETS to the directory that devcluster envtest-assets prints.")
		return 1
	}
	ctrl.SetLogger(zap.New(zap.WriteTo(&logged), zap.UseDevMode(true)))
	environment := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join("..", "config", "crd", "bases")}, ErrorIfCRDPathMissing: true,
		CRDInstallOptions: envtest.CRDInstallOptions{MaxTime: 2 * time.Minute}}
	// envtest's own range has 254 addresses, enough for a hundred stacks.
	environment.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.0.0.0/16")
	var err error
	if config, err = environment.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "the API server did not start:", err)
		return 1
	}
	defer func() {
		if err := environment.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	config.QPS, config.Burst = 1000, 2000
	if server, err = client.NewWithWatch(config, client.Options{Scheme: NewScheme()}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

var (
	namespaces     int
	namespacesLock sync.Mutex
)

// newNamespace for one test; the API server has no controller that would empty it again.
func newNamespace(t testing.TB) string {
	t.Helper()
	namespacesLock.Lock()
	namespaces++
	name := fmt.Sprintf("stacks-%d", namespaces)
	namespacesLock.Unlock()
	if err := server.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	return name
}
