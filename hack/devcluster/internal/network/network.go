// Package network chooses addresses that nothing else on the machine uses.
package network

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"

	"authstack.dev/authstack/hack/devcluster/internal/command"
)

// Plan is the addresses of one cluster. All lie in one /16:
//
//	10.N.0.0/20    Services
//	10.N.64.0/18   pods
//	10.N.255.0/30  the cable between host and node
type Plan struct {
	Services netip.Prefix `json:"services"`
	Pods     netip.Prefix `json:"pods"`
	Cable    netip.Prefix `json:"cable"`
}

// Host is the host's address on the cable; the API server listens there.
func (p Plan) Host() netip.Addr { return nth(p.Cable, 1) }

// Node is the node's address on the cable.
func (p Plan) Node() netip.Addr { return nth(p.Cable, 2) }

// KubernetesService is the API server's Service.
func (p Plan) KubernetesService() netip.Addr { return nth(p.Services, 1) }

// DNS is the Service that pods ask for names.
func (p Plan) DNS() netip.Addr { return nth(p.Services, 10) }

// Choose returns the first plan that overlaps none of the prefixes in use.
func Choose(used []netip.Prefix) (Plan, error) {
	// From 10.96, where Kubernetes has always had its Services, upwards and
	// then round: the low ones are the most likely to be somebody's network.
	for i := range 256 {
		n := byte((96 + i) % 256)
		block := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, n}), 16)
		if overlapsAny(block, used) {
			continue
		}
		return Plan{
			Services: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, n, 0}), 20),
			Pods:     netip.PrefixFrom(netip.AddrFrom4([4]byte{10, n, 64}), 18),
			Cable:    netip.PrefixFrom(netip.AddrFrom4([4]byte{10, n, 255}), 30),
		}, nil
	}
	return Plan{}, fmt.Errorf("this machine has routes into every 10.N.0.0/16: none is left for a cluster")
}

func overlapsAny(block netip.Prefix, used []netip.Prefix) bool {
	for _, prefix := range used {
		// A default route overlaps everything and takes nothing.
		if prefix.Bits() > 0 && prefix.Overlaps(block) {
			return true
		}
	}
	return false
}

func nth(prefix netip.Prefix, n int) netip.Addr {
	addr := prefix.Addr()
	for range n {
		addr = addr.Next()
	}
	return addr
}

// Used returns the prefixes that the machine has addresses in or routes to.
func Used(ctx context.Context) ([]netip.Prefix, error) {
	out, err := command.Run(ctx, []string{"ip", "-j", "-4", "route", "show", "table", "all"})
	if err != nil {
		return nil, err
	}
	return parseRoutes([]byte(out))
}

func parseRoutes(data []byte) ([]netip.Prefix, error) {
	var routes []struct {
		Dst string `json:"dst"`
	}
	if err := json.Unmarshal(data, &routes); err != nil {
		return nil, fmt.Errorf("reading routes: %w", err)
	}
	var used []netip.Prefix
	for _, route := range routes {
		if prefix, err := netip.ParsePrefix(route.Dst); err == nil {
			used = append(used, prefix)
		} else if addr, err := netip.ParseAddr(route.Dst); err == nil {
			used = append(used, netip.PrefixFrom(addr, addr.BitLen()))
		}
	}
	return used, nil
}
