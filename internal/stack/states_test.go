package stack_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/stack"
)

const (
	smallest     = "authentik with nothing but a version"
	zalando      = "authentik on Zalando's PostgreSQL and Ceph, relaxed"
	external     = "authentik on an external database"
	replicas     = "Authelia 4.38 with three replicas, Redis, a users file and rules"
	directory    = "Authelia with LDAP on Zalando's PostgreSQL"
	before2025_8 = "authentik 2025.6 with its tasks in Redis"
	blueprint    = "authentik 2025.8 with Redis and a blueprint"
)

func TestStates(t *testing.T) {
	storage := func(p *stack.Plan) *stack.Phase { return &p.Storage }
	database := func(p *stack.Plan) *stack.Phase { return &p.Database }
	tuning := func(p *stack.Plan) *stack.Phase { return &p.Tuning }
	idp := func(p *stack.Plan) *stack.Phase { return &p.IdentityProvider }
	// probeHung has a probe find that the storage hangs, so long before now, and the database gone five minutes ago.
	probeHung := func(in *stack.Input, ago time.Duration) {
		in.Facts.Database, in.Facts.MigratedVersion = nil, "2026.8.3"
		at := func(ago time.Duration) metav1.Time { return metav1.NewTime(in.Facts.Now.Add(-ago)) }
		in.Stack.Status.Conditions = append(in.Stack.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDatabaseReady,
			Status: metav1.ConditionFalse, LastTransitionTime: at(5 * time.Minute)})
		completed := at(ago)
		in.Stack.Status.Storage = &v1alpha1.StorageStatus{Probe: &v1alpha1.StorageProbeStatus{CompletedAt: &completed,
			Findings: []v1alpha1.StorageFinding{{Kind: v1alpha1.FindingHangs, Message: "the storage hangs"}}}}
	}
	unready := facts.Workload{Desired: 1, Observed: true, Updated: 1}
	for sentence, test := range map[string]struct {
		base    string
		change  func(*stack.Input)
		phase   func(*stack.Plan) *stack.Phase
		reason  string
		stalled bool
		// says is in the message; bare is whether the phase must have no objects.
		says string
		bare bool
	}{
		"no StorageClass stalls storage":                         {smallest, func(in *stack.Input) { in.Facts.StorageClasses = nil }, storage, v1alpha1.ReasonStorageClassMissing, true, "no default StorageClass", true},
		"no StorageClass holds the database back":                {smallest, func(in *stack.Input) { in.Facts.StorageClasses = nil }, database, v1alpha1.ReasonDependencyNotReady, false, "waiting for storage", true},
		"Zalando's operator is not installed":                    {zalando, func(in *stack.Input) { in.Facts.ZalandoInstalled = false }, database, v1alpha1.ReasonPostgresOperatorMissing, true, "install Zalando's postgres-operator", true},
		"Zalando's operator fails":                               {zalando, func(in *stack.Input) { in.Facts.Zalando = "SyncFailed" }, database, v1alpha1.ReasonPostgresOperatorFailed, false, "SyncFailed", false},
		"Zalando's operator refuses the name":                    {zalando, func(in *stack.Input) { in.Facts.Zalando = "Invalid" }, database, v1alpha1.ReasonPostgresOperatorFailed, true, "teamID", false},
		"Zalando's operator has not made the Secret yet":         {zalando, func(in *stack.Input) { delete(in.Facts.Secrets, zalandoSecret) }, database, v1alpha1.ReasonProgressing, false, zalandoSecret, false},
		"without the database's Secret authentik is not planned": {zalando, func(in *stack.Input) { delete(in.Facts.Secrets, zalandoSecret) }, idp, v1alpha1.ReasonDependencyNotReady, false, "waiting for the database", true},
		"an external database's Secret is missing":               {external, func(in *stack.Input) { delete(in.Facts.Secrets, "db") }, database, v1alpha1.ReasonSecretMissing, false, "Secret db of spec.postgres.external.secretName does not exist", true},
		"an external database's Secret lacks a key":              {external, func(in *stack.Input) { in.Facts.Secrets["db"] = secret("username", "x") }, database, v1alpha1.ReasonSecretMissing, false, "has no key password", true},
		"PostgreSQL does not answer":                             {smallest, func(in *stack.Input) { in.Facts.Database, in.Facts.DatabaseError = nil, "connection refused" }, database, v1alpha1.ReasonDatabaseUnreachable, false, "connection refused", false},
		"a commit hangs": {smallest, func(in *stack.Input) {
			in.Facts.Database, in.Facts.CommitHangsSince = nil, time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC)
		}, database, v1alpha1.ReasonStorageHangs, false, "has been waiting since 2026-11-21T11:00:00Z; until the storage writes again nobody can log in", false},
		"a commit hangs and PostgreSQL's Pod is not ready": {smallest, func(in *stack.Input) {
			in.Facts.Database, in.Facts.CommitHangsSince = nil, time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC)
			in.Facts.Workloads["sso-postgres"] = facts.Workload{Desired: 1, Observed: true, Updated: 1}
		}, database, v1alpha1.ReasonStorageHangs, false, "hangs", false},
		"PostgreSQL takes connections and says nothing": {smallest, func(in *stack.Input) {
			in.Facts.Database, in.Facts.DatabaseError, in.Facts.DatabaseStandsStill = nil, "no answer", true
		}, database, v1alpha1.ReasonDatabaseStandsStill, false, "as they do where the storage (StorageClass local-path) hangs", false},
		"PostgreSQL says nothing, its Pod is not ready": {smallest, func(in *stack.Input) {
			in.Facts.Database, in.Facts.DatabaseStandsStill, in.Facts.Workloads["sso-postgres"] = nil, true, unready
		}, database, v1alpha1.ReasonDatabaseStandsStill, false, "takes connections and gives no answer", false},
		"PostgreSQL says nothing, and a probe has just found why": {smallest, func(in *stack.Input) {
			probeHung(in, time.Minute)
			in.Facts.DatabaseStandsStill, in.Facts.DatabaseError = true, "no answer"
		}, database, v1alpha1.ReasonStorageHangs, false, "takes connections and gives no answer, and the storage probe found it hanging at ", false},
		"PostgreSQL's Pod is not ready, and a probe has just found why": {smallest, func(in *stack.Input) {
			probeHung(in, time.Minute)
			in.Facts.Workloads["sso-postgres"] = unready
		}, database, v1alpha1.ReasonStorageHangs, false, "does not answer, and the storage probe found it hanging at ", false},
		"Zalando's Pods stand still, and a probe has just found why": {zalando, func(in *stack.Input) {
			probeHung(in, time.Minute)
			in.Facts.DatabaseStandsStill = true
		}, database, v1alpha1.ReasonStorageHangs, false, "takes connections and gives no answer, and the storage probe found it hanging at ", false},
		"a probe has found a hang, and PostgreSQL refuses": {smallest, func(in *stack.Input) {
			probeHung(in, time.Minute)
			in.Facts.DatabaseError, in.Facts.DatabaseRefuses = "password authentication failed (SQLSTATE 28P01)", true
		}, database, v1alpha1.ReasonDatabaseUnreachable, false, "28P01", false},
		"what a probe found before the database was last well says nothing of now": {smallest, func(in *stack.Input) {
			probeHung(in, time.Hour)
			in.Facts.DatabaseStandsStill = true
		}, database, v1alpha1.ReasonDatabaseStandsStill, false, "its processes stand still", false},
		"authentik while a commit hangs": {smallest, func(in *stack.Input) {
			in.Facts.Database, in.Facts.CommitHangsSince = nil, time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC)
		}, idp, v1alpha1.ReasonDependencyNotReady, false, "waiting for DatabaseReady: the storage of PostgreSQL", false},
		"PostgreSQL's Pod is not scheduled": {smallest, func(in *stack.Input) {
			in.Facts.Workloads["sso-postgres"] = facts.Workload{Desired: 1, Observed: true, Updated: 1, Problem: "0/1 nodes are available: insufficient memory"}
		}, database, v1alpha1.ReasonPodsFailing, false, "waiting for StatefulSet sso-postgres: 0 of 1 Pods ready: 0/1 nodes are available", false},
		"a database in LATIN1": {blueprint, func(in *stack.Input) { in.Facts.Database.Encoding = "LATIN1" }, database, v1alpha1.ReasonInvalidSpec, true, "UTF8", false},
		"fsync is off": {external, func(in *stack.Input) {
			in.Facts.Database.Settings["fsync"] = facts.Setting{Value: "off", VarType: "bool", Source: "configuration file"}
		}, tuning, v1alpha1.ReasonUnsafeDurability, true, "fsync=off", true},
		"a setting waits for a restart": {zalando, func(in *stack.Input) {
			in.Facts.Database.Settings["max_connections"] = facts.Setting{Value: "100", VarType: "integer", PendingRestart: true}
		}, tuning, v1alpha1.ReasonPendingRestart, false, "max_connections", true},
		"a refused parameter":             {zalando, func(in *stack.Input) { in.Stack.Spec.Postgres.Parameters = map[string]string{"fsync": "off"} }, tuning, v1alpha1.ReasonInvalidSpec, true, "spec.postgres.parameters.fsync", true},
		"an upgrade that skips a release": {blueprint, func(in *stack.Input) { in.Stack.Spec.Authentik.Version, in.Stack.Spec.Cache = "2025.12.4", nil }, idp, v1alpha1.ReasonUpgradePath, true, "write a version of 2025.10 first", true},
		"a downgrade":                     {smallest, func(in *stack.Input) { in.Stack.Spec.Authentik.Version = "2026.5.1" }, idp, v1alpha1.ReasonUpgradePath, true, "only go forward", true},
		"a patch release":                 {smallest, func(in *stack.Input) { in.Stack.Spec.Authentik.Version = "2026.8.4" }, idp, v1alpha1.ReasonProgressing, false, "taken off first", true},
		"a patch release without the triggers": {smallest, func(in *stack.Input) {
			in.Stack.Spec.Authentik.Version, in.Facts.Database.Durability = "2026.8.4", facts.Durability{}
		}, idp, v1alpha1.ReasonProgressing, false, "being updated", false},
		"an unknown version":                      {smallest, func(in *stack.Input) { in.Stack.Spec.Authentik.Version = "2024.12.1" }, idp, v1alpha1.ReasonInvalidSpec, true, "known are", true},
		"a blueprint is missing":                  {blueprint, func(in *stack.Input) { in.Facts.ConfigMaps = nil }, idp, v1alpha1.ReasonSecretMissing, false, "ConfigMap company", true},
		"a Secret for the environment is missing": {external, func(in *stack.Input) { delete(in.Facts.Secrets, "mail") }, idp, v1alpha1.ReasonSecretMissing, false, "Secret mail of spec.authentik.envFromSecrets[0] does not exist in namespace auth; create it or remove it", true},
		"a Secret for the environment sets the database": {external, func(in *stack.Input) {
			in.Facts.Secrets["mail"]["AUTHENTIK_POSTGRESQL__HOST"] = []byte("canary-host")
		}, idp, v1alpha1.ReasonInvalidSpec, true, "has the key AUTHENTIK_POSTGRESQL__HOST", true},
		"the claim of uploads is missing": {external, func(in *stack.Input) { in.Facts.Claims = nil }, idp, v1alpha1.ReasonClaimMissing, false, "PersistentVolumeClaim uploads of spec.authentik.uploads.claimName does not exist", true},
		"the claim of uploads cannot be shared": {external, func(in *stack.Input) {
			in.Facts.Claims["uploads"] = facts.Claim{AccessModes: []string{"ReadWriteOncePod"}}
		}, idp, v1alpha1.ReasonInvalidSpec, true, "is ReadWriteOncePod", true},
		"the mail server's password is missing": {directory, func(in *stack.Input) { delete(in.Facts.Secrets, "mail") }, idp, v1alpha1.ReasonSecretMissing, false, "Secret mail of spec.authelia.smtp.passwordSecretRef does not exist", true},
		"a sender that is no address":           {directory, func(in *stack.Input) { in.Stack.Spec.Authelia.SMTP.Sender = "a@b c@d" }, idp, v1alpha1.ReasonInvalidSpec, true, "Authelia <authelia@example.com>", true},
		"an extra Secret is missing":            {directory, func(in *stack.Input) { delete(in.Facts.Secrets, "oidc") }, idp, v1alpha1.ReasonSecretMissing, false, "Secret oidc of spec.authelia.extraConfig[0] does not exist", true},
		"rules in an extra ConfigMap": {replicas, func(in *stack.Input) {
			in.Facts.ConfigMaps["oidc"]["configuration.yml"] = "access_control: {default_policy: bypass}\n"
		}, idp, v1alpha1.ReasonInvalidSpec, true, "spec.authelia.extraConfig[0] (ConfigMap oidc) sets access_control: write the rules in spec.authelia.accessControl", true},
		"an expression that is none":                     {replicas, func(in *stack.Input) { in.Stack.Spec.Authelia.AccessControl.Rules[0].Resources = []string{"["} }, idp, v1alpha1.ReasonInvalidSpec, true, "rules[0].resources[0] is no regular expression", true},
		"a users file is missing":                        {replicas, func(in *stack.Input) { delete(in.Facts.Secrets, "people") }, idp, v1alpha1.ReasonSecretMissing, false, "users_database.yml", true},
		"a users file that cannot be read is not quoted": {replicas, func(in *stack.Input) { in.Facts.Secrets["people"] = secret("users_database.yml", "users: [canary-") }, idp, v1alpha1.ReasonInvalidSpec, true, "it is not YAML", true},
		"Redis has no address yet":                       {replicas, func(in *stack.Input) { in.Facts.ServiceIPs = nil }, idp, v1alpha1.ReasonProgressing, false, "address", true},
		"migrations have not finished":                   {smallest, func(in *stack.Input) { in.Facts.Database.Migrated = false }, idp, v1alpha1.ReasonProgressing, false, "migrations", false},
		"ANALYZE has not run":                            {smallest, func(in *stack.Input) { in.Facts.MigratedVersion, in.Facts.Database.Durability = "", facts.Durability{} }, idp, v1alpha1.ReasonProgressing, false, "ANALYZE", false},
		"a Pod of the server is not ready": {smallest, func(in *stack.Input) {
			w := in.Facts.Workloads["sso-authentik-server"]
			w.Ready, w.Available = 1, 1
			in.Facts.Workloads["sso-authentik-server"] = w
		}, idp, v1alpha1.ReasonProgressing, false, "waiting for Deployment sso-authentik-server: 1 of 2 Pods ready", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			in, _ := settle(t, cases[test.base]())
			test.change(&in)
			plan := build(t, in)
			phase := test.phase(plan)
			if phase.State.Ready || phase.State.Reason != test.reason || phase.State.Stalled != test.stalled || !strings.Contains(phase.State.Message, test.says) {
				t.Errorf("%s: %+v\nwant %s, stalled %v: …%s…", phase.Condition, phase.State, test.reason, test.stalled, test.says)
			}
			if test.bare && len(phase.Objects) > 0 {
				t.Errorf("%d objects though it cannot be planned", len(phase.Objects))
			}
			if !test.bare && len(phase.Objects) == 0 {
				t.Error("no objects any more, though only the cluster's state changed")
			}
			if strings.Contains(phase.State.Message, "canary") {
				t.Errorf("a secret in a message: %s", phase.State.Message)
			}
		})
	}
}

func TestAnalyzeFollowsMigrations(t *testing.T) {
	in, _ := settle(t, cases[smallest]())
	in.Facts.MigratedVersion, in.Facts.Database.Durability = "2026.8.2", facts.Durability{}
	if plan := build(t, in); !plan.AnalyzeNeeded {
		t.Errorf("migrated, but no ANALYZE: %+v", plan.IdentityProvider.State)
	}
	in.Facts.Database.Migrated = false
	if plan := build(t, in); plan.AnalyzeNeeded {
		t.Error("ANALYZE before the migrations have finished")
	}
}

func TestBlockedNamesWhatStandsInTheWay(t *testing.T) {
	in := cases[smallest]()
	in.Facts.StorageClasses = nil
	plan := build(t, in)
	if by := plan.Blocked(v1alpha1.ConditionDatabaseReady); by == nil || by.Condition != v1alpha1.ConditionStorageReady {
		t.Errorf("the database is blocked by %+v", by)
	}
	if by := plan.Blocked(v1alpha1.ConditionStorageReady); by != nil {
		t.Errorf("storage is blocked by %+v", by)
	}
	_, ready := settle(t, cases[smallest]())
	for _, phase := range ready.Phases() {
		if by := ready.Blocked(phase.Condition); by != nil {
			t.Errorf("%s is blocked by %s in a ready stack", phase.Condition, by.Condition)
		}
	}
}

func TestAutheliaStartsWithOneReplicaUntilItsStorageIsMigrated(t *testing.T) {
	in, _ := settle(t, cases[replicas]())
	count := func(in stack.Input) int32 {
		for _, object := range build(t, in).IdentityProvider.Objects {
			if deployment, is := object.(*appsv1.Deployment); is {
				return *deployment.Spec.Replicas
			}
		}
		t.Fatal("no Deployment")
		return 0
	}
	if got := count(in); got != 3 {
		t.Errorf("%d replicas when settled", got)
	}
	fresh := in
	fresh.Facts.MigratedVersion, fresh.Facts.Workloads = "", nil
	fresh.Facts.Database = &facts.Database{Version: "17.5", Encoding: "UTF8"}
	if got := count(fresh); got != 1 {
		t.Errorf("%d replicas before the migrations", got)
	}
	gone := in
	gone.Facts.Database, gone.Facts.DatabaseError = nil, "timeout"
	if got := count(gone); got != 3 {
		t.Errorf("%d replicas because the database did not answer once", got)
	}
}

func TestAutheliaInMemoryIsHeldToOneReplica(t *testing.T) {
	in := cases["Authelia with its own users and sessions in memory"]()
	in.Stack.Spec.Authelia.Replicas = new(int32(4))
	in.Stack.Spec.Cache = &v1alpha1.CacheSpec{Memory: &v1alpha1.MemoryCache{}}
	_, plan := settle(t, in)
	for _, object := range plan.IdentityProvider.Objects {
		if deployment, is := object.(*appsv1.Deployment); is && *deployment.Spec.Replicas != 1 {
			t.Errorf("%d replicas", *deployment.Spec.Replicas)
		}
	}
}

func TestPodsRollWhenWhatTheyReadChanges(t *testing.T) {
	checksums := func(plan *stack.Plan) map[string]string {
		out := map[string]string{}
		for _, object := range objects(plan) {
			switch object := object.(type) {
			case *appsv1.Deployment:
				out[object.Name] = object.Spec.Template.Annotations["authstack.dev/config-checksum"]
			case *appsv1.StatefulSet:
				out[object.Name] = object.Spec.Template.Annotations["authstack.dev/config-checksum"]
			}
		}
		return out
	}
	for sentence, test := range map[string]struct {
		base   string
		change func(*stack.Input)
		roll   []string
	}{
		"a blueprint's content":   {blueprint, func(in *stack.Input) { in.Facts.ConfigMaps["company"]["company.yaml"] = "version: 1\nentries: []\n" }, []string{"sso-authentik-worker"}},
		"the database's password": {zalando, func(in *stack.Input) { in.Facts.Secrets[zalandoSecret]["password"] = []byte("new") }, []string{"sso-authentik-server", "sso-authentik-worker"}},
		"a user's digest": {replicas, func(in *stack.Input) {
			in.Facts.Secrets["people"] = secret("users_database.yml", strings.Replace(usersYAML, "canary", "other", 1))
		}, []string{"sso-authelia"}},
		"an extra configuration":     {replicas, func(in *stack.Input) { in.Facts.ConfigMaps["oidc"]["configuration.yml"] = "theme: light\n" }, []string{"sso-authelia"}},
		"a variable of a Secret":     {external, func(in *stack.Input) { in.Facts.Secrets["mail"]["AUTHENTIK_EMAIL__PASSWORD"] = []byte("new") }, []string{"sso-authentik-server", "sso-authentik-worker"}},
		"the mail server's password": {directory, func(in *stack.Input) { in.Facts.Secrets["mail"] = secret("password", "new") }, []string{"sso-authelia"}},
		"an extra Secret":            {directory, func(in *stack.Input) { in.Facts.Secrets["oidc"] = secret("configuration.yml", "theme: dark\n") }, []string{"sso-authelia"}},
		"a parameter of PostgreSQL": {smallest, func(in *stack.Input) {
			in.Stack.Spec.Postgres = &v1alpha1.PostgresSpec{Parameters: map[string]string{"work_mem": "9MB"}}
		}, []string{"sso-postgres"}},
		"the time": {smallest, func(in *stack.Input) { in.Facts.Now = in.Facts.Now.AddDate(1, 0, 0) }, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			in, plan := settle(t, cases[test.base]())
			before := checksums(plan)
			test.change(&in)
			var rolled []string
			for name, checksum := range checksums(build(t, in)) {
				if before[name] != checksum {
					rolled = append(rolled, name)
				}
			}
			slices.Sort(rolled)
			if !slices.Equal(rolled, test.roll) {
				t.Errorf("%v roll, want %v", rolled, test.roll)
			}
		})
	}
}

func TestAVolumeGrowsByItsClaimSinceTemplatesCannotChange(t *testing.T) {
	in, _ := settle(t, cases[smallest]())
	workload := in.Facts.Workloads["sso-postgres"]
	workload.ClaimSize, workload.ClaimClass = "10Gi", "local-path"
	in.Facts.Workloads["sso-postgres"] = workload
	in.Facts.Volumes = []facts.Volume{{Claim: "data-sso-postgres-0", StorageClass: "local-path", Local: true}}
	in.Stack.Spec.Postgres = &v1alpha1.PostgresSpec{Storage: &v1alpha1.StorageSpec{Size: new(resource.MustParse("30Gi"))}}
	template, claim := "", ""
	for _, object := range build(t, in).Database.Objects {
		switch object := object.(type) {
		case *appsv1.StatefulSet:
			template = object.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String()
		case *corev1.PersistentVolumeClaim:
			claim = object.Name + " " + object.Spec.Resources.Requests.Storage().String()
		}
	}
	if template != "10Gi" || claim != "data-sso-postgres-0 30Gi" {
		t.Errorf("template %s, claim %q", template, claim)
	}
}

// What a StatefulSet was made with cannot be changed, so a plan of a newer operator or a changed spec
// must ask for the same.
func TestAStatefulSetKeepsItsClaimTemplate(t *testing.T) {
	redis := func(appendOnly v1alpha1.RedisAppendOnly) func(*stack.Input) {
		return func(in *stack.Input) {
			in.Stack.Spec.Cache = &v1alpha1.CacheSpec{Redis: &v1alpha1.RedisCache{AppendOnly: appendOnly}}
		}
	}
	made := func(size, class string) func(*stack.Input) {
		return func(in *stack.Input) {
			for _, name := range []string{"sso-redis", "sso-postgres"} {
				workload := in.Facts.Workloads[name]
				workload.ClaimSize, workload.ClaimClass = size, class
				in.Facts.Workloads[name] = workload
			}
		}
	}
	for sentence, test := range map[string]struct {
		base, set string
		change    func(*stack.Input)
		// want are the claim's size and class; "" for no template.
		want, says string
	}{
		"as it was made":                                {replicas, "sso-redis", func(*stack.Input) {}, "1Gi local-path", ""},
		"made without a class":                          {replicas, "sso-redis", made("1Gi", ""), "1Gi -", ""},
		"made with another class":                       {replicas, "sso-redis", made("2Gi", "nfs"), "2Gi nfs", ""},
		"a database made without a class":               {replicas, "sso-postgres", made("10Gi", ""), "10Gi -", ""},
		"the file is not wanted any more":               {replicas, "sso-redis", redis(v1alpha1.RedisAppendDisabled), "1Gi local-path", ""},
		"made without a volume":                         {blueprint, "sso-redis", func(*stack.Input) {}, "", ""},
		"made without a volume, and a file is wanted":   {blueprint, "sso-redis", redis(v1alpha1.RedisAppendAlways), "", "delete the StatefulSet sso-redis"},
		"an upgrade after which losing it costs little": {before2025_8, "sso-redis", func(in *stack.Input) { in.Stack.Spec.Authentik.Version = "2025.8.6" }, "1Gi local-path", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			in, _ := settle(t, cases[test.base]())
			test.change(&in)
			plan := build(t, in)
			got := ""
			for _, object := range objects(plan) {
				if set, is := object.(*appsv1.StatefulSet); is && set.Name == test.set {
					for _, template := range set.Spec.VolumeClaimTemplates {
						class := "-"
						if template.Spec.StorageClassName != nil {
							class = *template.Spec.StorageClassName
						}
						got = template.Spec.Resources.Requests.Storage().String() + " " + class
					}
				}
			}
			if got != test.want {
				t.Errorf("template %q, want %q", got, test.want)
			}
			if state := plan.Cache.State; state.Stalled != (test.says != "") || !strings.Contains(state.Message, test.says) {
				t.Errorf("%+v", state)
			}
		})
	}
}

func TestARemovedParameterIsWrittenBackForZalando(t *testing.T) {
	in, _ := settle(t, cases[zalando]())
	in.Stack.Spec.Postgres.Parameters = map[string]string{"work_mem": "8MB"}
	in.Facts.Database.Settings["log_min_duration_statement"] = facts.Setting{Value: "250", Unit: "ms", VarType: "integer", BootValue: "-1"}
	parameter := func(in stack.Input) (string, bool) {
		cluster := build(t, in).Database.Objects[0].(*unstructured.Unstructured)
		value, found, err := unstructured.NestedString(cluster.Object, "spec", "postgresql", "parameters", "log_min_duration_statement")
		if err != nil {
			t.Fatal(err)
		}
		return value, found
	}
	if value, _ := parameter(in); value != "-1" {
		t.Errorf("written back is %q", value)
	}
	in.Facts.Database.Settings["log_min_duration_statement"] = facts.Setting{Value: "-1", Unit: "ms", VarType: "integer", BootValue: "-1"}
	if value, found := parameter(in); found {
		t.Errorf("still written though the default is in force: %q", value)
	}
}
