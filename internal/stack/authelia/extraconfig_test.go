package authelia

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/stack/part"
)

// withFile is the input of a stack with one extra file.
func withFile(spec v1alpha1.AutheliaSpec, kind v1alpha1.ExtraConfigKind, content string) part.Input {
	spec.Version = "4.39.20"
	spec.ExtraConfig = []v1alpha1.AutheliaExtraConfig{{Kind: kind, Name: "extra"}}
	st := &v1alpha1.AuthStack{ObjectMeta: metav1.ObjectMeta{Name: "sso", Namespace: "auth"}}
	st.Spec.Host, st.Spec.Authelia = "sso.example.com", &spec
	in := part.Input{Stack: st}
	if kind == v1alpha1.ExtraConfigSecret {
		in.Facts = facts.Stack{Secrets: map[string]map[string][]byte{"extra": {configKey: []byte(content)}}}
	} else {
		in.Facts = facts.Stack{ConfigMaps: map[string]map[string]string{"extra": {configKey: content}}}
	}
	return in
}

func TestExtraConfigMayNotSetWhatTheOperatorSets(t *testing.T) {
	users := v1alpha1.AutheliaSpec{Users: &v1alpha1.AutheliaUsers{}}
	directory := v1alpha1.AutheliaSpec{LDAP: &v1alpha1.AutheliaLDAP{}}
	mailing := v1alpha1.AutheliaSpec{Users: &v1alpha1.AutheliaUsers{}, SMTP: &v1alpha1.AutheliaSMTP{}}
	for sentence, test := range map[string]struct {
		spec          v1alpha1.AutheliaSpec
		content, says string
	}{
		"a theme":                      {users, "theme: dark\n", ""},
		"an issuer":                    {users, "identity_providers: {oidc: {hmac_secret: canary}}\n", ""},
		"an empty mapping":             {users, "{}\n", ""},
		"fine-tuning of Redis":         {users, "session: {redis: {timeout: 1s}}\n", ""},
		"rules":                        {users, "access_control: {rules: [{domain: a.example.com, policy: bypass}]}\n", "spec.authelia.accessControl"},
		"a default policy":             {users, "access_control:\n  default_policy: one_factor\n", "spec.authelia.accessControl"},
		"rules under a key with a dot": {users, "access_control.rules: []\n", "spec.authelia.accessControl"},
		"an empty section, which takes all rules": {users, "access_control: {}\n", "spec.authelia.accessControl"},
		"a session secret":                        {users, "session: {secret: canary}\n", "the operator generates it"},
		"an encryption key":                       {users, "storage: {encryption_key: canary}\n", "the operator generates it"},
		"another storage":                         {users, "storage: {local: {path: /tmp/x}}\n", "write spec.postgres"},
		"another listener":                        {users, "server: {address: 'tcp://:80/'}\n", "the Service and the probes"},
		"a directory beside the file":             {users, "authentication_backend: {ldap: {address: x}}\n", "write spec.authelia.ldap"},
		"the cost of the file's hashes":           {users, "authentication_backend: {file: {password: {argon2: {memory: 131072}}}}\n", ""},
		"a file beside the directory":             {directory, "authentication_backend: {file: {path: x}}\n", "write spec.authelia.users"},
		"filters of the directory":                {directory, "authentication_backend: {ldap: {users_filter: x}}\n", ""},
		"its password":                            {directory, "authentication_backend: {ldap: {password: canary}}\n", "passwordSecretRef"},
		"a mail server of their own":              {users, "notifier: {smtp: {address: x, password: canary}}\n", ""},
		"a mail server beside spec.authelia.smtp": {mailing, "notifier: {smtp: {address: x}}\n", "spec.authelia.smtp.address"},
		"a file beside spec.authelia.smtp":        {mailing, "notifier: {filesystem: {filename: x}}\n", "spec.authelia.smtp"},
		"fine-tuning of spec.authelia.smtp":       {mailing, "notifier: {smtp: {disable_require_tls: true}}\n", ""},
		"something that is no YAML":               {users, "canary: [\n", "is no YAML mapping"},
		"a list":                                  {users, "- canary\n", "is no YAML mapping"},
	} {
		for _, kind := range []v1alpha1.ExtraConfigKind{"", v1alpha1.ExtraConfigMap, v1alpha1.ExtraConfigSecret} {
			t.Run(sentence+" in "+string(kind), func(t *testing.T) {
				state := checkExtraConfig(withFile(test.spec, kind, test.content))
				if state.Ready != (test.says == "") || !strings.Contains(state.Message, test.says) || strings.Contains(state.Message, "canary") {
					t.Errorf("%+v", state)
				}
				if test.says != "" && (!state.Stalled || state.Reason != v1alpha1.ReasonInvalidSpec) {
					t.Errorf("%+v", state)
				}
			})
		}
	}
}

func TestNotifier(t *testing.T) {
	for sentence, test := range map[string]struct {
		smtp *v1alpha1.AutheliaSMTP
		file string
		want string
	}{
		"a file of the Pod where nothing is given": {nil, "theme: dark\n", "filesystem"},
		"the mail server of the spec":              {&v1alpha1.AutheliaSMTP{Address: "smtp://mail:25", Sender: "a@b.c"}, "theme: dark\n", "smtp"},
		"none where an extra file brings one":      {nil, "notifier: {smtp: {address: x}}\n", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			in := withFile(v1alpha1.AutheliaSpec{Users: &v1alpha1.AutheliaUsers{}, SMTP: test.smtp}, v1alpha1.ExtraConfigSecret, test.file)
			got := notifier(test.smtp, bringsSMTP(in))
			if got["disable_startup_check"] != true {
				t.Errorf("a mail server that is away would keep Authelia from starting: %v", got)
			}
			for _, kind := range []string{"filesystem", "smtp"} {
				if _, has := got[kind]; has != (kind == test.want) {
					t.Errorf("%v", got)
				}
			}
			if server, is := got["smtp"].(section); is && server["username"] != nil {
				t.Errorf("a user name where none is given: %v", got)
			}
		})
	}
}

func TestRedisIsReachedByIPv6Too(t *testing.T) {
	for ip, want := range map[string]string{"10.96.0.12": "10.96.0.12", "fd00::12": "[fd00::12]"} {
		if got := redisHost(ip); got != want {
			t.Errorf("%s: %s", ip, got)
		}
	}
}

func TestAccessControlThatAutheliaWouldNotStartWith(t *testing.T) {
	for sentence, test := range map[string]struct {
		rule v1alpha1.AutheliaAccessRule
		says string
	}{
		"an expression":             {v1alpha1.AutheliaAccessRule{Domain: []string{"a.b"}, Policy: "one_factor", Resources: []string{"^/api/"}}, ""},
		"an open bracket":           {v1alpha1.AutheliaAccessRule{Domain: []string{"a.b"}, Policy: "one_factor", Resources: []string{"^/", "["}}, "rules[0].resources[1]"},
		"a look-ahead":              {v1alpha1.AutheliaAccessRule{DomainRegex: []string{"(?=a)"}, Policy: "one_factor"}, "rules[0].domainRegex[0]"},
		"a domain by user":          {v1alpha1.AutheliaAccessRule{DomainRegex: []string{`^(?P<User>\w+)\.b$`}, Policy: "one_factor"}, ""},
		"a bypass of who must ask":  {v1alpha1.AutheliaAccessRule{DomainRegex: []string{`^(?P<User>\w+)\.b$`}, Policy: "bypass"}, "does not know who asks"},
		"a bypass of a named group": {v1alpha1.AutheliaAccessRule{DomainRegex: []string{`^(?P<app>\w+)\.b$`}, Policy: "bypass"}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := checkAccess(&v1alpha1.AutheliaAccessControl{Rules: []v1alpha1.AutheliaAccessRule{test.rule}})
			if (got == "") != (test.says == "") || !strings.Contains(got, test.says) {
				t.Errorf("%q", got)
			}
		})
	}
}
