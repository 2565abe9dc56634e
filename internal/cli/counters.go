package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/report"
	"authstack.dev/authstack/internal/stack"
)

// parts of a stack in the order in which they are shown.
var parts = []string{"identity provider", "database", "cache"}

// podUsage is what the kubelet counted of a Pod since it started.
type podUsage struct {
	part string
	at   time.Time
	cpu  time.Duration
	// writes by block device; nil where the kubelet does not count them.
	writes map[string]int64
}

// usages by the Pod's UID.
type usages map[string]podUsage

func (u usages) oldest() time.Time {
	var oldest time.Time
	for _, one := range u {
		if oldest.IsZero() || one.at.Before(oldest) {
			oldest = one.at
		}
	}
	return oldest
}

// nodeCounters reads the kubelets' counters through the API server.
type nodeCounters struct{ clientset kubernetes.Interface }

// read is the usage of each Pod of the stack that serves people.
func (c nodeCounters) read(ctx context.Context, k8s client.Client, key client.ObjectKey) (usages, error) {
	pods, err := podsOf(ctx, k8s, key)
	if err != nil {
		return nil, err
	}
	byNode := map[string][]corev1.Pod{}
	for _, pod := range pods {
		if partOf(&pod) != "" && pod.Spec.NodeName != "" {
			byNode[pod.Spec.NodeName] = append(byNode[pod.Spec.NodeName], pod)
		}
	}
	if len(byNode) == 0 {
		return nil, fmt.Errorf("stack %s/%s has no Pods", key.Namespace, key.Name)
	}
	found := usages{}
	for node, pods := range byNode {
		summary, err := c.raw(ctx, node, "stats/summary")
		if err != nil {
			return nil, fmt.Errorf("the counters of node %s cannot be read, so nothing can be said; the right to get nodes/proxy is needed: %w", node, err)
		}
		cpu, err := cpuOf(summary)
		if err != nil {
			return nil, fmt.Errorf("the counters of node %s: %w", node, err)
		}
		// Not every kubelet has this endpoint; then writes are not counted.
		metrics, _ := c.raw(ctx, node, "metrics/cadvisor")
		for i := range pods {
			uid := string(pods[i].UID)
			usage, there := cpu[uid]
			if !there {
				return nil, fmt.Errorf("node %s does not count the Pod %s yet; try again in a minute", node, pods[i].Name)
			}
			usage.part, usage.writes = partOf(&pods[i]), writesOf(string(metrics), pods[i].Namespace, pods[i].Name)
			found[uid] = usage
		}
	}
	return found, nil
}

func (c nodeCounters) raw(ctx context.Context, node, path string) ([]byte, error) {
	return c.clientset.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix(path).DoRaw(ctx)
}

// podsOf are the Pods of a stack: ours by our label, Zalando's by the cluster's name.
func podsOf(ctx context.Context, k8s client.Client, key client.ObjectKey) ([]corev1.Pod, error) {
	found := &v1alpha1.AuthStack{}
	if err := k8s.Get(ctx, key, found); err != nil {
		return nil, explain(err, "authstack", key)
	}
	selectors := []client.MatchingLabels{{v1alpha1.StackLabel: key.Name}}
	if cluster := stack.ZalandoClusterName(found); cluster != "" {
		selectors = append(selectors, client.MatchingLabels{"application": "spilo", "cluster-name": cluster})
	}
	var pods []corev1.Pod
	for _, selector := range selectors {
		list := &corev1.PodList{}
		if err := k8s.List(ctx, list, client.InNamespace(key.Namespace), selector); err != nil {
			return nil, err
		}
		pods = append(pods, list.Items...)
	}
	return pods, nil
}

// cpuOf reads the kubelet's summary (k8s.io/kubelet/pkg/apis/stats/v1alpha1): each Pod's CPU time since
// it started, and when that was read.
func cpuOf(summary []byte) (map[string]podUsage, error) {
	var read struct {
		Pods []struct {
			PodRef struct {
				UID string `json:"uid"`
			} `json:"podRef"`
			CPU *struct {
				Time                 time.Time `json:"time"`
				UsageCoreNanoSeconds *int64    `json:"usageCoreNanoSeconds"`
			} `json:"cpu"`
		} `json:"pods"`
	}
	if err := json.Unmarshal(summary, &read); err != nil {
		return nil, fmt.Errorf("the kubelet's summary is not understood: %w", err)
	}
	found := map[string]podUsage{}
	for _, pod := range read.Pods {
		if pod.CPU != nil && pod.CPU.UsageCoreNanoSeconds != nil {
			found[pod.PodRef.UID] = podUsage{at: pod.CPU.Time, cpu: time.Duration(*pod.CPU.UsageCoreNanoSeconds)}
		}
	}
	return found, nil
}

var (
	writesLine = regexp.MustCompile(`(?m)^container_fs_writes_total\{([^}]*)\} ([0-9.eE+]+)`)
	labelPair  = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)
)

// writesOf are the write operations of a Pod's containers by block device (cAdvisor's
// container_fs_writes_total); nil where there are none.
func writesOf(metrics, namespace, pod string) map[string]int64 {
	var found map[string]int64
	for _, line := range writesLine.FindAllStringSubmatch(metrics, -1) {
		labels := map[string]string{}
		for _, pair := range labelPair.FindAllStringSubmatch(line[1], -1) {
			labels[pair[1]] = pair[2]
		}
		// The line without a container is the Pod's own cgroup, which has the containers' in it.
		if labels["namespace"] != namespace || labels["pod"] != pod || labels["container"] == "" {
			continue
		}
		if value, err := strconv.ParseFloat(strings.TrimSpace(line[2]), 64); err == nil {
			if found == nil {
				found = map[string]int64{}
			}
			found[labels["device"]] += int64(value)
		}
	}
	return found
}

// writesBetween are the writes of a Pod to the device that it wrote to most, nil where they were not counted. Devices
// are not added up: where one lies on another (LVM, dm-crypt, a loop device) the kernel counts a write on each
// (measured on Linux 6.18: 60 writes to a loop device were another 20 to the disk below it).
func writesBetween(first, last podUsage) *int64 {
	if first.writes == nil || last.writes == nil {
		return nil
	}
	var most int64
	for device, writes := range last.writes {
		most = max(most, writes-first.writes[device])
	}
	return &most
}

// usedBetween is what each part used between two readings. Pods that were replaced in between make the
// figures worthless.
func usedBetween(before, after usages) ([]report.Usage, time.Duration, error) {
	if len(before) != len(after) {
		return nil, 0, fmt.Errorf("the stack had %d Pods before and %d after the run, so nothing can be said", len(before), len(after))
	}
	byPart := map[string]*report.Usage{}
	var longest time.Duration
	for uid, first := range before {
		last, there := after[uid]
		if !there {
			return nil, 0, fmt.Errorf("a Pod of the %s was replaced during the run, so nothing can be said", first.part)
		}
		part := byPart[first.part]
		if part == nil {
			part = &report.Usage{Part: first.part, Writes: new(int64(0))}
			byPart[first.part] = part
		}
		part.Pods++
		part.CPU += last.cpu - first.cpu
		if writes := writesBetween(first, last); part.Writes != nil && writes != nil {
			*part.Writes += *writes
		} else {
			part.Writes = nil
		}
		longest = max(longest, last.at.Sub(first.at))
	}
	var used []report.Usage
	for _, name := range parts {
		if part := byPart[name]; part != nil {
			used = append(used, *part)
		}
	}
	return used, longest, nil
}
