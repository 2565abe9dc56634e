package schedule

import (
	"cmp"
	"slices"

	"authstack.dev/authstack/api/v1alpha1"
)

// Before is the LatencyTest that runs before this one, or nil where it is this one's turn. One test
// at a time runs on a cluster, of whichever stack: two share its nodes, its storage and often its
// database's disk, and each would measure the other.
//
// The order is the same for every operator that sees the same tests: one that has begun, then the
// oldest, then by namespace and name. Only tests that can run take part, lest one whose stack never
// becomes Ready hold up all the others; able says whether one of the others can. One that is deleted
// or has its verdict is out of the way.
func Before(test *v1alpha1.LatencyTest, tests []v1alpha1.LatencyTest, able func(*v1alpha1.LatencyTest) bool) *v1alpha1.LatencyTest {
	first := test
	for i := range tests {
		other := &tests[i]
		if other.UID == test.UID || !other.DeletionTimestamp.IsZero() || other.Status.Verdict != "" {
			continue
		}
		if Earlier(other, first) && able(other) {
			first = other
		}
	}
	if first == test {
		return nil
	}
	return first
}

// Earlier is the order in which tests run: one that has begun first, then one that took its turn and
// is about to begin, then the older one.
func Earlier(a, b *v1alpha1.LatencyTest) bool {
	if x, y := progress(a), progress(b); x != y {
		return x > y
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) < 0
}

// progress is how far a test without a verdict has come. The finalizer is the first thing that a run
// writes.
func progress(test *v1alpha1.LatencyTest) int {
	switch {
	case test.Status.StartedAt != nil:
		return 2
	case slices.Contains(test.Finalizers, v1alpha1.Finalizer):
		return 1
	}
	return 0
}
