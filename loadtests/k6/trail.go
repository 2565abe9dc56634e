// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"cmp"
	"regexp"

	"go.k6.io/k6/v2/lib/netext/httpext"
	"go.k6.io/k6/v2/metrics"

	"authstack.dev/authstack/internal/result"
)

// endpointForm is what an objective can name (api/v1alpha1, Objective.endpoint); no URL has it.
var endpointForm = regexp.MustCompile(`^[a-zA-Z0-9_]([-a-zA-Z0-9_]*[a-zA-Z0-9_])?$`)

// untagged is the endpoint of requests that no tag names.
const untagged = "request"

// k6's codes of an address and of a name that it was told to refuse (lib/netext/httpext/error_codes.go
// of k6 2.2).
const (
	blacklistedIP   = "1110"
	blockedHostname = "1111"
)

// addTrail counts a request that a user's own script made with k6/http. Those of our scenarios carry the
// tag recorded: their outcome is known to the script alone, which records them itself
// (loadtests/scenarios/lib/record.js).
func (a *aggregate) addTrail(trail *httpext.Trail) {
	tags := trail.Tags
	scenario, _ := tags.Get("scenario")
	if _, recorded := tags.Get("recorded"); recorded || scenario == "" {
		return
	}
	s := a.seriesNamed(scenario, endpointOf(tags))
	phase, _ := tags.Get("phase")
	warmUp := phase == "warmup"
	outcome, failure := outcomeOf(tags)
	// As long as the client waited, as in record.js.
	duration := (trail.Blocked + trail.Duration).Microseconds()
	a.count(s, warmUp, trail.EndTime, duration, outcome, failure)
	status, _ := tags.Get("status")
	countStatus(s, warmUp, status)
	if warmUp || outcome != "ok" {
		return
	}
	record(&s.Send, trail.Sending.Microseconds())
	record(&s.Wait, trail.Waiting.Microseconds())
	record(&s.Receive, trail.Receiving.Microseconds())
	if trail.Connecting > 0 {
		record(&s.DNS, max(0, trail.Blocked-trail.Connecting-trail.TLSHandshaking).Microseconds())
		record(&s.Connect, trail.Connecting.Microseconds())
	}
	if trail.TLSHandshaking > 0 {
		record(&s.TLS, trail.TLSHandshaking.Microseconds())
	}
}

// endpointOf is the tag endpoint, or k6's own tag name where a script gave it one.
func endpointOf(tags *metrics.TagSet) string {
	for _, name := range []string{"endpoint", "name"} {
		if value, _ := tags.Get(name); endpointForm.MatchString(value) {
			return value
		}
	}
	return untagged
}

// causes are the codes of k6 that a person meets, in the words of record.js. A certificate that has expired has k6's code
// for anything, 1000, and the words are in a tag that is not kept: k6 holds every set of tags that it has seen to the end,
// and errors of the network name a port.
var causes = map[string]string{
	"1050": "timed out",
	"1101": "the name is not known",
	"1201": "the connection broke",
	"1202": "the connection broke",
	"1210": "connecting failed",
	"1211": "connecting timed out",
	"1212": "connection refused",
	"1213": "connecting failed",
	"1220": "connection reset",
	"1300": "TLS failed",
	"1310": "the certificate is not trusted",
	"1311": "the certificate is of another name",
}

// outcomeOf is what k6 says of an answer: the script's expectedStatuses, or else 200 to 399.
func outcomeOf(tags *metrics.TagSet) (outcome, failure string) {
	status, _ := tags.Get("status")
	code, _ := tags.Get("error_code")
	expected, judged := tags.Get("expected_response")
	switch {
	case code == blacklistedIP || code == blockedHostname:
		return "wrong", result.FailureElsewhere
	case status == "" || status == "0":
		return "none", "no answer (" + cmp.Or(causes[code], "error "+code+" of k6") + ")"
	case judged && expected != "true":
		return "wrong", "status " + status
	}
	return "ok", ""
}
