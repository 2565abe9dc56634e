//go:build ceph

package ceph

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack/storage"
	"authstack.dev/authstack/test/cluster"
)

// With one OSD of three stopped people log in; with two the stack and the probe say that the storage hangs; and when they
// come back nothing that was acknowledged is missing, and everything is well again by itself.
func stopOSDs(t *testing.T, s *stack) {
	t.Cleanup(func() { order(t, "start") })

	order(t, "osd", "stop", "2")
	// Ceph stands still for up to 5 s until the others have agreed.
	s.logsIn()
	cluster.Eventually(t, "three logins in a row with one OSD stopped", 2*time.Minute, func(ctx context.Context) error {
		for range 3 {
			if err := s.login(ctx); err != nil {
				return err
			}
		}
		return nil
	})

	s.annotate(v1alpha1.ProbeRequestedAtAnnotation)
	cluster.Eventually(t, "the probe is in its long phase", 3*time.Minute, s.probePrinted("Long:"))
	s.start(0)
	s.everyKind(t)
	// After a minute without an answer the kubelet may restart PostgreSQL, so that connections may break from here on.
	s.crowd.Crashing()
	order(t, "osd", "stop", "1")
	stopped := time.Now()
	// Some machines page out what was not touched for seconds, plenty of memory or not (DAMON; the development machine does), and
	// then PostgreSQL answers nobody, not even pg_isready, so that no commit can be seen to wait: postmaster.pid and
	// pg_internal.init were seen to be read by processes in state D. Then the probe says why.
	said := s.says(v1alpha1.ConditionReady, func(c metav1.Condition) bool {
		return c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonStorageHangs && strings.Contains(c.Message, "the storage of PostgreSQL (StorageClass")
	})
	t.Logf("the stack says it %s after the second OSD was stopped", time.Since(stopped).Round(time.Second))
	s.says(v1alpha1.ConditionStorageProbed, func(c metav1.Condition) bool {
		return c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonStorageHangs && strings.Contains(c.Message, "nothing came back for")
	})
	t.Logf("the probe says it after %s", time.Since(stopped).Round(time.Second))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if s.login(ctx) == nil {
		t.Error("somebody logged in while the storage stood still: it does not, and the test shows nothing")
	}
	if strings.Contains(said.Message, "a commit has been waiting since") {
		// Who asks again is answered at once.
		s.annotate(v1alpha1.ProbeRequestedAtAnnotation)
		s.says(v1alpha1.ConditionStorageProbed, func(c metav1.Condition) bool {
			return c.Reason == v1alpha1.ReasonStorageHangs && strings.Contains(c.Message, "a commit of the database has been waiting since")
		})
	}

	order(t, "start")
	kube.WaitReady(t, namespace, s.name)
	s.logsIn()
	s.crowd.Stop()
	s.check()
	if commits, all := s.ledger.Acknowledged(); s.broken.Identity() > 0 || s.broken.Sessions > 0 || !all {
		t.Errorf("of %d acknowledged commits %+v are missing", commits, s.broken)
	}
	s.annotate(v1alpha1.ProbeRequestedAtAnnotation)
	s.says(v1alpha1.ConditionStorageProbed, func(c metav1.Condition) bool { return c.Status == metav1.ConditionTrue })
}

// says waits until a condition is as it should be, and logs and returns it.
func (s *stack) says(kind string, is func(metav1.Condition) bool) metav1.Condition {
	s.t.Helper()
	var found metav1.Condition
	cluster.Eventually(s.t, kind+" of "+s.name, 4*time.Minute, func(ctx context.Context) (err error) {
		found, err = s.condition(ctx, kind)
		if err == nil && !is(found) {
			err = fmt.Errorf("%s %s: %s", found.Status, found.Reason, found.Message)
		}
		return err
	})
	s.t.Logf("%s=%s %s: %s", kind, found.Status, found.Reason, found.Message)
	return found
}

// probePrinted is nil when the probe of the stack has printed a line with this beginning.
func (s *stack) probePrinted(line string) func(context.Context) error {
	return func(ctx context.Context) error {
		var pods corev1.PodList
		if err := kube.List(ctx, &pods, client.InNamespace(namespace), client.HasLabels{storage.ProbeLabel}); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			log, err := cluster.TryKubectl("logs", pod.Name, "-n", namespace)
			if err == nil && strings.Contains(log, line) {
				return nil
			}
		}
		return fmt.Errorf("%d Pods of probes, none has printed %s", len(pods.Items), line)
	}
}
