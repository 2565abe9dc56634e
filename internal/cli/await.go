package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
)

// errTimeout is the end of --timeout.
var errTimeout = errors.New("not within --timeout")

// await waits until a LatencyTest has its verdict and shows how far it is.
func (a *App) await(ctx context.Context, k8s client.Client, key client.ObjectKey, timeout time.Duration) (*v1alpha1.LatencyTest, error) {
	test := &v1alpha1.LatencyTest{}
	err := a.until(ctx, timeout, func(ctx context.Context) (bool, string, error) {
		if err := k8s.Get(ctx, key, test); err != nil {
			return false, "", explain(err, "latencytest", key)
		}
		return finished(test), progressOf(test), nil
	})
	if errors.Is(err, errTimeout) {
		err = fmt.Errorf("LatencyTest %s/%s has no verdict after %s; it stays: %s", key.Namespace, key.Name, timeout, progressOf(test))
	}
	return test, err
}

// awaitReady waits until the stack is Ready for its newest spec.
func (a *App) awaitReady(ctx context.Context, k8s client.Client, key client.ObjectKey, timeout time.Duration) (*v1alpha1.AuthStack, error) {
	stack := &v1alpha1.AuthStack{}
	message := "waiting for the operator"
	err := a.until(ctx, timeout, func(ctx context.Context) (bool, string, error) {
		if err := k8s.Get(ctx, key, stack); err != nil {
			return false, "", explain(err, "authstack", key)
		}
		current := stack.Status.ObservedGeneration == stack.Generation
		ready := meta.FindStatusCondition(stack.Status.Conditions, v1alpha1.ConditionReady)
		stalled := meta.FindStatusCondition(stack.Status.Conditions, v1alpha1.ConditionStalled)
		switch {
		case current && stalled != nil && stalled.Status == "True":
			return false, "", fmt.Errorf("stack %s/%s is Stalled: %s", key.Namespace, key.Name, stalled.Message)
		case ready != nil && current:
			message = ready.Message
		}
		return current && ready != nil && ready.Status == "True", fmt.Sprintf("stack %s/%s: %s", key.Namespace, key.Name, message), nil
	})
	if errors.Is(err, errTimeout) {
		err = fmt.Errorf("stack %s/%s is not Ready after %s: %s", key.Namespace, key.Name, timeout, message)
	}
	return stack, err
}

// until repeats look until it is done. A cluster that does not answer for a moment is asked again.
func (a *App) until(ctx context.Context, timeout time.Duration, look func(context.Context) (done bool, progress string, err error)) error {
	deadline := a.Now().Add(timeout)
	for {
		done, progress, err := look(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !passing(err):
			return err
		case err != nil:
			a.progress("the API server does not answer; still waiting")
		case done:
			a.progress(progress)
			return nil
		default:
			a.progress(progress)
		}
		if !a.Now().Before(deadline) {
			return errTimeout
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(a.Poll):
		}
	}
}

// passing is whether an error may be gone the next time.
func passing(err error) bool {
	return apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err)
}

// finished is whether a test has the verdict of what it was last asked for.
func finished(test *v1alpha1.LatencyTest) bool {
	asked := test.Annotations[v1alpha1.RequestedAtAnnotation]
	return test.Status.Verdict != "" && test.Status.ObservedGeneration == test.Generation &&
		(asked == "" || asked == test.Status.LastHandledReconcileAt) &&
		!meta.IsStatusConditionTrue(test.Status.Conditions, v1alpha1.ConditionReconciling)
}

func progressOf(test *v1alpha1.LatencyTest) string {
	if ready := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		return ready.Message
	}
	return "waiting for the operator"
}
