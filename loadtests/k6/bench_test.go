// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"go.k6.io/k6/v2/metrics"

	"authstack.dev/authstack/internal/result"
)

// BenchmarkTenMillionRequests feeds ten million requests of seven endpoints over three hours to the
// extension: what it keeps of them, and how long the printed result is. It fails above 32 MiB or 1 MiB.
func BenchmarkTenMillionRequests(b *testing.B) {
	const n = 10_000_000
	registry := metrics.NewRegistry()
	request := registry.MustNewMetric("authstack_request", metrics.Trend, metrics.Time)
	wait := registry.MustNewMetric("authstack_wait", metrics.Trend, metrics.Time)
	var tags []*metrics.TagSet
	for _, endpoint := range []string{"identification-get", "identification-post", "password-get", "password-post", "mfa-get", "login-get", "page"} {
		tags = append(tags, registry.RootTagSet().With("scenario", "Login").With("endpoint", endpoint).With("phase", "measure").With("outcome", "ok"))
	}
	for b.Loop() {
		r, start := rand.New(rand.NewPCG(1, 2)), time.Now()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		a := newAggregate(start, nil)
		for i := range n {
			at := start.Add(3 * time.Hour * time.Duration(i) / n)
			took := 20 + r.ExpFloat64()*100
			a.add(metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: request, Tags: tags[i%len(tags)]}, Time: at, Value: took})
			a.add(metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: wait, Tags: tags[i%len(tags)]}, Time: at, Value: took - 1})
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		var text bytes.Buffer
		if err := result.Write(&text, a.run()); err != nil {
			b.Fatal(err)
		}
		if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 32<<20 || text.Len() > 1<<20 {
			b.Fatalf("%d bytes are kept, and the result has %d", kept, text.Len())
		}
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB-kept")
		b.ReportMetric(float64(text.Len())/(1<<10), "KiB-result")
		b.ReportMetric(float64(time.Since(start).Nanoseconds())/n, "ns/request")
		runtime.KeepAlive(a)
	}
}
