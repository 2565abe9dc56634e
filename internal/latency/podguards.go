package latency

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"authstack.dev/authstack/api/v1alpha1"
)

// podsUnchangedGuard compares the stack's Pods before and after. A Pod that was replaced, restarted
// or changed its image in between answered part of the requests as something else.
func podsUnchangedGuard(ev Evidence) v1alpha1.Guard {
	g := v1alpha1.Guard{Name: GuardPodsUnchanged, OK: true}
	if len(ev.PodsBefore) == 0 {
		return v1alpha1.Guard{Name: GuardPodsUnchanged, Detail: "no Pods of the stack were seen before the run"}
	}
	after := map[string]PodState{}
	for _, pod := range ev.PodsAfter {
		after[pod.UID] = pod
	}
	for _, before := range ev.PodsBefore {
		now, there := after[before.UID]
		delete(after, before.UID)
		switch {
		case !there:
			g.Detail = join(g.Detail, before.Name+" is gone")
		case now.RestartCount != before.RestartCount:
			g.Detail = join(g.Detail, fmt.Sprintf("%s restarted %d times", before.Name, now.RestartCount-before.RestartCount))
		case now.Image != before.Image:
			g.Detail = join(g.Detail, before.Name+" has another image")
		case now.Role != before.Role:
			g.Detail = join(g.Detail, fmt.Sprintf("%s was %s and is %s", before.Name, before.Role, now.Role))
		}
	}
	for _, pod := range ev.PodsAfter {
		if _, added := after[pod.UID]; added {
			g.Detail = join(g.Detail, pod.Name+" is new")
		}
	}
	if g.Detail != "" {
		g.OK = false
		return g
	}
	g.Detail = fmt.Sprintf("the same %d Pods before and after", len(ev.PodsBefore))
	return g
}

func podsReadyGuard(ev Evidence) v1alpha1.Guard {
	g := v1alpha1.Guard{Name: GuardPodsReady}
	for _, moment := range []struct {
		name string
		pods []PodState
	}{{"before", ev.PodsBefore}, {"after", ev.PodsAfter}} {
		if len(moment.pods) == 0 {
			g.Detail = join(g.Detail, "no Pods were seen "+moment.name+" the run")
		}
		for _, pod := range moment.pods {
			if !pod.Ready {
				g.Detail = join(g.Detail, fmt.Sprintf("%s was not ready %s the run", pod.Name, moment.name))
			}
		}
	}
	// Pods that were away in between and came back are ready at both moments.
	for _, before := range ev.PodsBefore {
		for _, after := range ev.PodsAfter {
			if before.UID == after.UID && before.Ready && after.Ready && !before.ReadySince.IsZero() && !before.ReadySince.Equal(after.ReadySince) {
				g.Detail = join(g.Detail, before.Name+" was not ready for a while during the run")
			}
		}
	}
	if g.Detail == "" {
		g.OK = true
		g.Detail = fmt.Sprintf("all %d were ready from before the run until after", len(ev.PodsBefore))
	}
	return g
}

func stackUnchangedGuard(ev Evidence) v1alpha1.Guard {
	if ev.GenerationBefore != ev.GenerationAfter {
		return v1alpha1.Guard{Name: GuardStackUnchanged, Detail: fmt.Sprintf(
			"the spec of the stack changed during the run, from generation %d to %d", ev.GenerationBefore, ev.GenerationAfter)}
	}
	return v1alpha1.Guard{Name: GuardStackUnchanged, OK: true, Detail: fmt.Sprintf("generation %d before and after", ev.GenerationBefore)}
}

// nodePressureGuard looks at the nodes before the run and after each repeat. A node that is not known voids nothing: an operator
// may lack the right to read nodes, and what cannot be seen is said.
func nodePressureGuard(ev Evidence) v1alpha1.Guard {
	g := v1alpha1.Guard{Name: GuardNodePressure}
	known, unknown := map[string]bool{}, map[string]bool{}
	look := func(moment string, nodes []NodeState) {
		for _, node := range nodes {
			if node.Unknown {
				unknown[node.Name] = true
				continue
			}
			known[node.Name] = true
			if len(node.Pressure) > 0 {
				g.Detail = join(g.Detail, fmt.Sprintf("node %s had %s %s", node.Name, strings.Join(node.Pressure, " and "), moment))
			}
		}
	}
	look("before the run", ev.NodesBefore)
	for i, job := range ev.Jobs {
		look(fmt.Sprintf("after repeat %d", i+1), job.Nodes)
	}
	g.OK = g.Detail == ""
	switch {
	case !g.OK:
	case len(known) == 0:
		g.Detail = "not known: no node could be read; the operator needs the right to get nodes"
	default:
		g.Detail = fmt.Sprintf("none on %s, before the run and after each repeat", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		if len(unknown) > 0 {
			g.Detail = join(g.Detail, "not known of "+strings.Join(slices.Sorted(maps.Keys(unknown)), ", "))
		}
	}
	return g
}
