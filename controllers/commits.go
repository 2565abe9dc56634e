package controllers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"authstack.dev/authstack/api/v1alpha1"
)

const (
	// commitPatience is how long a reconcile waits for a commit; one takes 3 to 20 ms on a Ceph that is well.
	commitPatience = time.Second
	// commitHangsAfter is when a commit that waits means that the storage hangs. It is longer than the 5 s for which a Ceph
	// stands still that has lost one OSD in good order, and shorter than the 20 s after a crash of one (osd_heartbeat_grace).
	commitHangsAfter = 10 * time.Second
)

// commits are the looks at whether a database's commits come back: reading says nothing of that, since what is read is in
// memory. Each is made aside from the reconcile that asks for it, and there is one at most for a stack: a server process that
// waits for a dead disk cannot be ended, and with one for each look they would use up max_connections.
type commits struct {
	ctx context.Context
	// finished has the stacks reconciled whose commit came late.
	finished chan event.TypedGenericEvent[*v1alpha1.AuthStack]
	mu       sync.Mutex
	waiting  map[types.UID]time.Time
}

// newCommits makes an empty set; all end with the context.
func newCommits(ctx context.Context) *commits {
	return &commits{ctx: ctx, waiting: map[types.UID]time.Time{}, finished: make(chan event.TypedGenericEvent[*v1alpha1.AuthStack], 1024)}
}

// since is when the commit of a stack began that is being waited for; zero where there is none.
func (c *commits) since(uid types.UID) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting[uid]
}

// ask has a commit made and waits a little for it. Whether it fails is not asked: what a server answers, even with an error,
// does not hang.
func (c *commits) ask(st *v1alpha1.AuthStack, now time.Time, commit func(context.Context) error) {
	c.mu.Lock()
	if _, found := c.waiting[st.UID]; found {
		c.mu.Unlock()
		return
	}
	c.waiting[st.UID] = now
	c.mu.Unlock()
	about := &v1alpha1.AuthStack{}
	about.Namespace, about.Name = st.Namespace, st.Name
	patience, over := context.WithTimeout(c.ctx, commitPatience)
	go func() {
		_ = commit(c.ctx)
		c.mu.Lock()
		delete(c.waiting, st.UID)
		c.mu.Unlock()
		late := patience.Err() != nil
		over()
		if !late {
			return
		}
		select {
		case c.finished <- event.TypedGenericEvent[*v1alpha1.AuthStack]{Object: about}:
		default: // The next look at the stack sees it.
		}
	}()
	<-patience.Done()
}
