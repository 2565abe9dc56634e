// Package v1alpha1 holds the kinds of the API group authstack.dev: AuthStack, a single sign-on
// stack, and LatencyTest, one measurement of one stack.
//
// Rules of the API: unions, immutability and version rules are CEL, there is no admission webhook.
// Defaults live in code with their reasons and stand in status, never in stored objects, so that
// better advice in a later release reaches stacks that exist. Latencies are integers in
// microseconds in status and durations in spec; there are no floats.
//
// +kubebuilder:object:generate=true
// +groupName=authstack.dev
package v1alpha1
