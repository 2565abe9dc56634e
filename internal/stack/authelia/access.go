package authelia

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"authstack.dev/authstack/api/v1alpha1"
)

// rule of access_control, as Authelia reads it.
type rule struct {
	Domain      []string `yaml:"domain,omitempty"`
	DomainRegex []string `yaml:"domain_regex,omitempty"`
	Policy      string   `yaml:"policy"`
	Subject     []string `yaml:"subject,omitempty"`
	Resources   []string `yaml:"resources,omitempty"`
	Methods     []string `yaml:"methods,omitempty"`
	Networks    []string `yaml:"networks,omitempty"`
}

// accessControl section.
type accessControl struct {
	DefaultPolicy string `yaml:"default_policy"`
	Rules         []rule `yaml:"rules,omitempty"`
}

// latencyAccess says what the latency user is for access control.
type latencyAccess struct {
	// name of the user; empty where there is none.
	name string
	// confined is whether it may reach nothing but the protected host: so for the user that we made.
	// A user of somebody's directory is left what the directory's owner gave it.
	confined bool
}

// access control of the user, with the latency user let into one host and kept out of all others.
//
// Authelia takes the first rule that matches. A rule with a subject matches an anonymous request
// whatever its subject, and denies it not with 403 but with "unauthorised", a redirect to the portal
// (internal/authorization/access_control_rule.go MatchesSubjects, internal/handlers isAuthzResult).
// Hence a deny for the latency user stands before each rule that asks for a login and matches exactly
// the same requests: for everybody else, anonymous people included, the outcome stays the same.
// Before a bypass rule it would take the bypass away from anonymous people, and before a deny rule
// it would turn their 403 into a redirect; neither gives the latency user anything, so there it is left out.
func access(spec *v1alpha1.AutheliaAccessControl, host string, latency latencyAccess) accessControl {
	if spec == nil {
		spec = &v1alpha1.AutheliaAccessControl{Rules: []v1alpha1.AutheliaAccessRule{
			{Domain: []string{"*." + CookieDomain(host)}, Policy: "one_factor"},
		}}
	}
	section := accessControl{DefaultPolicy: cmp.Or(string(spec.DefaultPolicy), "deny")}
	subject := []string{"user:" + latency.name}
	if latency.name != "" {
		section.Rules = append(section.Rules, rule{Domain: []string{ProtectedHost(host)}, Policy: "one_factor", Subject: subject})
	}
	deny := latency.name != "" && latency.confined
	for _, given := range spec.Rules {
		asWritten := rule{
			Domain: given.Domain, DomainRegex: given.DomainRegex, Policy: string(given.Policy), Subject: given.Subject,
			Resources: given.Resources, Methods: given.Methods, Networks: given.Networks,
		}
		if deny && asksForLogin(asWritten.Policy) {
			kept := asWritten
			kept.Policy, kept.Subject = "deny", subject
			section.Rules = append(section.Rules, kept)
		}
		section.Rules = append(section.Rules, asWritten)
	}
	if deny && asksForLogin(section.DefaultPolicy) {
		section.Rules = append(section.Rules, rule{DomainRegex: []string{".*"}, Policy: "deny", Subject: subject})
	}
	return section
}

// identityGroups in a domain's regular expression make it match by who asks
// (internal/authorization/const.go).
var identityGroups = []string{"User", "Group"}

// checkAccess says what is wrong with expressions, at which Authelia would not start, or returns "".
func checkAccess(spec *v1alpha1.AutheliaAccessControl) string {
	const domainRegex = "domainRegex"
	if spec == nil {
		return ""
	}
	for i, given := range spec.Rules {
		for _, list := range []struct {
			field       string
			expressions []string
		}{{"resources", given.Resources}, {domainRegex, given.DomainRegex}} {
			for j, expression := range list.expressions {
				where := fmt.Sprintf("spec.authelia.accessControl.rules[%d].%s[%d]", i, list.field, j)
				compiled, err := regexp.Compile(expression)
				if err != nil {
					return fmt.Sprintf("%s is no regular expression in Go's notation: %s; write for example ^/api/", where, err)
				}
				byIdentity := slices.ContainsFunc(compiled.SubexpNames(), func(name string) bool { return slices.Contains(identityGroups, name) })
				if list.field == domainRegex && byIdentity && given.Policy == "bypass" {
					return where + " has a group User or Group, and a bypass rule does not know who asks; write policy: one_factor or remove the group's name"
				}
			}
		}
	}
	return ""
}

func asksForLogin(policy string) bool { return policy == "one_factor" || policy == "two_factor" }
