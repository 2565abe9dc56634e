// Package confinement says how a k6 that runs somebody's own script is held to a few addresses: the
// harness can only hit stacks that it made. It is pure.
package confinement

import (
	"net/netip"
	"slices"
	"strings"
)

// Except are the prefixes of all addresses, IPv4 and IPv6, but the allowed ones: disjoint, in ascending
// order and as few as there can be. An IPv4 address in IPv6's notation (::ffff:10.0.0.1) counts as IPv4,
// as it does in Go's net.IPNet and so in k6. Zones are not looked at.
func Except(allowed ...netip.Addr) []netip.Prefix {
	list := make([]netip.Addr, 0, len(allowed))
	for _, a := range allowed {
		list = append(list, a.Unmap().WithZone(""))
	}
	v4 := without(netip.PrefixFrom(netip.IPv4Unspecified(), 0), list)
	return append(v4, without(netip.PrefixFrom(netip.IPv6Unspecified(), 0), list)...)
}

// without is a prefix but for the allowed addresses: itself where none of them is in it, else its two
// halves likewise.
func without(p netip.Prefix, allowed []netip.Addr) []netip.Prefix {
	inside := slices.DeleteFunc(slices.Clone(allowed), func(a netip.Addr) bool { return !p.Contains(a) })
	switch {
	case len(inside) == 0:
		return []netip.Prefix{p}
	case p.IsSingleIP():
		return nil
	}
	low, high := halves(p)
	return append(without(low, inside), without(high, inside)...)
}

// halves of a prefix of more than one address.
func halves(p netip.Prefix) (low, high netip.Prefix) {
	bits := p.Bits()
	raw := p.Masked().Addr().AsSlice()
	low = netip.PrefixFrom(p.Masked().Addr(), bits+1)
	raw[bits/8] |= 0x80 >> (bits % 8)
	second, _ := netip.AddrFromSlice(raw)
	return low, netip.PrefixFrom(second, bits+1)
}

// Flags hold k6 2.2 to the allowed addresses. Flags win over what a script or the environment says.
// k6's dialer refuses an address after it was looked up, and so just before it is dialled; it refuses a
// name before it is looked up, so that not even a question leaves the Pod. What k6 does past its dialer
// is closed in loadtests/k6/confine.go.
func Flags(allowed ...netip.Addr) []string {
	var prefixes []string
	for _, p := range Except(allowed...) {
		prefixes = append(prefixes, p.String())
	}
	return []string{
		"--blacklist-ip=" + strings.Join(prefixes, ","),
		"--block-hostnames=*",
		// A script knows the passwords of the test users; what it prints would stand in the Pod's log.
		"--console-output=/dev/null",
	}
}
