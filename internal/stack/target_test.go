package stack_test

import (
	"testing"

	"authstack.dev/authstack/internal/stack"
)

// What measures reaches the same database as what sets it up.
func TestDatabaseTargetOfIsThatOfThePlan(t *testing.T) {
	compared := 0
	for name, made := range cases {
		t.Run(name, func(t *testing.T) {
			in := made()
			plan, err := stack.Build(in)
			if err != nil || plan.DatabaseTarget == nil {
				return
			}
			got := stack.DatabaseTargetOf(in.Stack, in.Facts)
			if got == nil {
				// A Secret that the plan only now made up opens nothing yet.
				for _, secret := range in.Facts.Secrets {
					if string(secret["password"]) == plan.DatabaseTarget.Password {
						t.Fatal("there is a Secret and no target")
					}
				}
				return
			}
			compared++
			if *got != *plan.DatabaseTarget {
				t.Errorf("the target is %s:%d/%s, want %s:%d/%s", got.Host, got.Port, got.Database, plan.DatabaseTarget.Host, plan.DatabaseTarget.Port, plan.DatabaseTarget.Database)
			}
		})
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}
