package authelia

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ACLConfig is access_control.
type ACLConfig struct {
	DefaultPolicy string `yaml:"default_policy"`
	Networks      []struct {
		Name     string  `yaml:"name"`
		Networks strList `yaml:"networks"`
	} `yaml:"networks"`
	Rules []Rule `yaml:"rules"`
}

// Rule is one rule; the first that matches decides.
type Rule struct {
	Domain      strList  `yaml:"domain"`
	DomainRegex strList  `yaml:"domain_regex"`
	Policy      string   `yaml:"policy"`
	Subject     subjects `yaml:"subject"`
	Networks    strList  `yaml:"networks"`
	Resources   strList  `yaml:"resources"`
	Methods     strList  `yaml:"methods"`

	domains, resources []*regexp.Regexp
	nets               []*net.IPNet
}

// strList reads one string or a list of them.
type strList []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (l *strList) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*l = strList{n.Value}
		return nil
	}
	return n.Decode((*[]string)(l))
}

// subjects is a list of alternatives, each a list of what must all hold.
type subjects [][]string

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *subjects) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*s = subjects{{n.Value}}
		return nil
	}
	for _, c := range n.Content {
		var one strList
		if err := c.Decode(&one); err != nil {
			return err
		}
		*s = append(*s, one)
	}
	return nil
}

// Levels of authentication, and what a policy asks for.
const (
	levelNone = iota
	levelOne
	levelTwo
)

var policies = []string{"bypass", "one_factor", "two_factor", "deny"}

func (a *ACLConfig) validate() (errs []error) {
	bad := func(format string, v ...any) { errs = append(errs, fmt.Errorf(format, v...)) }
	if !contains(policies, a.DefaultPolicy) {
		bad("access_control: option 'default_policy' must be one of 'bypass', 'one_factor', 'two_factor', or 'deny' but it's configured as '%s'", a.DefaultPolicy)
	} else if len(a.Rules) == 0 && (a.DefaultPolicy == "bypass" || a.DefaultPolicy == "deny") {
		bad("access_control: 'default_policy' option '%s' is invalid: when no rules are specified it must be 'two_factor' or 'one_factor'", a.DefaultPolicy)
	}
	named := map[string]strList{}
	for _, n := range a.Networks {
		named[n.Name] = n.Networks
	}
	for i := range a.Rules {
		r := &a.Rules[i]
		if len(r.Domain) == 0 && len(r.DomainRegex) == 0 {
			bad("access_control: rule #%d: option 'domain' or 'domain_regex' must be present but are both absent", i+1)
		}
		if !contains(policies, r.Policy) {
			bad("access_control: rule #%d: option 'policy' must be one of 'deny', 'two_factor', 'one_factor', or 'bypass' but it's configured as '%s'", i+1, r.Policy)
		}
		if r.Policy == "bypass" && len(r.Subject) > 0 {
			bad("access_control: rule #%d: 'policy' option 'bypass' is not supported when 'subject' option is configured", i+1)
		}
		for _, list := range []struct {
			src []string
			dst *[]*regexp.Regexp
		}{{r.DomainRegex, &r.domains}, {r.Resources, &r.resources}} {
			for _, x := range list.src {
				re, err := regexp.Compile(x)
				if err != nil {
					bad("access_control: rule #%d: %v", i+1, err)
					continue
				}
				*list.dst = append(*list.dst, re)
			}
		}
		var cidrs []string
		for _, n := range r.Networks {
			if list, ok := named[n]; ok {
				cidrs = append(cidrs, list...)
			} else {
				cidrs = append(cidrs, n)
			}
		}
		for _, n := range cidrs {
			if ip := net.ParseIP(n); ip != nil {
				bits := 8 * len(ip)
				if ip.To4() != nil {
					ip, bits = ip.To4(), 32
				}
				r.nets = append(r.nets, &net.IPNet{IP: ip, Mask: net.CIDRMask(bits, bits)})
			} else if _, cidr, err := net.ParseCIDR(n); err == nil {
				r.nets = append(r.nets, cidr)
			} else {
				bad("access_control: rule #%d: the network '%s' is not a valid Group Name, IP, or CIDR notation", i+1, n)
			}
		}
	}
	return errs
}

// A target is what is asked for, and by whom.
type target struct {
	url    *url.URL
	method string
	ip     net.IP
	user   string
	groups []string
}

// required returns the policy of the first rule that matches, and whether that rule has subjects.
func (a *ACLConfig) required(t target) (policy string, hasSubjects bool) {
	for i := range a.Rules {
		if a.Rules[i].matches(t) {
			return a.Rules[i].Policy, len(a.Rules[i].Subject) > 0
		}
	}
	return a.DefaultPolicy, false
}

func (r *Rule) matches(t target) bool {
	host := strings.ToLower(t.url.Hostname())
	ok := false
	for _, d := range r.Domain {
		d = strings.ToLower(d)
		if rest, wild := strings.CutPrefix(d, "*."); wild && strings.HasSuffix(host, "."+rest) || d == host {
			ok = true
		}
	}
	for _, re := range r.domains {
		ok = ok || re.MatchString(host)
	}
	if !ok {
		return false
	}
	if len(r.resources) > 0 {
		ok = false
		for _, re := range r.resources {
			ok = ok || re.MatchString(t.url.RequestURI())
		}
		if !ok {
			return false
		}
	}
	if len(r.Methods) > 0 && !contains(r.Methods, t.method) {
		return false
	}
	if len(r.nets) > 0 {
		ok = false
		for _, n := range r.nets {
			ok = ok || n.Contains(t.ip)
		}
		if !ok {
			return false
		}
	}
	// Whoever is anonymous could still turn out to be the subject: the rule matches, and the result is to log in.
	if len(r.Subject) == 0 || t.user == "" {
		return true
	}
	for _, all := range r.Subject {
		ok = true
		for _, s := range all {
			kind, name, _ := strings.Cut(s, ":")
			ok = ok && (kind == "user" && name == t.user || kind == "group" && contains(t.groups, name))
		}
		if ok {
			return true
		}
	}
	return false
}

// The results of a check.
type result int

const (
	authorized result = iota
	unauthorized
	forbidden
)

// decide compares what a policy asks for with the level reached.
func decide(policy string, level int, hasSubjects bool) result {
	switch {
	case policy == "bypass", policy == "one_factor" && level >= levelOne, policy == "two_factor" && level >= levelTwo:
		return authorized
	case policy == "deny" && (level != levelNone || !hasSubjects):
		return forbidden
	}
	return unauthorized
}
