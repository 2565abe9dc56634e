package authelia

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"authstack.dev/authstack/api/v1alpha1"
)

// The outcomes of an authorisation request, as a reverse proxy sees them.
const (
	allowed      = "allowed"
	forbidden    = "forbidden"    // 403
	unauthorised = "unauthorised" // 302 to the portal, or 401
)

// person asks; nobody is "".
type person struct {
	name   string
	groups []string
}

// decide is Authelia's decision for somebody with one factor (v4.39.20):
//   - the first rule whose domain, resources and subject match decides, else the default policy
//     (internal/authorization/authorizer.go GetRequiredLevel);
//   - for an anonymous person every subject matches (access_control_rule.go MatchesSubjects);
//   - bypass is allowed; deny is forbidden, but unauthorised for an anonymous person if the rule has
//     a subject, since it may be another for who they turn out to be; one_factor is allowed after a
//     login; everything else is unauthorised (internal/handlers/handler_authz_common.go isAuthzResult).
func decide(section accessControl, who person, host string) string {
	policy, hasSubject := section.DefaultPolicy, false
	for _, rule := range section.Rules {
		if !matchesDomain(rule, host) || !matchesSubject(rule, who) {
			continue
		}
		policy, hasSubject = rule.Policy, len(rule.Subject) > 0
		break
	}
	anonymous := who.name == ""
	switch {
	case policy == "bypass":
		return allowed
	case policy == "deny" && (!anonymous || !hasSubject):
		return forbidden
	case policy == "one_factor" && !anonymous:
		return allowed
	}
	return unauthorised
}

func matchesDomain(r rule, host string) bool {
	if slices.ContainsFunc(r.DomainRegex, func(expression string) bool { return regexp.MustCompile(expression).MatchString(host) }) {
		return true
	}
	return slices.ContainsFunc(r.Domain, func(domain string) bool {
		if suffix, wild := strings.CutPrefix(domain, "*"); wild {
			return strings.HasSuffix(host, suffix)
		}
		return domain == host
	})
}

func matchesSubject(r rule, who person) bool {
	if len(r.Subject) == 0 || who.name == "" {
		return true
	}
	return slices.ContainsFunc(r.Subject, func(subject string) bool {
		if group, is := strings.CutPrefix(subject, "group:"); is {
			return slices.Contains(who.groups, group)
		}
		return subject == "user:"+who.name
	})
}

func TestTheLatencyUserChangesNothingForOthers(t *testing.T) {
	everybody := []person{{}, {name: "jane"}, {name: "root", groups: []string{"admins"}}}
	hosts := []string{"public.example.com", "app.example.com", "admin.example.com", "secret.example.com", "authstack-latency.example.com", "other.org"}
	rule := func(domain, policy string, subject ...string) v1alpha1.AutheliaAccessRule {
		return v1alpha1.AutheliaAccessRule{Domain: []string{domain}, Policy: v1alpha1.AccessPolicy(policy), Subject: subject}
	}
	for sentence, spec := range map[string]*v1alpha1.AutheliaAccessControl{
		"nothing given":                        nil,
		"a default that lets everybody log in": {DefaultPolicy: "one_factor"},
		"a default that lets everybody in":     {DefaultPolicy: "bypass", Rules: []v1alpha1.AutheliaAccessRule{rule("admin.example.com", "one_factor")}},
		"bypass before a login":                {Rules: []v1alpha1.AutheliaAccessRule{rule("public.example.com", "bypass"), rule("*.example.com", "one_factor")}},
		"a group, then deny":                   {Rules: []v1alpha1.AutheliaAccessRule{rule("admin.example.com", "one_factor", "group:admins"), rule("admin.example.com", "deny"), rule("*.example.com", "one_factor")}},
		"deny, then everybody":                 {DefaultPolicy: "two_factor", Rules: []v1alpha1.AutheliaAccessRule{rule("secret.example.com", "deny"), rule("*.example.com", "one_factor")}},
		"two factors for a group":              {Rules: []v1alpha1.AutheliaAccessRule{rule("admin.example.com", "two_factor", "group:admins"), rule("public.example.com", "bypass")}},
		"a login by expression":                {Rules: []v1alpha1.AutheliaAccessRule{{DomainRegex: []string{`^a\w+\.example\.com$`}, Policy: "one_factor", Subject: []string{"group:admins"}}, rule("*.example.com", "one_factor")}},
		"a login before a bypass":              {Rules: []v1alpha1.AutheliaAccessRule{rule("app.example.com", "one_factor", "user:jane"), rule("*.example.com", "bypass")}},
	} {
		t.Run(sentence, func(t *testing.T) {
			without := access(spec, "sso.example.com", latencyAccess{})
			with := access(spec, "sso.example.com", latencyAccess{name: LatencyUser, confined: true})
			for _, host := range hosts {
				for _, who := range everybody {
					// The protected host is the test's own: there nothing but a login is asked of anonymous people.
					if host == "authstack-latency.example.com" && who.name == "" {
						if got := decide(with, who, host); got != unauthorised {
							t.Errorf("anonymous people at the protected host are %s", got)
						}
						continue
					}
					if before, after := decide(without, who, host), decide(with, who, host); before != after {
						t.Errorf("%q at %s: %s without the latency user, %s with it", who.name, host, before, after)
					}
				}
				tester := person{name: LatencyUser}
				got := decide(with, tester, host)
				switch open := decide(without, person{}, host) == allowed; {
				case host == "authstack-latency.example.com":
					if got != allowed {
						t.Errorf("the latency user is %s at the protected host", got)
					}
				case got == allowed && !open:
					t.Errorf("the latency user reaches %s, which is not open to everybody", host)
				}
			}
		})
	}
}

func TestAnLDAPUserIsLetInAndNotConfined(t *testing.T) {
	section := access(nil, "sso.example.com", latencyAccess{name: "probe"})
	if got := decide(section, person{name: "probe"}, "authstack-latency.example.com"); got != allowed {
		t.Errorf("at the protected host it is %s", got)
	}
	if got := decide(section, person{name: "probe"}, "app.example.com"); got != allowed {
		t.Errorf("elsewhere it is %s", got)
	}
}

func TestDenyCopiesMatchWhatTheirRulesMatch(t *testing.T) {
	given := v1alpha1.AutheliaAccessRule{
		Domain: []string{"app.example.com"}, DomainRegex: []string{"^a[0-9]"}, Policy: "one_factor", Subject: []string{"group:staff"},
		Resources: []string{"^/api/"}, Methods: []string{"GET"}, Networks: []string{"10.0.0.0/8"},
	}
	section := access(&v1alpha1.AutheliaAccessControl{Rules: []v1alpha1.AutheliaAccessRule{given}}, "sso.example.com", latencyAccess{name: LatencyUser, confined: true})
	want := rule{
		Domain: given.Domain, DomainRegex: given.DomainRegex, Policy: "deny", Subject: []string{"user:authstack-latency"},
		Resources: given.Resources, Methods: given.Methods, Networks: given.Networks,
	}
	if deny := section.Rules[1]; !reflect.DeepEqual(deny, want) {
		t.Errorf("%+v", deny)
	}
	want.Policy, want.Subject = "one_factor", given.Subject
	if written := section.Rules[2]; !reflect.DeepEqual(written, want) {
		t.Errorf("%+v", written)
	}
}

func TestCookieDomain(t *testing.T) {
	for host, want := range map[string]string{
		"sso.example.com": "example.com", "auth.team.example.com": "team.example.com", "example.com": "example.com",
		"sso.co.uk": "sso.co.uk", "sso.home.lan": "home.lan", "sso.lan": "sso.lan", "sso.github.io": "sso.github.io",
	} {
		if got := CookieDomain(host); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}
