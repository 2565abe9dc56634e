package report

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// SizingVersion names the JSON form of a Sizing and its version.
const SizingVersion = "authstack.dev/sizing/v1"

// Sizing is what a login costs, from counters that were read before and after a run. Its units are those
// of Keycloak's "Concepts for sizing CPU and memory resources": logins a second for each vCPU, and
// write operations a second for 100 logins a second.
type Sizing struct {
	APIVersion string  `json:"apiVersion"`
	Namespace  string  `json:"namespace"`
	Test       string  `json:"test"`
	Subject    Subject `json:"subject"`
	// Logins that were made between the two readings, warm-up and failed ones included.
	Logins int64 `json:"logins"`
	// BetweenMicros is the time between the readings.
	BetweenMicros int64        `json:"betweenMicros"`
	Parts         []SizingPart `json:"parts"`
}

// SizingPart is one part of the stack: identity provider, database or cache.
type SizingPart struct {
	Name string `json:"name"`
	Pods int    `json:"pods"`
	// CPUMicros is the CPU time that it used between the readings, its work in the background included.
	CPUMicros         int64 `json:"cpuMicros"`
	CPUMicrosPerLogin int64 `json:"cpuMicrosPerLogin"`
	// LoginsPerSecondPerCoreMilli is in thousandths: how many logins a second one vCPU carries at this cost.
	LoginsPerSecondPerCoreMilli int64 `json:"loginsPerSecondPerCoreMilli"`
	// Writes to the volumes between the readings; nil where the node does not count them.
	Writes *int64 `json:"writes,omitempty"`
	// WriteIOPSPer100Logins is for 100 logins a second.
	WriteIOPSPer100Logins *int64 `json:"writeIOPSPer100Logins,omitempty"`
}

// Usage is what a part of a stack used between two readings.
type Usage struct {
	Part string
	Pods int
	CPU  time.Duration
	// Writes is nil where the node does not count them.
	Writes *int64
}

// NewSizing computes the cost of a login. Its error says what evidence is missing.
func NewSizing(r *Report, logins int64, between time.Duration, used []Usage) (*Sizing, error) {
	if logins <= 0 {
		return nil, fmt.Errorf("the result of %s/%s has no logins, so there is nothing to size by; measure the scenario Login", r.Namespace, r.Name)
	}
	s := &Sizing{APIVersion: SizingVersion, Namespace: r.Namespace, Test: r.Name, Subject: r.Subject, Logins: logins, BetweenMicros: between.Microseconds()}
	for _, u := range used {
		if u.CPU <= 0 {
			return nil, fmt.Errorf("the node counted no CPU time for the %s, so nothing can be said of it", u.Part)
		}
		part := SizingPart{Name: u.Part, Pods: u.Pods, CPUMicros: u.CPU.Microseconds(), CPUMicrosPerLogin: u.CPU.Microseconds() / logins,
			LoginsPerSecondPerCoreMilli: logins * 1_000_000_000 / u.CPU.Microseconds()}
		if u.Writes != nil {
			writes, iops := *u.Writes, *u.Writes*100/logins
			part.Writes, part.WriteIOPSPer100Logins = &writes, &iops
		}
		s.Parts = append(s.Parts, part)
	}
	return s, nil
}

// WriteSizing writes a Sizing for a terminal.
func WriteSizing(w io.Writer, s *Sizing) error {
	var b strings.Builder
	if s.Subject.Double {
		fmt.Fprintf(&b, "%s\n", doubleWarning(s.Subject))
	}
	fmt.Fprintf(&b, "Sizing of stack %s/%s, from %d logins in %s (LatencyTest %s)\n%s\n\n", s.Namespace, s.Subject.Stack, s.Logins, duration(s.BetweenMicros), s.Test, describe(s.Subject))
	rows := [][]string{{"PART", "", "PODS", "CPU", "CPU PER LOGIN", "LOGINS/S PER VCPU", "VCPU FOR 100 LOGINS/S", "WRITE IOPS FOR 100 LOGINS/S"}}
	for _, p := range s.Parts {
		iops := "not counted"
		if p.WriteIOPSPer100Logins != nil {
			iops = fmt.Sprint(*p.WriteIOPSPer100Logins)
		}
		rows = append(rows, []string{p.Name, "", fmt.Sprint(p.Pods), duration(p.CPUMicros), duration(p.CPUMicrosPerLogin),
			fmt.Sprintf("%.1f", float64(p.LoginsPerSecondPerCoreMilli)/1000), fmt.Sprintf("%.2f", float64(p.CPUMicrosPerLogin)/10_000), iops})
	}
	align(&b, rows)
	b.WriteString("\nCPU is what the node's counters say, work in the background included. Leave headroom above it: Keycloak's guide takes 150 %.\n")
	_, err := io.WriteString(w, b.String())
	return err
}
