package kube

import (
	"hash/fnv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
)

// State is where an object stands after a reconcile.
type State int

// The states.
const (
	// Settled: everything is as it should be; look again now and then.
	Settled State = iota
	// Progressing: work is under way; look again soon, and less often the longer it takes.
	Progressing
	// Stalled: only a change by a person helps; a watch will tell, and a slow look where none can.
	Stalled
	// Suspended: leave it alone until its spec changes.
	Suspended
)

// Outcome is what one reconcile came to.
type Outcome struct {
	State State
	// Err has the object tried again at the queue's own growing distance.
	Err error
	// Since is when the object began to progress.
	Since *metav1.Time
	// Before is the longest time until the next look, or 0.
	Before time.Duration
}

// The distances between two looks.
const (
	settledEvery  = 10 * time.Minute
	stalledEvery  = 30 * time.Second
	progressFirst = 3 * time.Second
	progressLast  = 30 * time.Second
)

// Result is the one place where an outcome becomes a requeue. The name spreads objects over time.
func (o Outcome) Result(now time.Time, name string) (ctrl.Result, error) {
	if o.Err != nil {
		return ctrl.Result{}, o.Err
	}
	var after time.Duration
	switch o.State {
	case Suspended:
		return ctrl.Result{}, nil
	case Settled:
		after = spread(settledEvery, name)
	case Stalled:
		after = spread(stalledEvery, name)
	case Progressing:
		after = progressFirst
		if o.Since != nil {
			// A tenth of the time it has taken so far.
			after = min(max(now.Sub(o.Since.Time)/10, progressFirst), progressLast)
		}
	}
	if o.Before > 0 {
		after = min(after, o.Before)
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// spread is the duration, up to a fifth shorter by the name, so that a thousand objects do not wake
// at once.
func spread(d time.Duration, name string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return d - time.Duration(uint64(d)/5*uint64(h.Sum32()%1000)/1000)
}
