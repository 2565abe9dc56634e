// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"fmt"
	"net/http"

	"go.k6.io/k6/v2/ext"
	"go.k6.io/k6/v2/js/common"
	"go.k6.io/k6/v2/js/modules"
)

// scriptVariable of the environment is the path of a user's own script; where it is set, the process is
// confined.
const scriptVariable = "AUTHSTACK_SCRIPT"

// refused are the modules of k6 that a user's own script cannot import, with the reason. k6/http dials
// through k6's dialer and so is held by --blacklist-ip and --block-hostnames, which the Job sets; k6/x/…
// is not in this binary (read in k6 2.2: lib/netext/dialer.go and who dials otherwise).
var refused = map[string]string{
	// It starts or is told of a browser, which has a network of its own.
	"k6/browser": "a browser cannot be held to the stack's addresses; use k6/http",
	// Its resolvers ask the name server that a target names (dns://SERVER/NAME), past the dialer.
	"k6/net/grpc": "neither authentik nor Authelia speaks gRPC; use k6/http",
	// They dial through the dialer, but one that was refused goes unseen: k6 does no more than log it.
	"k6/ws":                      noWebSockets,
	"k6/websockets":              noWebSockets,
	"k6/experimental/websockets": noWebSockets,
}

const noWebSockets = "WebSockets are not measured; use k6/http"

// confine closes the ways out that the Job's flags leave open: modules that do not dial as k6/http
// does, and imports from a URL, which the process loads itself before any script runs.
func confine() {
	for name, why := range refused {
		// An extension stands in for the module of the same name.
		ext.Register(name, ext.JSExtension, &refusedModule{name: name, why: why})
	}
	http.DefaultClient.Transport = noImports{}
}

type refusedModule struct{ name, why string }

// NewModuleInstance fails the import.
func (m *refusedModule) NewModuleInstance(vu modules.VU) modules.Instance {
	common.Throw(vu.Runtime(), fmt.Errorf("a script of a LatencyTest cannot import %s: %s", m.name, m.why))
	return nil
}

type noImports struct{}

// RoundTrip refuses whatever k6 itself would load.
func (noImports) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("a script of a LatencyTest cannot import from %s: write what it needs into the script itself", r.URL.Host)
}
