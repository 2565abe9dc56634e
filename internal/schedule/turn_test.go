package schedule

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"authstack.dev/authstack/api/v1alpha1"
)

func TestBefore(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	made := func(namespace, name string, minute int, change ...func(*v1alpha1.LatencyTest)) v1alpha1.LatencyTest {
		test := v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name),
			CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute))}}
		for _, f := range change {
			f(&test)
		}
		return test
	}
	started := func(test *v1alpha1.LatencyTest) { test.Status.StartedAt = &metav1.Time{Time: noon} }
	claimed := func(test *v1alpha1.LatencyTest) { test.Finalizers = []string{v1alpha1.Finalizer} }
	finished := func(test *v1alpha1.LatencyTest) { test.Status.Verdict = v1alpha1.VerdictPassed }
	deleted := func(test *v1alpha1.LatencyTest) { test.DeletionTimestamp = &metav1.Time{Time: noon} }
	me := func(change ...func(*v1alpha1.LatencyTest)) v1alpha1.LatencyTest { return made("b", "me", 5, change...) }
	for name, c := range map[string]struct {
		me     v1alpha1.LatencyTest
		others []v1alpha1.LatencyTest
		// unable are those that cannot run now.
		unable []string
		want   string
	}{
		"a test that is alone has its turn":                         {me: me()},
		"the older one goes first":                                  {me: me(), others: []v1alpha1.LatencyTest{made("c", "old", 1)}, want: "old"},
		"the younger one waits":                                     {me: me(), others: []v1alpha1.LatencyTest{made("a", "young", 9)}},
		"of the same second the namespace decides":                  {me: me(), others: []v1alpha1.LatencyTest{made("a", "z", 5)}, want: "z"},
		"of the same second and namespace the name decides":         {me: me(), others: []v1alpha1.LatencyTest{made("b", "a", 5)}, want: "a"},
		"a later name of the same second waits":                     {me: me(), others: []v1alpha1.LatencyTest{made("b", "z", 5)}},
		"one that has begun goes on, though it is younger":          {me: me(), others: []v1alpha1.LatencyTest{made("c", "runs", 9, started)}, want: "runs"},
		"one that took its turn goes before an older one":           {me: me(), others: []v1alpha1.LatencyTest{made("c", "about", 9, claimed)}, want: "about"},
		"one that runs goes before one that is about to":            {me: me(claimed), others: []v1alpha1.LatencyTest{made("c", "runs", 9, claimed, started)}, want: "runs"},
		"one whose stack is not Ready does not hold up the others":  {me: me(), others: []v1alpha1.LatencyTest{made("c", "old", 1)}, unable: []string{"old"}},
		"nor does one that took its turn and then lost its stack":   {me: me(), others: []v1alpha1.LatencyTest{made("c", "old", 1, claimed)}, unable: []string{"old"}},
		"one that is deleted is out of the way":                     {me: me(), others: []v1alpha1.LatencyTest{made("c", "old", 1, started, deleted)}},
		"one with a verdict is out of the way":                      {me: me(), others: []v1alpha1.LatencyTest{made("c", "old", 1, started, claimed, finished)}},
		"the first of many is named, whatever order they come in":   {me: me(), others: []v1alpha1.LatencyTest{made("c", "third", 3), made("c", "first", 1), made("c", "second", 2)}, want: "first"},
		"the first that can is named":                               {me: me(), others: []v1alpha1.LatencyTest{made("c", "first", 1), made("c", "second", 2)}, unable: []string{"first"}, want: "second"},
		"what the cache holds of the test itself is not in its way": {me: me(), others: []v1alpha1.LatencyTest{me(started)}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				before, got := Before(&c.me, c.others, func(other *v1alpha1.LatencyTest) bool { return !slices.Contains(c.unable, other.Name) }), ""
				if before != nil {
					got = before.Name
				}
				if got != c.want {
					t.Errorf("before it comes %q, want %q", got, c.want)
				}
				slices.Reverse(c.others)
			}
		})
	}
}
