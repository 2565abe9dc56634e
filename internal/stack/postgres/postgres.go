// Package postgres plans a stack's database: through Zalando's operator, as one PostgreSQL of our
// own, or one that exists. Each provider is a file.
package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack/part"
	"authstack.dev/authstack/internal/stack/storage"
	"authstack.dev/authstack/internal/tuning"
)

// Port of PostgreSQL.
const Port = 5432

// defaultMajor is the newest version that every provider runs: Zalando's operator 1.15 refuses 18
// (facts/postgres-ceph.md A1).
const defaultMajor = "17"

// Needs of the PostgreSQL container where the user gives none, as documented in the API.
var needs = part.Needs{CPU: "250m", Memory: "1Gi", MemoryLimit: "1Gi"}

// Result is the planned database.
type Result struct {
	Objects []client.Object
	State   part.State
	// Database is how to reach it; nil while that is not known.
	Database *part.Database
}

// provider is where a database comes from.
type provider interface {
	// name as in status.
	name() string
	// major version of PostgreSQL.
	major() int
	// storage is whether the database needs a StorageClass of this cluster; claims are the names of
	// the volume claims.
	claims() []string
	// secret that opens it for a role.
	secret(role string) string
	plan(in part.Input, order order) (Result, error)
}

// order is what a provider has to deliver.
type order struct {
	product        part.Product
	database, role string
	className      string
	size           resource.Quantity
	resources      corev1.ResourceRequirements
	settings       tuning.Result
}

// Plan is the database part of a stack.
type Plan struct {
	provider provider
	product  part.Product
	spec     v1alpha1.PostgresSpec
}

// New chooses the provider that the spec asks for; nothing given means standalone.
func New(st *v1alpha1.AuthStack, product part.Product) *Plan {
	plan := &Plan{product: product}
	if st.Spec.Postgres != nil {
		plan.spec = *st.Spec.Postgres
	}
	switch {
	case plan.spec.External != nil:
		plan.provider = external{st: st, spec: *plan.spec.External}
	case plan.spec.Zalando != nil:
		plan.provider = zalando{st: st, spec: *plan.spec.Zalando}
	default:
		standalone := standalone{st: st}
		if plan.spec.Standalone != nil {
			standalone.spec = *plan.spec.Standalone
		}
		plan.provider = standalone
	}
	return plan
}

// Provider is zalando, standalone or external.
func (p *Plan) Provider() string { return p.provider.name() }

// External is whether the database exists outside of the stack.
func (p *Plan) External() bool { return p.spec.External != nil }

// Claims are the names of the database's volume claims.
func (p *Plan) Claims() []string { return p.provider.claims() }

// Name of the database.
func (p *Plan) Name() string {
	if p.spec.External != nil {
		return p.spec.External.Database
	}
	return cmp.Or(p.spec.Database, p.product.Name)
}

// Storage finds the StorageClass.
func (p *Plan) Storage(in part.Input) storage.Result {
	if p.External() {
		return storage.External()
	}
	stored := storage.Resolve(in, p.spec.Storage, p.Claims())
	if stored.Status != nil && stored.Status.Medium == v1alpha1.MediumNodeLocal {
		stored.Status.LostDisk = p.lostDisk()
	}
	return stored
}

// lostDisk says what the loss of one node's disk costs. A claim on a node's disk pins its Pod: nothing
// but a second instance elsewhere holds the data (facts/postgres-ceph.md D5).
func (p *Plan) lostDisk() string {
	switch {
	case p.spec.Zalando == nil:
		return "one disk holds the only copy: losing it loses everything since the last backup; spec.postgres.zalando with two instances, in a new AuthStack, keeps a second copy"
	case instances(*p.spec.Zalando) < 2:
		return "one disk holds the only copy: losing it loses everything since the last backup; write spec.postgres.zalando.instances: 2"
	}
	return fmt.Sprintf("each of the %d instances has a disk of its own: losing one costs that instance, and, if it was the primary, the commits of the last moments; delete its claim and Pod and Patroni clones it again",
		instances(*p.spec.Zalando))
}

// Size of each volume of the database.
func (p *Plan) Size() resource.Quantity {
	if p.spec.Storage == nil {
		return part.QuantityOr(nil, "10Gi")
	}
	return part.QuantityOr(p.spec.Storage.Size, "10Gi")
}

// Tune computes the settings; previous ones that are asked no longer are restored where the provider
// does not forget them by itself.
func (p *Plan) Tune(in part.Input, medium v1alpha1.Medium) tuning.Result {
	resources := part.Resources(p.spec.Resources, needs)
	size := p.Size()
	result := tuning.Recommend(tuning.Input{
		Major:       p.provider.major(),
		MemoryBytes: resources.Limits.Memory().Value(),
		VolumeBytes: size.Value(),
		Medium:      medium,
		Product:     p.product.Name,
		Connections: p.product.Connections,
		DeepJoins:   p.product.DeepJoins,
		Durability:  p.Durability().Level,
		External:    p.External(),
		Parameters:  p.spec.Parameters,
	})
	if p.spec.Zalando != nil && in.Stack.Status.Database != nil {
		var unknown []string
		result.Settings, unknown = tuning.Restore(result.Settings, in.Stack.Status.Database.Settings, in.Facts.Database)
		for _, name := range unknown {
			result.Refused = append(result.Refused, fmt.Sprintf(
				"spec.postgres.parameters.%s was removed, but Zalando's operator keeps it and its default is not known until PostgreSQL answers; write the default explicitly", name))
		}
	}
	return result
}

// Plan the database on the storage that was found.
func (p *Plan) Plan(in part.Input, stored storage.Result, settings tuning.Result) (Result, error) {
	if !stored.State.Ready {
		return Result{State: part.Waiting(v1alpha1.ReasonDependencyNotReady, "waiting for storage: "+stored.State.Message)}, nil
	}
	result, err := p.provider.plan(in, order{
		product:   p.product,
		database:  p.Name(),
		role:      p.product.Name,
		className: stored.ClassName,
		size:      p.Size(),
		resources: part.Resources(p.spec.Resources, needs),
		settings:  settings,
	})
	if err != nil {
		return Result{}, fmt.Errorf("planning the %s database: %w", p.Provider(), err)
	}
	if hung := hangs(in, cmp.Or(stored.ClassName, "unknown")); hung.Reason != "" && !result.State.Stalled {
		result.State = hung
	} else if result.State.Ready {
		result.State = answered(in, p.product, p.Name())
	}
	return result, nil
}

// hangs is the state of a database that waits for its storage, or is likely to; without a reason where nothing says so.
func hangs(in part.Input, class string) part.State {
	const consequence = "; until the storage writes again nobody can log in, and what was committed before is safe; on Ceph look at ceph status: are enough OSDs up?"
	if since := in.Facts.CommitHangsSince; !since.IsZero() {
		return part.Waiting(v1alpha1.ReasonStorageHangs,
			fmt.Sprintf("the storage of PostgreSQL (StorageClass %s) hangs: a commit has been waiting since %s", class, since.UTC().Format(time.RFC3339))+consequence)
	}
	silent := "PostgreSQL takes connections and gives no answer"
	if !in.Facts.DatabaseStandsStill {
		silent = "PostgreSQL does not answer"
	}
	gone := in.Facts.Database == nil && !in.Facts.DatabaseRefuses && in.Facts.MigratedVersion != ""
	if at := probeHung(in); !at.IsZero() && gone {
		return part.Waiting(v1alpha1.ReasonStorageHangs, fmt.Sprintf("the storage of PostgreSQL (StorageClass %s) hangs: %s, and the storage probe found it hanging at %s",
			class, silent, at.UTC().Format(time.RFC3339))+consequence)
	}
	if !in.Facts.DatabaseStandsStill {
		return part.State{}
	}
	return part.Waiting(v1alpha1.ReasonDatabaseStandsStill, fmt.Sprintf("%s: its processes stand still, "+
		"as they do where the storage (StorageClass %s) hangs; on Ceph look at ceph status: are enough OSDs up? Else at the node: has it processor time left?", silent, class))
}

// recently is how long before the database went a probe may have found that the storage hangs, to speak of the same: a
// Pod is called unready only after some probes of its own have failed.
const recently = 3 * time.Minute

// probeHung is when the storage probe found that the storage hangs, zero where it did not, or longer ago than that.
func probeHung(in part.Input) time.Time {
	stored := in.Stack.Status.Storage
	if stored == nil || stored.Probe == nil || stored.Probe.CompletedAt == nil ||
		!slices.ContainsFunc(stored.Probe.Findings, func(f v1alpha1.StorageFinding) bool { return f.Kind == v1alpha1.FindingHangs }) {
		return time.Time{}
	}
	gone := in.Facts.Now
	if c := meta.FindStatusCondition(in.Stack.Status.Conditions, v1alpha1.ConditionDatabaseReady); c != nil && c.Status == metav1.ConditionFalse {
		gone = c.LastTransitionTime.Time
	}
	if at := stored.Probe.CompletedAt.Time; at.After(gone.Add(-recently)) {
		return at
	}
	return time.Time{}
}

// Target is how to reach the database of a stack that runs, by the Secret in the facts; nil where that
// is missing. Unlike Plan it asks for nothing else and makes no password.
func (p *Plan) Target(in part.Input) *part.DatabaseTarget {
	secret := in.Facts.Secrets[p.Secret()]
	if len(secret["username"]) == 0 || len(secret["password"]) == 0 {
		return nil
	}
	in.Facts.ZalandoInstalled = true
	result, err := p.provider.plan(in, order{
		product: p.product, database: p.Name(), role: p.product.Name, size: p.Size(), resources: part.Resources(p.spec.Resources, needs),
	})
	if err != nil || result.Database == nil {
		return nil
	}
	return &result.Database.Target
}

// Status of the database as far as the plan and the facts say.
func (p *Plan) Status(in part.Input, result Result) *v1alpha1.DatabaseStatus {
	status := &v1alpha1.DatabaseStatus{Provider: p.Provider(), Name: p.Name()}
	if db := result.Database; db != nil {
		status.Host, status.Port, status.SecretName = db.Target.Host, db.Target.Port, db.SecretName
	}
	if in.Facts.Database != nil {
		status.Version = in.Facts.Database.Version
	}
	return status
}

// answered says whether PostgreSQL answers the product's role, with the encoding that it needs.
func answered(in part.Input, product part.Product, database string) part.State {
	db := in.Facts.Database
	switch {
	case db == nil && in.Facts.DatabaseError != "":
		return part.Waiting(v1alpha1.ReasonDatabaseUnreachable, "PostgreSQL does not answer: "+in.Facts.DatabaseError)
	case db == nil:
		return part.Progressing("waiting for PostgreSQL to answer")
	case product.NeedsUTF8 && db.Encoding != "" && !strings.EqualFold(db.Encoding, "UTF8"):
		return part.Stalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf(
			"the database %s has the encoding %s, %s %s needs UTF8; make a database with ENCODING 'UTF8' TEMPLATE template0", database, db.Encoding, product.Name, product.Version))
	}
	return part.Ready("PostgreSQL " + db.Version + " answers")
}

func majorOf(version string) int {
	major, err := strconv.Atoi(cmp.Or(version, defaultMajor))
	if err != nil {
		major, _ = strconv.Atoi(defaultMajor)
	}
	return major
}

// Secret that opens the database for the product's role.
func (p *Plan) Secret() string {
	return p.provider.secret(p.product.Name)
}
