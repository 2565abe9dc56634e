package api

import (
	"strings"
	"testing"
)

const (
	authentik = `{apiVersion: authstack.dev/v1alpha1, kind: AuthStack, metadata: {name: sso}, spec: {host: sso.example.com, authentik: {version: "2026.8.3"}}}`
	authelia  = `{apiVersion: authstack.dev/v1alpha1, kind: AuthStack, metadata: {name: sso}, spec: {host: sso.example.com, authelia: {version: "4.39.20", users: {}}}}`
	latency   = `{apiVersion: authstack.dev/v1alpha1, kind: LatencyTest, metadata: {name: evening}, spec: {stackRef: {name: sso}}}`
)

// A row is a manifest, a change to it before it is created, optionally a change after, and a part of
// the refusal. Without a refusal it must be taken.
type row struct{ manifest, first, then, refusal string }

func try(t *testing.T, rows map[string]row) {
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			made, err := created(t, object(t, row.manifest, row.first))
			if row.then != "" {
				if err != nil {
					t.Fatalf("it could not be created: %v", err)
				}
				err = changed(t, made, row.then)
			}
			switch {
			case row.refusal == "" && err != nil:
				t.Errorf("it was refused: %v", err)
			case row.refusal != "" && err == nil:
				t.Error("it was taken")
			case row.refusal != "" && !strings.Contains(err.Error(), row.refusal):
				t.Errorf("the refusal does not say %q: %v", row.refusal, err)
			case err != nil && (strings.Contains(err.Error(), "rule evaluation error") || strings.Contains(err.Error(), "no such")):
				t.Errorf("the refusal shows an error inside a rule: %v", err)
			}
		})
	}
}

func TestIdentityProvider(t *testing.T) {
	try(t, map[string]row{
		"neither product":             {authentik, `{spec: {authentik: null}}`, "", "set exactly one of spec.authentik and spec.authelia"},
		"both products":               {authentik, `{spec: {authelia: {version: "4.39.20", users: {}}}}`, "", "set exactly one of spec.authentik and spec.authelia"},
		"another product later":       {authentik, "", `{spec: {authentik: null, authelia: {version: "4.39.20", users: {}}}}`, "make a second AuthStack"},
		"an unknown authentik":        {authentik, `{spec: {authentik: {version: "2024.12.1"}}}`, "", "for example 2026.8.3"},
		"a month without release":     {authentik, `{spec: {authentik: {version: "2026.3.1"}}}`, "", "for example 2026.8.3"},
		"an incomplete version":       {authentik, `{spec: {authentik: {version: "2026.8"}}}`, "", "for example 2026.8.3"},
		"latest":                      {authentik, `{spec: {authentik: {version: latest}}}`, "", "for example 2026.8.3"},
		"latest over a version":       {authentik, "", `{spec: {authentik: {version: latest}}}`, "for example 2026.8.3"},
		"an unknown one over another": {authentik, "", `{spec: {authentik: {version: "2026.11.0"}}}`, "for example 2026.8.3"},
		"a downgrade of a patch":      {authentik, "", `{spec: {authentik: {version: "2026.8.2"}}}`, "restore a backup into a new AuthStack"},
		"a downgrade of a release":    {authentik, "", `{spec: {authentik: {version: "2026.5.9"}}}`, "restore a backup into a new AuthStack"},
		"a skipped release":           {authentik, `{spec: {authentik: {version: "2026.2.0"}}}`, `{spec: {authentik: {version: "2026.8.3"}}}`, "write the next release"},
		"the next release":            {authentik, `{spec: {authentik: {version: "2026.5.0"}}}`, `{spec: {authentik: {version: "2026.8.3"}}}`, ""},
		"the next release, new year":  {authentik, `{spec: {authentik: {version: "2025.12.5"}}}`, `{spec: {authentik: {version: "2026.2.0"}}}`, ""},
		"the next patch":              {authentik, "", `{spec: {authentik: {version: "2026.8.10"}}}`, ""},
		"an unknown Authelia":         {authelia, `{spec: {authelia: {version: "4.37.5"}}}`, "", "for example 4.39.20"},
		"an Authelia with a v":        {authelia, "", `{spec: {authelia: {version: v4.39.20}}}`, "for example 4.39.20"},
		"an Authelia downgrade":       {authelia, "", `{spec: {authelia: {version: "4.38.9"}}}`, "restore a backup into a new AuthStack"},
		"an Authelia patch back":      {authelia, "", `{spec: {authelia: {version: "4.39.1"}}}`, ""},
		"an Authelia upgrade":         {authelia, `{spec: {authelia: {version: "4.38.9"}}}`, `{spec: {authelia: {version: "4.39.20"}}}`, ""},
		"neither users nor directory": {authelia, `{spec: {authelia: {users: null}}}`, "", "set exactly one of spec.authelia.users"},
		"users and directory": {authelia,
			`{spec: {authelia: {ldap: {address: ldap://x, baseDN: dc=x, user: cn=x, passwordSecretRef: {name: a, key: b}}}}}`, "", "set exactly one of spec.authelia.users"},
		"a directory that is no address": {authelia,
			`{spec: {authelia: {users: null, ldap: {address: ldap.example.com, baseDN: dc=x, user: cn=x, passwordSecretRef: {name: a, key: b}}}}}`, "", "ldaps://HOST[:PORT]"},
		"a bypass with a subject": {authelia,
			`{spec: {authelia: {accessControl: {rules: [{domain: [a.example.com], policy: bypass, subject: ["user:a"]}]}}}}`, "", "remove subject or write policy: one_factor"},
		"a bypass without":            {authelia, `{spec: {authelia: {accessControl: {rules: [{domain: [a.example.com], policy: bypass}]}}}}`, "", ""},
		"a field that does not exist": {authentik, `{spec: {authentik: {replicas: 2}}}`, "", "unknown field"},
	})
}

func TestAutheliaMail(t *testing.T) {
	mail := func(smtp string) string { return `{spec: {authelia: {smtp: ` + smtp + `}}}` }
	rows := map[string]row{
		"a server that asks for no login": {authelia, mail(`{address: "smtp://relay.mail.svc:25", sender: sso@example.com}`), "", ""},
		"a port left to the scheme":       {authelia, mail(`{address: "submission://mail.example.com", sender: sso@example.com}`), "", ""},
		"an IPv6 address":                 {authelia, mail(`{address: "submissions://[fd00::1]:465", sender: "Sign-on <sso@example.com>"}`), "", ""},
		"a login": {authelia,
			mail(`{address: "submissions://mail.example.com:465", sender: sso@example.com, username: sso, passwordSecretRef: {name: mail, key: password}}`), "", ""},
		"a name without a password": {authelia, mail(`{address: "smtp://mail:25", sender: sso@example.com, username: sso}`), "", "set smtp.username and smtp.passwordSecretRef together"},
		"a password without a name": {authelia,
			mail(`{address: "smtp://mail:25", sender: sso@example.com, passwordSecretRef: {name: mail, key: password}}`), "", "set smtp.username and smtp.passwordSecretRef together"},
		"no sender":                {authelia, mail(`{address: "smtp://mail:25"}`), "", "smtp.sender: Required value"},
		"a sender without address": {authelia, mail(`{address: "smtp://mail:25", sender: Authelia}`), "", "for example Authelia <authelia@example.com>"},
	}
	for name, address := range map[string]string{
		"no scheme": "mail.example.com:25", "another scheme": "https://mail.example.com", "a path": "smtp://mail.example.com:25/x", "a user in the address": "smtp://sso:secret@mail.example.com",
		"port 0": "smtp://mail:0", "port 65536": "smtp://mail:65536", "no host": "smtp://:25",
	} {
		rows[name] = row{authelia, mail(`{address: "` + address + `", sender: sso@example.com}`), "", "for example submissions://mail.example.com:465"}
	}
	try(t, rows)
}

func TestAutheliaFiles(t *testing.T) {
	extra := func(items string) string { return `{spec: {authelia: {extraConfig: [` + items + `]}}}` }
	try(t, map[string]row{
		"a ConfigMap as of old":  {authelia, extra(`{name: theme}`), "", ""},
		"a Secret":               {authelia, extra(`{kind: Secret, name: issuer}, {kind: ConfigMap, name: theme}`), "", ""},
		"another kind":           {authelia, extra(`{kind: Deployment, name: theme}`), "", `supported values: "ConfigMap", "Secret"`},
		"one name twice":         {authelia, extra(`{name: theme}, {kind: Secret, name: theme}`), "", "Duplicate value"},
		"a ConfigMap to Secret":  {authelia, extra(`{name: theme}`), extra(`{kind: Secret, name: theme}`), ""},
		"a file without a name":  {authelia, extra(`{kind: Secret}`), "", "name: Required value"},
		"a file of another name": {authelia, extra(`{name: theme, key: x}`), "", "unknown field"},
	})
}

func TestAutheliaAccessControl(t *testing.T) {
	rule := func(fields string) string {
		return `{spec: {authelia: {accessControl: {rules: [{policy: one_factor, ` + fields + `}]}}}}`
	}
	section := func(content string) string { return `{spec: {authelia: {accessControl: ` + content + `}}}` }
	try(t, map[string]row{
		"nothing in it":             {authelia, section(`{}`), "", "defaultPolicy: one_factor or two_factor"},
		"deny and no rule":          {authelia, section(`{defaultPolicy: deny}`), "", "add rules"},
		"bypass and no rule":        {authelia, section(`{defaultPolicy: bypass, rules: []}`), "", "add rules"},
		"a login and no rule":       {authelia, section(`{defaultPolicy: two_factor}`), "", ""},
		"a rule about nothing":      {authelia, rule(`methods: [GET]`), "", "a rule needs domain or domainRegex"},
		"a rule by expression":      {authelia, rule(`domainRegex: ["^a[.]"]`), "", ""},
		"a method that is none":     {authelia, rule(`domain: [a.example.com], methods: [get]`), "", "supported values"},
		"a method twice":            {authelia, rule(`domain: [a.example.com], methods: [GET, GET]`), "", "Duplicate value"},
		"addresses and ranges":      {authelia, rule(`domain: [a.example.com], networks: [10.0.0.0/8, 192.0.2.1, "fd00::/8"]`), "", ""},
		"the name of a network":     {authelia, rule(`domain: [a.example.com], networks: [internal]`), "", "for example 10.0.0.0/8"},
		"a subject without a kind":  {authelia, rule(`domain: [a.example.com], subject: [admins]`), "", "for example group:admins"},
		"a subject without a name":  {authelia, rule(`domain: [a.example.com], subject: ["group:"]`), "", "for example group:admins"},
		"a subject that is allowed": {authelia, rule(`domain: [a.example.com], subject: ["group:admins", "user:jane"]`), "", ""},
	})
}

func TestAuthentikSecretsAndUploads(t *testing.T) {
	claim := func(name string) string { return `{spec: {authentik: {uploads: {claimName: "` + name + `"}}}}` }
	try(t, map[string]row{
		"Secrets for the environment": {authentik, `{spec: {authentik: {envFromSecrets: [{name: mail}, {name: s3}]}}}`, "", ""},
		"one Secret twice":            {authentik, `{spec: {authentik: {envFromSecrets: [{name: mail}, {name: mail}]}}}`, "", "Duplicate value"},
		"a Secret without a name":     {authentik, `{spec: {authentik: {envFromSecrets: [{name: ""}]}}}`, "", "envFromSecrets[0].name"},
		"a claim":                     {authentik, claim("sso-uploads"), "", ""},
		"a claim later":               {authentik, "", claim("sso-uploads"), ""},
		"a path for a claim":          {authentik, claim("/data"), "", "for example sso-uploads"},
		"no claim":                    {authentik, `{spec: {authentik: {uploads: {}}}}`, "", "claimName: Required value"},
		"an empty claim":              {authentik, claim(""), "", "for example sso-uploads"},
	})
}

func TestCache(t *testing.T) {
	try(t, map[string]row{
		"Redis with authentik 2026.8":      {authentik, `{spec: {cache: {redis: {}}}}`, "", "remove spec.cache or write cache: {postgres: {}}"},
		"Redis with authentik 2025.10":     {authentik, `{spec: {authentik: {version: "2025.10.1"}, cache: {redis: {}}}}`, "", "write cache: {postgres: {}}"},
		"PostgreSQL with authentik 2025.8": {authentik, `{spec: {authentik: {version: "2025.8.4"}, cache: {postgres: {}}}}`, "", "write cache: {redis: {}}"},
		"Redis with authentik 2025.8":      {authentik, `{spec: {authentik: {version: "2025.8.4"}, cache: {redis: {}}}}`, "", ""},
		"an upgrade that leaves Redis":     {authentik, `{spec: {authentik: {version: "2025.8.4"}, cache: {redis: {}}}}`, `{spec: {authentik: {version: "2025.10.0"}, cache: null}}`, ""},
		"an upgrade that keeps Redis":      {authentik, `{spec: {authentik: {version: "2025.8.4"}, cache: {redis: {}}}}`, `{spec: {authentik: {version: "2025.10.0"}}}`, "write cache: {postgres: {}}"},
		"memory with authentik":            {authentik, `{spec: {cache: {memory: {}}}}`, "", "remove spec.cache"},
		"PostgreSQL with Authelia":         {authelia, `{spec: {cache: {postgres: {}}}}`, "", "write cache: {redis: {}} or cache: {memory: {}}"},
		"two Authelias in memory":          {authelia, `{spec: {authelia: {replicas: 2}, cache: {memory: {}}}}`, "", "write cache: {redis: {}} or authelia: {replicas: 1}"},
		"one Authelia in memory":           {authelia, `{spec: {authelia: {replicas: 1}, cache: {memory: {}}}}`, "", ""},
		"a second Authelia later":          {authelia, `{spec: {cache: {memory: {}}}}`, `{spec: {authelia: {replicas: 2}}}`, "write cache: {redis: {}} or authelia: {replicas: 1}"},
		"two Authelias and nothing said":   {authelia, `{spec: {authelia: {replicas: 2}}}`, "", ""},
		"two kinds of cache":               {authelia, `{spec: {cache: {redis: {}, memory: {}}}}`, "", "set exactly one of cache.redis, cache.postgres and cache.memory"},
		"a cache of no kind":               {authelia, `{spec: {cache: {}}}`, "", "or remove spec.cache"},
		"an append-only file of size 0":    {authelia, `{spec: {cache: {redis: {size: 0}}}}`, "", "size must be more than 0"},
		"one that is negative":             {authelia, `{spec: {cache: {redis: {size: -1Gi}}}}`, "", "size must be more than 0"},
	})
}

func TestHost(t *testing.T) {
	rows := map[string]row{
		"one label with Authelia":  {authelia, `{spec: {host: sso}}`, "", "write for example host: sso.example.com"},
		"one label with authentik": {authentik, `{spec: {host: sso}}`, "", ""},
		"63 characters":            {authentik, `{spec: {host: ` + strings.Repeat("a", 63) + `.example.com}}`, "", ""},
		"dashes and digits":        {authentik, `{spec: {host: 1-a--b.2.example}}`, "", ""},
	}
	for name, host := range map[string]string{
		"a scheme": "https://sso.example.com", "a port": "sso.example.com:443", "a path": "sso.example.com/login", "an underscore": "s_so.example.com",
		"upper case": "SSO.example.com", "a final dot": "sso.example.com.", "a dash first": "-sso.example.com", "a dash last": "sso-.example.com",
		"two dots": "sso..example.com", "a space": "sso example.com", "a wildcard": "*.example.com", "a label of 64": strings.Repeat("a", 64) + ".example.com",
	} {
		rows[name] = row{authentik, `{spec: {host: "` + host + `"}}`, "", "for example sso.example.com"}
	}
	rows["an address"] = row{authentik, `{spec: {host: "10.1.2.3"}}`, "", "host must be a name, not an IP address"}
	rows["nothing"] = row{authentik, `{spec: {host: ""}}`, "", "spec.host"}
	rows["no host"] = row{authentik, `{spec: {host: null}}`, "", "spec.host: Required value"}
	rows["254 characters"] = row{authentik, `{spec: {host: ` + strings.Repeat("a.", 126) + `aa}}`, "", "spec.host: Too long"}
	try(t, rows)
}

func TestNames(t *testing.T) {
	try(t, map[string]row{
		"a stack's name of 41":         {authentik, `{metadata: {name: ` + strings.Repeat("a", 41) + `}}`, "", "at most 40 characters"},
		"a stack's name of 40":         {authentik, `{metadata: {name: ` + strings.Repeat("a", 40) + `}}`, "", ""},
		"a stack's name with a dot":    {authentik, `{metadata: {name: sso.eu}}`, "", "hold only a-z, 0-9 and -"},
		"a stack's name with a digit":  {authentik, `{metadata: {name: 1sso}}`, "", "must start with a letter"},
		"a test's name of 53":          {latency, `{metadata: {name: ` + strings.Repeat("a", 53) + `}}`, "", "at most 52 characters"},
		"a test's name of 52":          {latency, `{metadata: {name: ` + strings.Repeat("a", 52) + `}}`, "", ""},
		"a stack of another namespace": {latency, `{spec: {stackRef: {namespace: other}}}`, "", "create the LatencyTest in the namespace of the stack"},
		"another stack later":          {latency, "", `{spec: {stackRef: {name: other}}}`, "make another LatencyTest for another stack"},
	})
}

func TestBaseline(t *testing.T) {
	baseline := func(fields string) string { return `{spec: {baseline: {` + fields + `}}}` }
	try(t, map[string]row{
		"an earlier test":         {latency, baseline(`testName: morning`), "", ""},
		"a saved one":             {latency, baseline(`configMapName: sso-baseline, notWorseThanPercent: 5`), "", ""},
		"none":                    {latency, baseline(`notWorseThanPercent: 5`), "", "set exactly one of testName (an earlier LatencyTest) and configMapName"},
		"both":                    {latency, baseline(`testName: morning, configMapName: x`), "", "set exactly one of testName"},
		"itself":                  {latency, baseline(`testName: evening`), "", "cannot be its own baseline"},
		"not worse than nothing":  {latency, baseline(`testName: morning, notWorseThanPercent: 0`), "", "notWorseThanPercent must be 1 to 1000"},
		"not worse than anything": {latency, baseline(`testName: morning, notWorseThanPercent: 1001`), "", "notWorseThanPercent must be 1 to 1000"},
		"a fraction of a percent": {latency, baseline(`testName: morning, notWorseThanPercent: 2.5`), "", "notWorseThanPercent"},
	})
}

func TestLatency(t *testing.T) {
	objective := func(percentile, below string) string {
		return `{spec: {objectives: [{scenario: Login, percentile: ` + percentile + `, below: ` + below + `}]}}`
	}
	schedule := func(cron string) string { return `{spec: {latency: {schedule: "` + cron + `"}}}` }
	try(t, map[string]row{
		"percentile 0":            {latency, objective("0", "1s"), "", "percentile must be 1 to 100"},
		"percentile 101":          {latency, objective("101", "1s"), "", "percentile must be 1 to 100"},
		"percentile 100":          {latency, objective("100", "1s"), "", ""},
		"a percentile with digit": {latency, objective("99.9", "1s"), "", "percentile"},
		"below nothing":           {latency, objective("95", "0s"), "", "below must be more than 0"},
		"below a negative":        {latency, objective("95", "-1s"), "", "below must be more than 0"},
		"below an hour":           {latency, objective("95", "1h"), "", "at most 10m"},
		"below a word":            {latency, objective("95", "fast"), "", "for example 800ms"},
		"below a bare number":     {latency, objective("95", `"800"`), "", "for example 800ms"},
		"an unknown scenario":     {latency, `{spec: {scenarios: [{name: Signup}]}}`, "", `supported values: "Login", "Dashboard", "ForwardAuth", "OIDC"`},
		"a client of Login":       {latency, `{spec: {scenarios: [{name: Login, oidc: {clientSecretRef: {name: c}}}]}}`, "", "oidc names the client of the scenario OIDC"},
		"a client of OIDC":        {latency, `{spec: {scenarios: [{name: OIDC, oidc: {clientSecretRef: {name: c}}}]}}`, "", ""},
		"a client without a name": {latency, `{spec: {scenarios: [{name: OIDC, oidc: {clientSecretRef: {}}}]}}`, "", "name"},
		"OIDC of authentik":       {authentik, `{spec: {latency: {scenarios: [{name: OIDC}]}}}`, "", ""},
		"authentik with a client": {authentik, `{spec: {latency: {scenarios: [{name: OIDC, oidc: {clientSecretRef: {name: c}}}]}}}`, "", "makes its own client in authentik; remove oidc"},
		"OIDC of Authelia":        {authelia, `{spec: {latency: {scenarios: [{name: OIDC}]}}}`, "", "name one for the scenario OIDC"},
		"Authelia with a client":  {authelia, `{spec: {latency: {scenarios: [{name: OIDC, oidc: {clientSecretRef: {name: c}}}]}}}`, "", ""},
		"a number and a time":     {latency, `{spec: {scenarios: [{name: Login, iterations: 9, duration: 1m}]}}`, "", "set one of iterations (a number) and duration (a time)"},
		"rates that fall":         {latency, `{spec: {scenarios: [{name: Login, rateStepsPerMinute: [2, 1]}]}}`, "", "the rates must rise; write each higher than the one before"},
		"the same rate twice":     {latency, `{spec: {scenarios: [{name: Login, rateStepsPerMinute: [1, 2, 2]}]}}`, "", "the rates must rise"},
		"one rate and steps":      {latency, `{spec: {scenarios: [{name: Login, ratePerMinute: 9, rateStepsPerMinute: [1, 2]}]}}`, "", "set one of ratePerMinute"},
		"a duration of a second":  {latency, `{spec: {scenarios: [{name: Login, duration: 1s}]}}`, "", "duration must be 5s to 24h"},
		"two clocks in one test":  {latency, `{spec: {scenarios: [{name: Login, duration: 1m}, {name: ForwardAuth}]}}`, "", "needs a LatencyTest of its own"},
		"a script":                {latency, `{spec: {scenarios: [{name: Script, script: {configMapRef: {name: a, key: b}}, duration: 1m}], objectives: [{scenario: Script, endpoint: x, percentile: 50, below: 1s}]}}`, "", ""},
		"a Trend of a script":     {latency, `{spec: {objectives: [{scenario: Script, endpoint: render_Time2, percentile: 50, below: 1s}]}}`, "", ""},
		"a name of two words":     {latency, `{spec: {objectives: [{scenario: Script, endpoint: render (Trend), percentile: 50, below: 1s}]}}`, "", "should match"},
		"no script":               {latency, `{spec: {scenarios: [{name: Script}]}}`, "", "write script: {configMapRef: {name: NAME, key: KEY}}"},
		"a script without a key":  {latency, `{spec: {scenarios: [{name: Script, script: {configMapRef: {name: a}}}]}}`, "", "spec.scenarios[0].script.configMapRef.key: Required value"},
		"a script elsewhere":      {latency, `{spec: {scenarios: [{name: Script, script: {configMapRef: {name: a, key: b, namespace: c}}}]}}`, "", "unknown field"},
		"a login with a script":   {latency, `{spec: {scenarios: [{name: Login, script: {configMapRef: {name: a, key: b}}}]}}`, "", "write name: Script, or remove script"},
		"a script among others":   {latency, `{spec: {scenarios: [{name: Login}, {name: Script, script: {configMapRef: {name: a, key: b}}}]}}`, "", "write it as the only scenario"},
		"an open model":           {latency, `{spec: {scenarios: [{name: Login, ratePerMinute: 60, duration: 1m}]}}`, "", ""},
		"seventeen generators":    {latency, `{spec: {generator: {pods: 17}}}`, "", "less than or equal to 16"},
		"too little memory":       {latency, `{spec: {generator: {resources: {limits: {memory: 24Mi}}}}}`, "", "write at least memory: 64Mi"},
		"memory in bytes":         {latency, `{spec: {generator: {resources: {limits: {memory: 67108864}}}}}`, "", ""},
		"no limit of memory":      {latency, `{spec: {generator: {resources: {limits: {cpu: 1}}}}}`, "", ""},
		"a scenario twice":        {latency, `{spec: {scenarios: [{name: Login}, {name: Login}]}}`, "", "Duplicate value"},
		"no repeats":              {latency, `{spec: {repeats: 0}}`, "", "greater than or equal to 1"},
		"four fields of cron":     {authentik, schedule("0 5 * *"), "", "for example 0 5 * * *"},
		"six fields of cron":      {authentik, schedule("0 0 5 * * *"), "", "for example 0 5 * * *"},
		"words for cron":          {authentik, schedule("every five minutes of day"), "", "for example 0 5 * * *"},
		"an hour 25":              {authentik, schedule("0 25 * * *"), "", "for example 0 5 * * *"},
		"a minute 60":             {authentik, schedule("60 5 * * *"), "", "for example 0 5 * * *"},
		"cron as usual":           {authentik, schedule("*/15 8-18 * jan,jul mon-fri"), "", ""},
		"cron with lists":         {authentik, schedule("5,35 0-23/2 1 */3 0"), "", ""},
		"cron by name":            {authentik, schedule("@daily"), "", ""},
		"an unknown name":         {authentik, schedule("@fortnightly"), "", "@hourly, @daily, @weekly or @monthly"},
	})
}
