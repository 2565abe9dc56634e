package probe

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// output is the part of fio's JSON that counts here (fio 3.33).
type output struct {
	Version string `json:"fio version"`
	Jobs    []struct {
		Error int       `json:"error"`
		Read  direction `json:"read"`
		Write direction `json:"write"`
		Sync  struct {
			Latency latency `json:"lat_ns"`
		} `json:"sync"`
	} `json:"jobs"`
}

type direction struct {
	IOPS           float64 `json:"iops"`
	BytesPerSecond float64 `json:"bw_bytes"`
	RuntimeMillis  int64   `json:"runtime"`
	Completion     latency `json:"clat_ns"`
}

type latency struct {
	Max         float64            `json:"max"`
	Count       int64              `json:"N"`
	Percentiles map[string]float64 `json:"percentile"`
}

// micros of nanoseconds, rounded, and never 0 for something that took time.
func micros(nanos float64) int64 {
	if nanos <= 0 {
		return 0
	}
	return max(int64(nanos/1000+0.5), 1)
}

func (l latency) at(percentile string) int64 { return micros(l.Percentiles[percentile]) }

// parse what fio printed. Warnings stand before the JSON.
func parse(printed []byte) (*output, error) {
	start := strings.IndexByte(string(printed), '{')
	if start < 0 {
		return nil, errors.New("fio printed no JSON")
	}
	out := &output{}
	if err := json.Unmarshal(printed[start:], out); err != nil {
		return nil, fmt.Errorf("fio's JSON is not understood: %w", err)
	}
	switch {
	case len(out.Jobs) != 1:
		return nil, fmt.Errorf("fio ran %d jobs, not one", len(out.Jobs))
	case out.Jobs[0].Error != 0:
		return nil, fmt.Errorf("fio failed with error %d", out.Jobs[0].Error)
	}
	return out, nil
}

// Add what fio printed for a step, and its log of the course, to the result.
func (r *Result) Add(step Step, printed []byte, course io.Reader) error {
	out, err := parse(printed)
	if err != nil {
		return err
	}
	r.FioVersion = out.Version
	job := out.Jobs[0]
	way := job.Read
	if step.Write {
		way = job.Write
	}
	switch step.Name {
	case "Fill":
		return nil
	case Short, Long:
		sync := Sync{
			Phase: step.Name, Seconds: int32(step.Seconds), Count: job.Sync.Latency.Count, PerSecond: int64(way.IOPS + 0.5),
			P50Micros: job.Sync.Latency.at("50.000000"), P99Micros: job.Sync.Latency.at("99.000000"), P999Micros: job.Sync.Latency.at("99.900000"),
			MaxMicros: micros(job.Sync.Latency.Max),
		}
		if sync.Count == 0 {
			return fmt.Errorf("no sync completed in %d s", step.Seconds)
		}
		// fio's percentiles are the upper edges of buckets and may lie above the exact maximum.
		sync.P999Micros = min(sync.P999Micros, sync.MaxMicros)
		sync.P99Micros, sync.P50Micros = min(sync.P99Micros, sync.P999Micros), min(sync.P50Micros, sync.P999Micros)
		if course != nil {
			if sync.Course, err = readCourse(course, step.Seconds); err != nil {
				return err
			}
		}
		r.Syncs = append(r.Syncs, sync)
	default:
		r.Patterns = append(r.Patterns, Pattern{
			Name: step.Name, BlockBytes: step.Block, Depth: step.Depth,
			OperationsPerSecond: int64(way.IOPS + 0.5), BytesPerSecond: int64(way.BytesPerSecond + 0.5),
			P50Micros: way.Completion.at("50.000000"), P99Micros: way.Completion.at("99.000000"),
		})
	}
	return nil
}

// readCourse reads fio's log of operations a second: a line for each second, of its end in
// milliseconds and the rate. A second without a line had none: fio writes a line when an operation
// ends. The last, broken second has no line and is left out.
func readCourse(log io.Reader, seconds int) ([]int64, error) {
	var course []int64
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ",")
		if len(fields) < 2 {
			continue
		}
		at, err := strconv.ParseInt(strings.TrimSpace(fields[0]), 10, 64)
		rate, rateErr := strconv.ParseInt(strings.TrimSpace(fields[1]), 10, 64)
		if err != nil || rateErr != nil || at < 0 || rate < 0 {
			return nil, fmt.Errorf("fio's log has a line that is not understood: %.64q", lines.Text())
		}
		second := int((at+500)/1000) - 1
		if second < 0 || second >= min(seconds+int(grace.Seconds()), maxCourse) {
			continue
		}
		for len(course) <= second {
			course = append(course, 0)
		}
		course[second] = rate
	}
	return course, lines.Err()
}
