//go:build e2e

package e2e

import (
	"context"
	"encoding/base64"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Every value that any Secret of the stacks holds is a canary: it is looked for in every place that
// people or programs read.
func TestNothingSecretIsInAnyLogEventStatusConfigMapOrResult(t *testing.T) {
	ctx := context.Background()
	canaries := map[string]string{}
	for _, namespace := range []string{authentikNamespace, autheliaNamespace} {
		secrets := &corev1.SecretList{}
		if err := kube.List(ctx, secrets, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for _, secret := range secrets.Items {
			for key, value := range secret.Data {
				text := strings.TrimSpace(string(value))
				if len(text) >= 16 && len(text) <= 256 && !strings.ContainsAny(text, " \n") && !isName(key) {
					canaries[text] = secret.Namespace + "/" + secret.Name + "[" + key + "]"
				}
			}
		}
	}
	if len(canaries) < 6 {
		t.Fatalf("only %d secret values found; the stacks have more", len(canaries))
	}
	look := func(place, text string) {
		for canary, from := range canaries {
			if strings.Contains(text, canary) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(canary))) {
				t.Errorf("%s contains the secret of %s", place, from)
			}
		}
	}
	for _, namespace := range []string{authentikNamespace, autheliaNamespace, operatorNamespace} {
		for _, kind := range []string{"events", "configmaps", "authstacks", "latencytests", "jobs", "pods", "deployments", "statefulsets"} {
			look(kind+" of "+namespace, kubectl(t, "get", kind, "-n", namespace, "-o", "yaml", "--show-managed-fields"))
		}
		pods := &corev1.PodList{}
		if err := kube.List(ctx, pods, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods.Items {
			for _, container := range pod.Spec.Containers {
				for _, previous := range []bool{false, true} {
					stream, err := clientset.CoreV1().Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container.Name, Previous: previous}).Stream(ctx)
					if err != nil {
						continue // no previous container, or not started
					}
					text, _ := io.ReadAll(stream)
					_ = stream.Close()
					look("the log of "+namespace+"/"+pod.Name, string(text))
				}
			}
		}
	}
	// Process arguments of everything on the node.
	cmdlines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range cmdlines {
		if data, err := os.ReadFile(file); err == nil {
			look("the arguments of a process: "+strings.SplitN(string(data), "\x00", 2)[0], string(data))
		}
	}
	files, err := filepath.Glob(filepath.Join(demoOut, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no reports: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		look(file, string(data))
	}
}

// isName is whether a key of a Secret holds a name and not a secret.
func isName(key string) bool {
	key = strings.ToLower(key)
	return strings.Contains(key, "user") || strings.Contains(key, "host") || strings.Contains(key, "email") || strings.Contains(key, "database")
}
