//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
)

// A measurement whose generator went away has no result, and says why; it never passes on what was measured till then.
func generatorIsTakenAway(t *testing.T) {
	makeScripts(t, "hungry", map[string]string{"script.js": "const held = []; export default function () { for (;;) held.push(new Array(4194304).fill(held.length)); }"})
	for name, c := range map[string]struct {
		scenario string
		take     func(pod *corev1.Pod) error
		says     string
	}{
		"killed": {"name: Login", func(pod *corev1.Pod) error {
			return kube.Delete(context.Background(), pod, client.GracePeriodSeconds(0))
		}, "run the test again"},
		"evicted": {"name: Login", func(pod *corev1.Pod) error {
			return clientset.PolicyV1().Evictions(pod.Namespace).Evict(context.Background(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
		}, "run the test again"},
		"out-of-memory": {script("hungry", "script.js"), nil, "want of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			applyTest(t, name, c.scenario+", iterations: 2000", generator)
			if c.take != nil {
				if err := c.take(generatorPod(t, name, corev1.PodRunning)); err != nil {
					t.Fatal(err)
				}
			}
			endsInError(t, name, c.says)
		})
	}
}

// makeScripts makes a ConfigMap with k6 scripts.
func makeScripts(t *testing.T, name string, scripts map[string]string) {
	t.Helper()
	_, err := clientset.CoreV1().ConfigMaps(measuredNamespace).Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: scripts}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func script(configMap, key string) string {
	return fmt.Sprintf("name: Script, script: {configMapRef: {name: %s, key: %s}}", configMap, key)
}

// state is a path in the folder of the test cluster, which is the machine that the test runs on.
func state(parts ...string) string {
	return filepath.Join(append([]string{filepath.Dir(os.Getenv("KUBECONFIG"))}, parts...)...)
}

// onNode runs a command among the mounts of the node.
func onNode(t *testing.T, command ...string) string {
	t.Helper()
	out, err := exec.Command("nsenter", append([]string{"--mount=" + state("ns", "mnt"), "--"}, command...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
	return string(out)
}

// generatorPod is the Pod of a LatencyTest's k6 as soon as it is one of those phases.
func generatorPod(t *testing.T, test string, phases ...corev1.PodPhase) *corev1.Pod {
	t.Helper()
	var found *corev1.Pod
	eventually(t, fmt.Sprintf("the generator of %s is %v", test, phases), 3*time.Minute, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := kube.List(ctx, &pods, client.InNamespace(measuredNamespace), client.HasLabels{batchv1.JobNameLabel}); err != nil {
			return err
		}
		for i := range pods.Items {
			if strings.HasPrefix(pods.Items[i].Name, test+"-") && slices.Contains(phases, pods.Items[i].Status.Phase) {
				found = &pods.Items[i]
				return nil
			}
		}
		return errorf("%d Pods of Jobs, none of it", len(pods.Items))
	})
	return found
}

// endsInError checks the verdict of a LatencyTest and what it says.
func endsInError(t *testing.T, name, says string) {
	t.Helper()
	verdict, message := verdictOf(t, name)
	if verdict != v1alpha1.VerdictError || !strings.Contains(message, says) {
		t.Errorf("the verdict is %s: %s", verdict, message)
	}
	t.Logf("%s: %s", verdict, message)
}

// logIsFull: what k6 writes into its log is kept by the node, which has only so much room for it.
func logIsFull(t *testing.T) {
	makeScripts(t, "chatty", map[string]string{
		// Its result is longer than 4 KiB.
		"short.js": "import http from 'k6/http'; import { baseURL, headers } from './lib/stack.js';\n" +
			"export default function () { for (const endpoint of 'abcdefghijklmnopqrst') http.get(`${baseURL}/-/health/live/`, { headers, tags: { endpoint } }); }",
		// k6 warns of each request that got no answer, and names its address: 38 MB of it in half a minute. The kubelet looks every
		// ten seconds whether a log has more than 10 MiB.
		"long.js": "import http from 'k6/http'; import { sleep } from 'k6';\nconst address = `https://10.96.0.1/${'x'.repeat(15000)}`;\nexport default function () { for (let i = 0; i < 25; i++) http.get(address); sleep(0.3); }",
	})
	t.Run("for want of room on the node's disk", func(t *testing.T) {
		const name = "disk-full"
		// The Pod of k6 waits until its log has next to no room.
		kubectl(t, "cordon", "-l", "kubernetes.io/os=linux")
		defer kubectl(t, "uncordon", "-l", "kubernetes.io/os=linux")
		applyTest(t, name, script("chatty", "short.js")+", iterations: 60, warmUpIterations: 2", generator)
		pod := generatorPod(t, name, corev1.PodPending)
		folder := state("pods", fmt.Sprintf("%s_%s_%s", pod.Namespace, pod.Name, pod.UID))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		onNode(t, "mount", "-t", "tmpfs", "-o", "size=4k", "devcluster", folder)
		defer onNode(t, "umount", "--lazy", folder)
		kubectl(t, "uncordon", "-l", "kubernetes.io/os=linux")
		endsInError(t, name, "the disk of the node was full")
		if t.Failed() {
			t.Logf("the node has\n%s", onNode(t, "find", folder, "-ls"))
		}
	})
	t.Run("so that the kubelet rotates it, and the result at its end is read", func(t *testing.T) {
		const name = "rotated"
		applyTest(t, name, script("chatty", "long.js")+", iterations: 100, warmUpIterations: 1", generator)
		pod := generatorPod(t, name, corev1.PodRunning)
		logs := state("pods", fmt.Sprintf("%s_%s_%s", pod.Namespace, pod.Name, pod.UID), "k6", "*")
		eventually(t, "the log is rotated", 3*time.Minute, func(context.Context) error {
			if files, err := filepath.Glob(logs); err != nil || len(files) < 2 {
				return errorf("the node has %v, %v", files, err)
			}
			return nil
		})
		endsInError(t, name, "asked for another address than the stack's")
	})
	t.Run("so that the Pod is evicted", func(t *testing.T) {
		const name = "storage-limit"
		applyTest(t, name, script("chatty", "long.js")+", iterations: 200, warmUpIterations: 1", strings.Replace(generator, "limits: {", "limits: {ephemeral-storage: 2Mi, ", 1))
		endsInError(t, name, "raise ephemeral-storage in spec.generator.resources")
	})
}

// targetIsBroken: no answers, wrong answers, no script.
func targetIsBroken(t *testing.T) {
	t.Run("a script with a syntax error", func(t *testing.T) {
		makeScripts(t, "broken", map[string]string{"script.js": "export default function () {\n  if (\n}\n"})
		applyTest(t, "syntax-error", script("broken", "script.js")+", iterations: 10", generator)
		endsInError(t, "syntax-error", "A script of k6 is broken")
	})
	t.Run("a stack that cannot be reached", func(t *testing.T) {
		applyTest(t, "unreachable", "name: Login, iterations: 20, warmUpIterations: 400, connections: New", generator)
		pod := generatorPod(t, "unreachable", corev1.PodRunning)
		service, err := clientset.CoreV1().Services(measuredNamespace).Get(context.Background(), measuredStack+"-authentik", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		// What a NetworkPolicy does to the generator where it is minded, from the middle of the warm-up on.
		if out, err := exec.Command("nsenter", "--net=/proc/"+processOf(t, pod)+"/ns/net", "--", "ip", "route", "add", "unreachable", service.Spec.ClusterIP).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		endsInError(t, "unreachable", "no answer from the target in 10 iterations in a row, at last: no answer (connecting failed)")
	})
	t.Run("a stack that answers 500, fast", func(t *testing.T) {
		// The double asks for its flow in each request, and for nothing of it when it is asked whether it is healthy.
		rename := func(from, to string) {
			kubectl(t, "exec", "-n", measuredNamespace, measuredStack+"-postgres-0", "-c", "postgres", "--", "psql", "-h", "/run/postgresql", "-U", "postgres", "-d", "authentik", "-c",
				fmt.Sprintf("ALTER TABLE %s RENAME TO %s", from, to))
		}
		applyTest(t, "answers-500", "name: Login, iterations: 100, warmUpIterations: 2", generator)
		generatorPod(t, "answers-500", corev1.PodRunning)
		rename("authentik_flows_flow", "elsewhere")
		defer rename("elsewhere", "authentik_flows_flow")
		verdict, message := verdictOf(t, "answers-500")
		if verdict != v1alpha1.VerdictFailed || !strings.Contains(message, "500") {
			t.Errorf("the verdict is %s: %s", verdict, message)
		}
		t.Logf("%s: %s", verdict, message)
	})
}

// processOf is the number of a process of a Pod.
func processOf(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	cgroups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range cgroups {
		if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), "pod"+string(pod.UID)) {
			return filepath.Base(filepath.Dir(path))
		}
	}
	t.Fatalf("no process of Pod %s", pod.Name)
	return ""
}
