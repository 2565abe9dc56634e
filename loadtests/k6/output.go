// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"encoding/json"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/lib/fsext"
	"go.k6.io/k6/v2/lib/netext/httpext"
	"go.k6.io/k6/v2/metrics"
	"go.k6.io/k6/v2/output"

	"authstack.dev/authstack/internal/result"
)

const outputName = "authstack"

// authstackOutput turns k6's samples into a result.Run and prints it when the run stops.
type authstackOutput struct {
	stdout io.Writer
	logger logrus.FieldLogger
	planID string
	// scriptDigest is that of the user's own script, empty where there is none.
	scriptDigest string
	secrets      secrets

	mu         sync.Mutex
	aggregate  *aggregate
	evidence   *evidence
	stopTicker func()
}

func newOutput(params output.Params) (output.Output, error) {
	known := readSecrets(params.FS, params.Environment["AUTHSTACK_CREDENTIALS"])
	known.guard(params.Logger)
	return &authstackOutput{
		stdout:       params.StdOut,
		logger:       params.Logger,
		planID:       readPlanID(params.FS, params.Environment["AUTHSTACK_PLAN"]),
		scriptDigest: readDigest(params.FS, params.Environment[scriptVariable]),
		secrets:      known,
	}, nil
}

// readDigest is the digest of the script that this process ran, so that a result says what it is of.
func readDigest(fs fsext.Fs, path string) string {
	if path == "" {
		return ""
	}
	data, err := fsext.ReadFile(fs, path)
	if err != nil {
		return ""
	}
	return result.Digest(data)
}

// readPlanID reads the id out of plan.json, so that the result says what it is the result of. By
// hand there may be no plan; the scripts complain about a broken one.
func readPlanID(fs fsext.Fs, path string) string {
	if path == "" {
		return ""
	}
	data, err := fsext.ReadFile(fs, path)
	if err != nil {
		return ""
	}
	var plan struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(data, &plan) != nil {
		return ""
	}
	return plan.ID
}

// Description is what k6 shows of the output.
func (o *authstackOutput) Description() string { return outputName + " (" + result.Format + ")" }

// Start begins to watch the generator.
func (o *authstackOutput) Start() error {
	start := time.Now()
	o.aggregate = newAggregate(start, o.secrets)
	o.evidence = newEvidence(start)
	ticker, done := time.NewTicker(time.Second), make(chan struct{})
	var once sync.Once
	o.stopTicker = func() { once.Do(func() { ticker.Stop(); close(done) }) }
	go func() {
		for {
			select {
			case <-ticker.C:
				o.mu.Lock()
				o.evidence.tick(time.Now())
				o.mu.Unlock()
			case <-done:
				return
			}
		}
	}()
	return nil
}

// AddMetricSamples sorts the samples into histograms at once: that is cheaper than to keep them.
func (o *authstackOutput) AddMetricSamples(containers []metrics.SampleContainer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, container := range containers {
		if trail, is := container.(*httpext.Trail); is {
			o.aggregate.addTrail(trail)
			continue
		}
		for _, sample := range container.GetSamples() {
			o.aggregate.add(sample)
		}
	}
}

// Stop is there for the interface; k6 calls StopWithTestError.
func (o *authstackOutput) Stop() error { return o.StopWithTestError(nil) }

// StopWithTestError prints the result, also of a run that ended early.
func (o *authstackOutput) StopWithTestError(testErr error) error {
	o.stopTicker()
	o.mu.Lock()
	defer o.mu.Unlock()
	run := o.aggregate.run()
	run.PlanID, run.ScriptDigest = o.planID, o.scriptDigest
	run.Generator = o.evidence.finish(time.Now())
	run.StartedAt, run.EndedAt = o.evidence.startedAt(), time.Now().UTC().Round(0)
	if testErr != nil {
		run.StopError = clip(o.secrets.hide(testErr.Error()), 300)
	}
	return result.Write(o.stdout, run)
}

// clip keeps text to so many bytes: the status that a name ends in has a bound, and refuses longer ones.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
}
