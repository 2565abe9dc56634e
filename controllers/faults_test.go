package controllers

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
)

// final is what a world holds in the end, without what differs between any two: uids, times, secrets.
func (w *world) final() []string {
	var out []string
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{}, &corev1.SecretList{},
		&policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{}, &batchv1.JobList{}, &v1alpha1.LatencyTestList{}, &v1alpha1.AuthStackList{},
	} {
		w.list(list)
		w.must(meta.EachListItem(list, func(item runtime.Object) error {
			obj := item.(client.Object)
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
			w.must(err)
			kind := fmt.Sprintf("%T", obj)
			spec, err := json.Marshal(content["spec"])
			w.must(err)
			var keys []string
			for _, name := range []string{"data"} {
				if data, ok := content[name].(map[string]any); ok {
					for key := range data {
						keys = append(keys, key)
					}
				}
			}
			sort.Strings(keys)
			var conditions []string
			switch o := obj.(type) {
			case *v1alpha1.AuthStack:
				for _, c := range o.Status.Conditions {
					conditions = append(conditions, c.Type+"="+string(c.Status)+"/"+c.Reason)
				}
			case *v1alpha1.LatencyTest:
				for _, c := range o.Status.Conditions {
					conditions = append(conditions, c.Type+"="+string(c.Status)+"/"+c.Reason)
				}
			}
			sort.Strings(conditions)
			owners := []string{}
			for _, ref := range obj.GetOwnerReferences() {
				owners = append(owners, ref.Kind)
			}
			out = append(out, stable(fmt.Sprintf("%s %s %v %v %v %v %s", kind, obj.GetName(), keys, owners, obj.GetFinalizers(), conditions, spec)))
			return nil
		}))
	}
	sort.Strings(out)
	return out
}

var unstable = regexp.MustCompile(`sso-1-[0-9a-f]{6}|stacks-[0-9]+|"authstack.dev/[a-z-]*(checksum|hash)":"[^"]*"|"clusterIPs?":(\[[^]]*\]|"[^"]*")|[0-9a-f]{8}-[0-9a-f-]{27}`)

// stable takes out what differs between two namespaces: names with hashes of a uid, checksums of
// secrets, addresses.
func stable(text string) string {
	text = unstable.ReplaceAllString(text, "…")
	return text
}

func TestOperatorThatDies(t *testing.T) {
	reference := newWorld(t)
	reference.create()
	reference.until("Ready", reference.ready)
	reference.settle()
	want, writes := reference.final(), reference.writes
	t.Logf("a stack that becomes Ready and is measured takes %d writes", writes)

	died := errors.New("the operator was killed")
	for _, after := range []bool{false, true} {
		when := map[bool]string{false: "before any", true: "after every third"}[after]
		t.Run("killed "+when+" of its writes, the next operator comes to the same end", func(t *testing.T) {
			for n := 1; n <= writes; n++ {
				// Just after a write the cluster is as just before the next one, but for what is done in
				// between outside of the API server.
				if after && n%3 != 0 {
					continue
				}
				w := newWorld(t)
				w.create()
				dead := false
				w.fault = func(write int, _ string, done bool) error {
					if dead || write == n && done == after {
						dead = true
						return died
					}
					return nil
				}
				for range 200 {
					if dead {
						break
					}
					_ = w.step()
				}
				if !dead {
					break // This time it took fewer writes.
				}
				w.fault = nil
				w.restart()
				w.settle()
				expectSame(t, fmt.Sprintf("killed %s write %d (%s)", when, n, w.written[n-1]), want, w.final())
				if w.users.made != 1 || len(w.users.held) != 0 {
					t.Fatalf("killed %s write %d (%s): %d users were made, %d are left", when, n, w.written[n-1], w.users.made, len(w.users.held))
				}
			}
		})
	}
}

func TestFaultsOfTheAPIServer(t *testing.T) {
	reference := newWorld(t)
	reference.create()
	reference.until("Ready", reference.ready)
	reference.settle()
	want := reference.final()
	resource := schema.GroupResource{Resource: "things"}
	for name, fault := range map[string]error{
		"a conflict":                   apierrors.NewConflict(resource, "thing", errors.New("changed")),
		"an internal error":            apierrors.NewInternalError(errors.New("etcd has no leader")),
		"a timeout":                    apierrors.NewTimeoutError("took too long", 1),
		"too many requests":            apierrors.NewTooManyRequests("slow down", 1),
		"a refusal":                    apierrors.NewForbidden(resource, "thing", errors.New("quota")),
		"an object that exists by now": apierrors.NewAlreadyExists(resource, "thing"),
	} {
		t.Run(name+" at the first two tries of each write, and the stack comes out the same", func(t *testing.T) {
			w := newWorld(t)
			w.create()
			tries := map[string]int{}
			w.fault = func(_ int, verb string, done bool) error {
				if done {
					return nil
				}
				if tries[verb]++; tries[verb] <= 2 {
					return fault
				}
				return nil
			}
			w.until("Ready", w.ready)
			w.settle()
			expectSame(t, name, want, w.final())
		})
	}
	t.Run("an answer that is lost after each first write", func(t *testing.T) {
		w := newWorld(t)
		w.create()
		seen := map[string]bool{}
		w.fault = func(_ int, verb string, done bool) error {
			if done && !seen[verb] {
				seen[verb] = true
				return apierrors.NewTimeoutError("the answer was lost", 1)
			}
			return nil
		}
		w.until("Ready", w.ready)
		w.settle()
		expectSame(t, "lost answers", want, w.final())
	})
	t.Run("every thirty-seventh read fails", func(t *testing.T) {
		w := newWorld(t)
		w.create()
		reads := 0
		w.readFault = func() error {
			if reads++; reads%37 == 0 {
				return apierrors.NewInternalError(errors.New("etcd has no leader"))
			}
			return nil
		}
		w.until("Ready", w.ready)
		w.readFault = nil
		w.settle()
		expectSame(t, "failing reads", want, w.final())
	})
}

func expectSame(t *testing.T, what string, want, got []string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(strings.Join(got, "\n")).To(Equal(strings.Join(want, "\n")), what)
}
