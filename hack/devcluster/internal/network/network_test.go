package network

import (
	"net/netip"
	"testing"
)

func TestPlanAvoidsWhatIsInUse(t *testing.T) {
	for name, test := range map[string]struct {
		used []string
		want string
	}{
		"nothing in use":                {nil, "10.96.0.0/20"},
		"a default route takes nothing": {[]string{"0.0.0.0/0"}, "10.96.0.0/20"},
		"other private networks":        {[]string{"192.168.0.0/16", "172.17.0.0/16"}, "10.96.0.0/20"},
		"a host in the block":           {[]string{"10.96.200.7/32"}, "10.97.0.0/20"},
		"a wider network":               {[]string{"10.0.0.0/9"}, "10.128.0.0/20"},
		"all above":                     {[]string{"10.96.0.0/11", "10.128.0.0/9"}, "10.0.0.0/20"},
	} {
		t.Run(name, func(t *testing.T) {
			var used []netip.Prefix
			for _, u := range test.used {
				used = append(used, netip.MustParsePrefix(u))
			}
			plan, err := Choose(used)
			if err != nil {
				t.Fatal(err)
			}
			if got := plan.Services.String(); got != test.want {
				t.Errorf("services %s, want %s", got, test.want)
			}
			if plan.Services.Overlaps(plan.Pods) || plan.Pods.Overlaps(plan.Cable) || plan.Services.Overlaps(plan.Cable) {
				t.Errorf("parts of the plan overlap: %+v", plan)
			}
		})
	}
}

func TestNoRoomIsSaid(t *testing.T) {
	if plan, err := Choose([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}); err == nil {
		t.Errorf("got %+v", plan)
	}
}

func TestAddresses(t *testing.T) {
	plan, err := Choose(nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, got := range map[string]netip.Addr{
		"10.96.255.1": plan.Host(), "10.96.255.2": plan.Node(),
		"10.96.0.1": plan.KubernetesService(), "10.96.0.10": plan.DNS(),
	} {
		if got.String() != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestRoutesAreRead(t *testing.T) {
	used, err := parseRoutes([]byte(`[{"dst":"default","gateway":"192.0.2.1"},{"dst":"192.0.2.0/24"},{"type":"local","dst":"10.7.0.1"}]`))
	if err != nil {
		t.Fatal(err)
	}
	if len(used) != 2 || used[0].String() != "192.0.2.0/24" || used[1].String() != "10.7.0.1/32" {
		t.Errorf("got %v", used)
	}
}
