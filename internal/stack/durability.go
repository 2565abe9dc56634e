package stack

import (
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack/part"
	"authstack.dev/authstack/internal/stack/postgres"
)

// durability plans the triggers by which a commit need not wait for the WAL, and holds a new version of the product
// back until they are off.
func (p *Plan) durability(in Input, db *postgres.Plan, described part.Product) {
	phase := &p.IdentityProvider
	asked := db.Durability()
	p.DurabilityGiven = asked.Given
	// Objects that are not going to be applied upgrade nothing.
	upgrading := len(phase.Objects) > 0 && p.Blocked(phase.Condition) == nil && postgres.Upgrading(in, described, p.Status.IdentityProvider.Image)
	finding := asked.Judge(in.Facts.Database, phase.State.Ready, upgrading)
	p.Durability = finding.Change
	db.DescribeDurability(in, p.Status.Database, finding)
	if upgrading && !finding.Change.Empty() {
		phase.Objects = nil
		phase.State = part.Progressing("the triggers of durability IdentityDurable are taken off first, since migrations may alter the tables that they are on")
		p.AnalyzeNeeded = false
	}
	if len(finding.Problems) == 0 {
		return
	}
	sentence := "durability IdentityDurable is not in force as a whole: " + strings.Join(finding.Problems, "; ")
	if !asked.Given {
		// Nobody asked for it, and without it every commit waits: that harms nothing but the latency.
		if !finding.Change.Empty() {
			return // It is brought about now, and told if that fails.
		}
		p.Status.Database.DurabilityNote += "; " + sentence
		truncate(&p.Status.Database.DurabilityNote, 1024)
	} else if p.Tuning.State.Ready {
		p.Tuning.State = part.Waiting(v1alpha1.ReasonNotInForce, sentence)
	}
}
