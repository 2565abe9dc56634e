package authelia

import (
	"strings"

	"golang.org/x/net/publicsuffix"
)

// CookieDomain of a host: its parent domain, so that one login serves every name below it. Where the
// parent cannot carry a cookie (no dot in it, or a public suffix such as co.uk, both refused by
// Authelia's validator), it is the host itself.
func CookieDomain(host string) string {
	_, parent, found := strings.Cut(host, ".")
	if !found || !strings.Contains(parent, ".") {
		return host
	}
	if suffix, _ := publicsuffix.PublicSuffix(parent); suffix == parent {
		return host
	}
	return parent
}

// LatencyUser is the name of the user that latency tests log in as; with a users file it is made by us.
const LatencyUser = "authstack-latency"

// ProtectedHost is the only name that the latency user may reach.
func ProtectedHost(host string) string { return LatencyUser + "." + CookieDomain(host) }
