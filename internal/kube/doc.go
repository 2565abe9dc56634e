// Package kube is how this operator writes to a Kubernetes API server: server-side apply that stays
// silent when nothing changed, conditions after kstatus, one status patch a reconcile, events on
// transitions only, and no secret in any message.
package kube
