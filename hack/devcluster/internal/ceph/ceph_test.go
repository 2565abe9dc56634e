package ceph

import (
	"encoding/json"
	"maps"
	"testing"
	"time"
)

func TestReadiness(t *testing.T) {
	for name, test := range map[string]struct {
		status string
		osds   int
		ready  bool
	}{
		"all up and active is ready": {
			`{"osdmap": {"num_up_osds": 3}, "pgmap": {"num_pgs": 17, "pgs_by_state": [{"state_name": "active+clean", "count": 17}]}}`, 3, true},
		"two of three are enough when one is stopped on order": {
			`{"osdmap": {"num_up_osds": 2}, "pgmap": {"num_pgs": 17, "pgs_by_state": [{"state_name": "active+undersized+degraded", "count": 17}]}}`, 2, true},
		"an OSD that should be up and is not": {
			`{"osdmap": {"num_up_osds": 2}, "pgmap": {"num_pgs": 17, "pgs_by_state": [{"state_name": "active+clean", "count": 17}]}}`, 3, false},
		"one placement group that still peers": {
			`{"osdmap": {"num_up_osds": 3}, "pgmap": {"num_pgs": 17, "pgs_by_state": [{"state_name": "active+clean", "count": 16}, {"state_name": "peering", "count": 1}]}}`, 3, false},
		"stale placement groups are not active": {
			`{"osdmap": {"num_up_osds": 3}, "pgmap": {"num_pgs": 17, "pgs_by_state": [{"state_name": "stale+active+clean", "count": 17}]}}`, 3, false},
		"no placement groups yet": {
			`{"osdmap": {"num_up_osds": 3}, "pgmap": {"num_pgs": 0}}`, 3, false},
		"one OSD alone can write nothing and need not": {
			`{"osdmap": {"num_up_osds": 1}, "pgmap": {"num_pgs": 17, "pgs_by_state": [{"state_name": "undersized+peered", "count": 17}]}}`, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			var s State
			if err := json.Unmarshal([]byte(test.status), &s); err != nil {
				t.Fatal(err)
			}
			if err := s.ready(test.osds); (err == nil) != test.ready {
				t.Errorf("ready %t, want %t: %v", err == nil, test.ready, err)
			}
		})
	}
}

func TestDelaysAreReadFromCephsConfiguration(t *testing.T) {
	got, err := delays([]byte(`[
		{"section": "osd.1", "name": "ms_inject_delay_max", "value": "0.010000"},
		{"section": "osd.1", "name": "ms_inject_delay_type", "value": "osd"},
		{"section": "mon", "name": "ms_inject_delay_max", "value": "5"}]`))
	if want := map[int]time.Duration{1: 10 * time.Millisecond}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestOrdersThatMakeNoSenseAreRefused(t *testing.T) {
	for _, text := range []string{"3", "-1", "osd.0", ""} {
		if _, err := ParseOSD(text); err == nil {
			t.Errorf("OSD %q was accepted", text)
		}
	}
	for _, text := range []string{"0", "-5", "10001", "10ms", "on"} {
		if _, err := ParseDelay(text); err == nil {
			t.Errorf("delay %q was accepted", text)
		}
	}
	if delay, err := ParseDelay("off"); delay != 0 || err != nil {
		t.Errorf("off: %s, %v", delay, err)
	}
}
