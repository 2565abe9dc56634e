package latency

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"authstack.dev/authstack/api/v1alpha1"
)

const (
	// memoryOfK6 and memoryOfUser are what k6 with the extension holds, and what each virtual user adds: 46 MiB alone, 79 with 50
	// users, 230 with 250, 829 with 1000 (k6 2.2 and the scripts of this project; make bench-calibration, 2026-11-22). A limit that only just
	// holds them is worse than one that does not: the kernel then reads k6 from the disk again and again.
	memoryOfK6   = 60 << 20
	memoryOfUser = 1 << 20
	// waitOfUser is how long the slowest request is waited for (loadtests/scenarios/lib/browser.js), in seconds; readyFor is a
	// standstill that finds users enough ready. Making one takes k6 some milliseconds of processor time.
	waitOfUser = 30
	readyFor   = 5
)

// virtualUsers that k6 has ready when a scenario begins, and the most that it may make. In an open model each iteration that has
// not ended holds one; k6 drops an iteration that finds none, and such a run is worth nothing.
func virtualUsers(s v1alpha1.Scenario) (ready, most int32) {
	ready = orDefault(s.VirtualUsers, 1)
	rate := orDefault(s.RatePerMinute, 0)
	for _, step := range s.RateStepsPerMinute {
		rate = max(rate, step)
	}
	perSecond := float64(rate) / 60
	ready = max(ready, min(500, int32(math.Ceil(perSecond*readyFor))))
	return ready, max(ready, min(2000, int32(math.Ceil(perSecond*waitOfUser))))
}

// memoryFor is what one Pod of the generator takes with the virtual users that are ready, and with the most of them, in bytes.
// k6 makes those of all scenarios before the first one runs.
func memoryFor(plan *Plan) (ready, most int64) {
	for _, s := range plan.Scenarios {
		r, m := virtualUsers(s)
		ready, most = ready+int64(r), most+int64(m)
	}
	pods := int64(plan.Pods)
	return memoryOfK6 + ready*memoryOfUser/pods, memoryOfK6 + most*memoryOfUser/pods
}

// enoughMemory refuses a memory limit that the virtual users of the plan do not fit into.
func enoughMemory(plan *Plan, given *corev1.ResourceRequirements) error {
	if given == nil || given.Limits.Memory().IsZero() {
		return nil
	}
	need, _ := memoryFor(plan)
	if limit := given.Limits.Memory(); limit.Value() < need {
		return fmt.Errorf("spec.generator.resources.limits.memory is %s, and k6 needs about %dMi for the %d virtual users that it has ready in a Pod; raise it, or lower virtualUsers or the rate",
			limit, need>>20, (need-memoryOfK6)/memoryOfUser)
	}
	return nil
}

// generatorResources are those of the spec, or enough for the plan. There is no CPU limit by default: a throttled generator
// measures itself.
func generatorResources(plan *Plan, given *corev1.ResourceRequirements) corev1.ResourceRequirements {
	if given != nil {
		return *given.DeepCopy()
	}
	ready, most := memoryFor(plan)
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("500m"),
			corev1.ResourceMemory: *resource.NewQuantity(max(256<<20, ready), resource.BinarySI),
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(max(512<<20, most), resource.BinarySI)},
	}
}
