package confinement

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestExcept(t *testing.T) {
	for name, test := range map[string]struct {
		allowed string
		want    string
	}{
		"nothing allowed is everything refused": {"", "0.0.0.0/0 ::/0"},
		"the first and the last address": {"0.0.0.0 255.255.255.255", "0.0.0.1/32 0.0.0.2/31 0.0.0.4/30 0.0.0.8/29 0.0.0.16/28 0.0.0.32/27 0.0.0.64/26 0.0.0.128/25 " +
			"0.0.1.0/24 0.0.2.0/23 0.0.4.0/22 0.0.8.0/21 0.0.16.0/20 0.0.32.0/19 0.0.64.0/18 0.0.128.0/17 " +
			"0.1.0.0/16 0.2.0.0/15 0.4.0.0/14 0.8.0.0/13 0.16.0.0/12 0.32.0.0/11 0.64.0.0/10 0.128.0.0/9 " +
			"1.0.0.0/8 2.0.0.0/7 4.0.0.0/6 8.0.0.0/5 16.0.0.0/4 32.0.0.0/3 64.0.0.0/2 " +
			"128.0.0.0/2 192.0.0.0/3 224.0.0.0/4 240.0.0.0/5 248.0.0.0/6 252.0.0.0/7 254.0.0.0/8 " +
			"255.0.0.0/9 255.128.0.0/10 255.192.0.0/11 255.224.0.0/12 255.240.0.0/13 255.248.0.0/14 255.252.0.0/15 255.254.0.0/16 " +
			"255.255.0.0/17 255.255.128.0/18 255.255.192.0/19 255.255.224.0/20 255.255.240.0/21 255.255.248.0/22 255.255.252.0/23 255.255.254.0/24 " +
			"255.255.255.0/25 255.255.255.128/26 255.255.255.192/27 255.255.255.224/28 255.255.255.240/29 255.255.255.248/30 255.255.255.252/31 255.255.255.254/32 ::/0"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range Except(addresses(test.allowed)...) {
				got = append(got, p.String())
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("got\n%s, want\n%s", strings.Join(got, " "), test.want)
			}
		})
	}
}

func addresses(text string) (list []netip.Addr) {
	for _, a := range strings.Fields(text) {
		list = append(list, netip.MustParseAddr(a))
	}
	return list
}

// TestEveryAddressIsEitherAllowedOrRefused, over random sets of both families, as k6 itself decides it:
// with Go's net.IPNet over addresses of four or sixteen bytes.
func TestEveryAddressIsEitherAllowedOrRefused(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 2))
	for range 300 {
		var allowed []netip.Addr
		for range random.IntN(5) {
			allowed = append(allowed, anAddress(random))
		}
		prefixes := Except(allowed...)
		var nets []*net.IPNet
		for i, p := range prefixes {
			_, parsed, err := net.ParseCIDR(p.String())
			if err != nil || p != p.Masked() {
				t.Fatalf("%s is no prefix that k6 reads as it is: %v", p, err)
			}
			nets = append(nets, parsed)
			if i > 0 && (prefixes[i-1].Overlaps(p) || !prefixes[i-1].Addr().Less(p.Addr())) {
				t.Fatalf("%s and %s are not in order or overlap", prefixes[i-1], p)
			}
		}
		check := func(a netip.Addr) {
			ok := slices.ContainsFunc(allowed, func(b netip.Addr) bool { return a.Unmap() == b.Unmap() })
			for _, ip := range []net.IP{net.IP(a.AsSlice()), net.IP(a.AsSlice()).To16()} {
				refused := 0
				for _, n := range nets {
					if n.Contains(ip) {
						refused++
					}
				}
				if ok && refused != 0 || !ok && refused != 1 {
					t.Fatalf("allowed %v: %v (allowed: %t) is in %d prefixes", allowed, a, ok, refused)
				}
			}
		}
		for _, a := range allowed {
			check(a)
			// The neighbours are where a mistake by one shows.
			for _, b := range []netip.Addr{a.Next(), a.Prev(), netip.AddrFrom16(a.As16())} {
				if b.IsValid() {
					check(b)
				}
			}
		}
		for range 30 {
			check(anAddress(random))
		}
		for _, edge := range []string{"0.0.0.0", "255.255.255.255", "127.0.0.1", "::", "::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "::ffff:127.0.0.1", "169.254.169.254"} {
			check(netip.MustParseAddr(edge))
		}
	}
}

func anAddress(random *rand.Rand) netip.Addr {
	var raw [16]byte
	for i := range raw {
		raw[i] = byte(random.UintN(256))
	}
	switch random.IntN(3) {
	case 0:
		return netip.AddrFrom4([4]byte(raw[:4]))
	case 1:
		return netip.AddrFrom16([16]byte{10: 0xff, 11: 0xff, 12: raw[0], 13: raw[1], 14: raw[2], 15: raw[3]})
	}
	return netip.AddrFrom16(raw)
}

func FuzzExcept(f *testing.F) {
	f.Add([]byte{10, 43, 0, 1}, []byte{10, 43, 0, 2})
	f.Add([]byte{10, 43, 0, 1}, []byte("sixteen bytes ok"))
	f.Fuzz(func(t *testing.T, allowed, asked []byte) {
		a, ok := netip.AddrFromSlice(allowed)
		b, also := netip.AddrFromSlice(asked)
		if !ok || !also {
			return
		}
		refused := slices.ContainsFunc(Except(a), func(p netip.Prefix) bool { return p.Contains(b.Unmap()) })
		if refused == (a.Unmap() == b.Unmap()) {
			t.Errorf("%v allowed, %v asked: refused is %t", a, b, refused)
		}
	})
}

func TestFlagsHaveOneEntryForEachPrefix(t *testing.T) {
	flags := Flags(addresses("10.43.7.9 fd00::7")...)
	if n := strings.Count(flags[0], ",") + 1; n != 32+128 {
		t.Errorf("%d prefixes for one address of each family, want 160", n)
	}
}
