// Package e2e holds the tests that run against a real cluster with the operator installed and the
// demo's stacks in place; `make test-e2e` sets that up. They need KUBECONFIG and the build tag e2e.
package e2e
