package controllers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"authstack.dev/authstack/api/v1alpha1"
)

// The bounds of ANALYZE: how long one may take, and how many run at once.
const (
	analyzeTimeout = 10 * time.Minute
	analyzeAtOnce  = 4
)

// analyses are the runs of ANALYZE, aside from the reconciles that ask for them. Nothing is lost with
// them: a run that an operator did not live to see is asked for again.
type analyses struct {
	ctx   context.Context
	slots chan struct{}
	// finished has the stacks reconciled whose run is over.
	finished chan event.TypedGenericEvent[*v1alpha1.AuthStack]
	mu       sync.Mutex
	running  map[types.UID]*analysis
}

type analysis struct {
	version string
	done    bool
	err     error
}

// newAnalyses makes an empty set; all runs end with the context.
func newAnalyses(ctx context.Context) *analyses {
	return &analyses{ctx: ctx, slots: make(chan struct{}, analyzeAtOnce), running: map[types.UID]*analysis{},
		finished: make(chan event.TypedGenericEvent[*v1alpha1.AuthStack], 1024)}
}

// ask starts a run for this version, or says what became of it. A failed one is told once and may then
// be asked for again.
func (a *analyses) ask(st *v1alpha1.AuthStack, version string, run func(context.Context) error) (done bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found := a.running[st.UID]; found != nil && found.version == version {
		if found.done && found.err != nil {
			delete(a.running, st.UID)
		}
		return found.done && found.err == nil, found.err
	}
	started := &analysis{version: version}
	a.running[st.UID] = started
	about := &v1alpha1.AuthStack{}
	about.Namespace, about.Name = st.Namespace, st.Name
	go func() {
		select {
		case a.slots <- struct{}{}:
		case <-a.ctx.Done():
			return
		}
		defer func() { <-a.slots }()
		ctx, cancel := context.WithTimeout(a.ctx, analyzeTimeout)
		defer cancel()
		err := run(ctx)
		a.mu.Lock()
		started.done, started.err = true, err
		a.mu.Unlock()
		select {
		case a.finished <- event.TypedGenericEvent[*v1alpha1.AuthStack]{Object: about}:
		case <-a.ctx.Done():
		default: // The next look at the stack sees it.
		}
	}()
	return false, nil
}

func (a *analyses) forget(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.running, uid)
}
