package controllers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"authstack.dev/authstack/api/v1alpha1"
)

// BenchmarkThousandStacks has one operator make a thousand stacks on one API server, leaves them alone,
// and starts a second operator over them. It prints the figures of docs/scale.md.
func BenchmarkThousandStacks(b *testing.B) {
	count := 1000
	if given, err := strconv.Atoi(os.Getenv("AUTHSTACK_BENCH_STACKS")); err == nil {
		count = given
	}
	for b.Loop() {
		benchmarkStacks(b, count)
	}
}

func benchmarkStacks(b *testing.B, count int) {
	ensureStorageClass(b)
	const perNamespace = 50
	var spaces []string
	for range (count + perNamespace - 1) / perNamespace {
		spaces = append(spaces, newNamespace(b))
	}
	database, users, logs := newFakeDatabases(server), &fakeUsers{held: map[string]string{}}, &fakeLogs{}
	empty := heap()
	first := startOperator(b, database, users, logs, 4)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var kubelet sync.WaitGroup
	kubelet.Go(func() { kubeletOfAll(ctx, b) })
	defer kubelet.Wait()
	defer stop()

	began := time.Now()
	for i := range count {
		st := &v1alpha1.AuthStack{ObjectMeta: metav1.ObjectMeta{Namespace: spaces[i/perNamespace], Name: fmt.Sprintf("sso-%d", i)},
			Spec: v1alpha1.AuthStackSpec{Host: "sso.example.com", Authentik: &v1alpha1.AuthentikSpec{Version: "2025.12.4"},
				Latency: &v1alpha1.LatencySpec{Mode: v1alpha1.LatencyManual}}}
		if err := server.Create(ctx, st); err != nil {
			b.Fatal(err)
		}
	}
	awaitReady(b, count)
	took := time.Since(began)
	reads, writes := first.reads.Load(), first.writes.Load()
	sum, n := reconcileTime(b)
	b.ReportMetric(took.Seconds(), "s-until-all-ready")
	b.ReportMetric(float64(writes)/float64(count), "writes/stack")
	b.ReportMetric(float64(reads)/float64(count), "reads/stack")
	b.ReportMetric(sum/float64(n)*1000, "ms/reconcile")
	b.ReportMetric(float64(n)/float64(count), "reconciles/stack")

	time.Sleep(15 * time.Second) // Events and the last looks.
	held := heap()
	b.ReportMetric(float64(held-empty)/1e6, "MB-heap")
	b.ReportMetric(float64(held-empty)/float64(count)/1e3, "kB-heap/stack")
	writes = first.writes.Load()
	time.Sleep(30 * time.Second)
	b.ReportMetric(float64(first.writes.Load()-writes), "writes-in-30s-idle")

	// A second operator over what is there, as after an update of the operator.
	sumBefore, nBefore := reconcileTime(b)
	second := startOperator(b, database, users, logs, 4)
	began = time.Now()
	deadline := time.Now().Add(10 * time.Minute)
	for {
		if _, n := reconcileTime(b); n >= nBefore+uint64(count) {
			break
		}
		if time.Now().After(deadline) {
			b.Fatal("the second operator did not get round")
		}
		time.Sleep(200 * time.Millisecond)
	}
	sum, n = reconcileTime(b)
	b.ReportMetric(time.Since(began).Seconds(), "s-restart")
	b.ReportMetric((sum-sumBefore)/float64(n-nBefore)*1000, "ms/reconcile-restart")
	b.ReportMetric(float64(second.reads.Load())/float64(count), "reads/stack-restart")
	b.ReportMetric(0, "ns/op")
}

func awaitReady(b *testing.B, count int) {
	b.Helper()
	deadline := time.Now().Add(20 * time.Minute)
	for time.Now().Before(deadline) {
		var stacks v1alpha1.AuthStackList
		if err := server.List(context.Background(), &stacks); err != nil {
			b.Log(err)
			time.Sleep(time.Second)
			continue
		}
		ready := 0
		for i := range stacks.Items {
			if meta.IsStatusConditionTrue(stacks.Items[i].Status.Conditions, v1alpha1.ConditionReady) {
				ready++
			}
		}
		if ready >= count {
			return
		}
		fmt.Fprintf(os.Stderr, "%d of %d Ready\n", ready, count)
		time.Sleep(10 * time.Second)
	}
	b.Fatal("they did not become Ready")
}

// kubeletOfAll makes every workload of the cluster ready.
func kubeletOfAll(ctx context.Context, b *testing.B) {
	for ctx.Err() == nil {
		var deployments appsv1.DeploymentList
		var sets appsv1.StatefulSetList
		if err := errors.Join(server.List(ctx, &deployments), server.List(ctx, &sets)); err != nil {
			b.Log("the kubelet:", err)
			time.Sleep(time.Second)
			continue
		}
		for i := range deployments.Items {
			d := &deployments.Items[i]
			if d.Status.ObservedGeneration != d.Generation {
				n := *d.Spec.Replicas
				d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
				_ = server.Status().Update(ctx, d)
			}
		}
		for i := range sets.Items {
			s := &sets.Items[i]
			if s.Status.ObservedGeneration != s.Generation {
				s.Status = appsv1.StatefulSetStatus{ObservedGeneration: s.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
				_ = server.Status().Update(ctx, s)
			}
		}
		time.Sleep(2 * time.Second)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// reconcileTime is the sum in seconds and the number of reconciles of AuthStacks.
func reconcileTime(b *testing.B) (sum float64, count uint64) {
	b.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		b.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_time_seconds" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if label(metric, "controller") == "authstack" {
				sum += metric.GetHistogram().GetSampleSum()
				count += metric.GetHistogram().GetSampleCount()
			}
		}
	}
	return sum, count
}

func label(metric *dto.Metric, name string) string {
	for _, pair := range metric.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}
