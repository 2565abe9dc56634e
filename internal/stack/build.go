package stack

import (
	"errors"
	"fmt"
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack/cache"
	"authstack.dev/authstack/internal/stack/part"
	"authstack.dev/authstack/internal/stack/postgres"
	"authstack.dev/authstack/internal/stack/storage"
	"authstack.dev/authstack/internal/tuning"
)

// Build the plan of a stack. An error is a fault of the program or of the source of randomness; what
// is wrong with the spec or its surroundings is in the states of the phases.
func Build(in Input) (*Plan, error) {
	if in.Stack == nil {
		return nil, errors.New("no AuthStack to plan")
	}
	plan := &Plan{
		Storage:          Phase{Condition: v1alpha1.ConditionStorageReady},
		Database:         Phase{Condition: v1alpha1.ConditionDatabaseReady},
		Cache:            Phase{Condition: v1alpha1.ConditionCacheReady},
		Tuning:           Phase{Condition: v1alpha1.ConditionTuningApplied},
		IdentityProvider: Phase{Condition: v1alpha1.ConditionIdentityProviderReady},
	}
	maker, product, err := productOf(in.Stack)
	if err != nil {
		for _, phase := range plan.Phases() {
			phase.State = part.Stalled(v1alpha1.ReasonInvalidSpec, err.Error())
		}
		return plan, nil
	}
	db := postgres.New(in.Stack, product)
	stored := db.Storage(in)
	plan.Storage.Objects, plan.Storage.State, plan.Status.Storage = stored.Objects, stored.State, stored.Status
	if stored.Status != nil {
		truncate(&stored.Status.Evidence, 512)
		truncate(&stored.Status.Ceph, 512)
	}

	settings := db.Tune(in, mediumOf(stored))
	plan.RoleSettings = settings.Role()
	database, err := db.Plan(in, stored, settings)
	if err != nil {
		return nil, err
	}
	plan.Database.Objects, plan.Database.State = database.Objects, database.State
	plan.Status.Database = db.Status(in, database)
	if database.Database != nil {
		target := database.Database.Target
		plan.DatabaseTarget = &target
	}
	plan.Status.Database.Settings, plan.Tuning.State = tuned(in, db, settings)

	cached, err := cache.Plan(in, product, stored.ClassName)
	if err != nil {
		return nil, err
	}
	plan.Cache.Objects, plan.Cache.State = cached.Objects, cached.State
	plan.Status.Cache = cache.Status(in.Stack, product)

	if err := plan.identityProvider(in, maker, product, database, cached); err != nil {
		return nil, err
	}
	plan.durability(in, db, product)
	return plan, nil
}

func mediumOf(stored storage.Result) v1alpha1.Medium {
	if stored.Status == nil {
		return v1alpha1.MediumUnknown
	}
	return stored.Status.Medium
}

// tuned compares the settings with what is in force.
func tuned(in Input, db *postgres.Plan, settings tuning.Result) ([]v1alpha1.SettingStatus, State) {
	statuses, outcome := tuning.Compare(settings.Settings, in.Facts.Database)
	for i := range statuses {
		truncate(&statuses[i].InForce, 1024)
		truncate(&statuses[i].Source, 128)
		truncate(&statuses[i].Reason, 1024)
	}
	state := State{Ready: outcome.Ready, Reason: outcome.Reason, Message: outcome.Message}
	switch {
	case outcome.Reason == v1alpha1.ReasonUnsafeDurability:
		// Nothing that we set does this; somebody did, and has to take it back.
		state.Stalled = true
	case len(settings.Refused) > 0:
		state = part.Stalled(v1alpha1.ReasonInvalidSpec, strings.Join(settings.Refused, "; "))
	case outcome.Ready && db.External():
		state.Message = fmt.Sprintf("the %d settings of the product's role are in force; those of the external server are its owner's", len(statuses))
	}
	return statuses, state
}

func truncate(s *string, n int) {
	if runes := []rune(*s); len(runes) > n {
		*s = string(runes[:n-1]) + "…"
	}
}

// identityProvider plans the product, once its database can be reached.
func (p *Plan) identityProvider(in Input, maker product, described part.Product, database postgres.Result, cached cache.Result) error {
	phase := &p.IdentityProvider
	image := maker.image(in)
	p.Status.IdentityProvider = &v1alpha1.IdentityProviderStatus{
		Name: described.Name, Version: described.Version, Image: image,
		Double:          strings.HasPrefix(image, v1alpha1.DoubleImagePrefix),
		ServiceName:     maker.serviceName(in.Stack),
		AdminSecretName: maker.adminSecretName(in.Stack),
		MigratedVersion: in.Facts.MigratedVersion,
		Uploads:         maker.uploads(in),
	}
	if phase.State = maker.check(in); !phase.State.Ready {
		return nil
	}
	if database.Database == nil {
		phase.State = part.Waiting(v1alpha1.ReasonDependencyNotReady, "waiting for the database: "+p.Database.State.Message)
		return nil
	}
	objects, state, err := maker.plan(in, *database.Database, cached.Redis)
	if err != nil {
		return fmt.Errorf("planning %s: %w", described.Name, err)
	}
	phase.Objects, phase.State = objects, state
	if blocking := p.Blocked(phase.Condition); blocking != nil {
		phase.State = part.Waiting(v1alpha1.ReasonDependencyNotReady, fmt.Sprintf("waiting for %s: %s", blocking.Condition, blocking.State.Message))
		return nil
	}
	if len(objects) == 0 || !state.Ready {
		return nil
	}
	phase.State, p.AnalyzeNeeded = migrated(in.Facts.Database.Migrated, in.Facts.MigratedVersion, described, state)
	return nil
}

// migrated follows a product's start: its Pods are there, then its migrations, then ANALYZE. Tables
// that were never analysed cost seconds (authentik #24179), so a stack is not Ready before.
func migrated(done bool, analyzed string, product part.Product, ready State) (State, bool) {
	switch {
	case !done:
		return part.Progressing(fmt.Sprintf("the Pods of %s are there, its migrations have not finished", product.Name)), false
	case analyzed != product.Version:
		return part.Progressing(fmt.Sprintf("the migrations of %s %s are done; ANALYZE follows", product.Name, product.Version)), true
	}
	return ready, false
}
