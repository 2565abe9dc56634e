package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// The phases of syncs.
const (
	Short = "Short"
	Long  = "Long"
)

// The contract with the probe's image: the program at Binary, Debian's fio in PATH; it runs as any user.
const (
	Binary    = "/usr/bin/authstack-probe"
	Container = "probe"
	// PlanVariable holds the plan as JSON.
	PlanVariable = "AUTHSTACK_PROBE_PLAN"
	// Directory where the volume is mounted.
	Directory = "/volume"
)

// Plan is what a probe has to do.
type Plan struct {
	// ID comes back in the result.
	ID string `json:"id"`
	// Directory of the volume. It must be empty: the probe writes to no volume that holds anything.
	Directory string `json:"directory"`
	// FileBytes is the size of the file that is filled first and then written over, as PostgreSQL
	// does with recycled WAL segments.
	FileBytes int64 `json:"fileBytes"`
	// ShortSeconds and LongSeconds are the lengths of the phases of syncs, PatternSeconds that of each
	// access pattern.
	ShortSeconds   int `json:"shortSeconds"`
	LongSeconds    int `json:"longSeconds"`
	PatternSeconds int `json:"patternSeconds"`
}

// Defaults of a plan. Two minutes are what it took a drive on a veranda to fall from 988 to 299 syncs a second.
const (
	DefaultShort = 10 * time.Second
	DefaultLong  = 2 * time.Minute
	// patternTime is enough for a mean; five patterns are run.
	patternTime = 5 * time.Second
	// grace is how long a step may take beyond its length before it counts as hung. A Ceph that lost an
	// OSD stands still for about 20 s until it notices (osd_heartbeat_grace).
	grace = time.Minute
	// slowestFill is the rate, in bytes a second, at which the file is filled at worst.
	slowestFill = 1 << 20
)

// NewPlan for a volume of a size. The file is at most 256 MiB and a quarter of the volume.
func NewPlan(id string, volumeBytes int64, short, long time.Duration) Plan {
	return Plan{
		ID: id, Directory: Directory, FileBytes: min(256<<20, volumeBytes/4>>20<<20),
		ShortSeconds: max(int(short.Seconds()), 1), LongSeconds: max(int(long.Seconds()), 5), PatternSeconds: int(patternTime.Seconds()),
	}
}

// Parse a plan.
func Parse(text string) (Plan, error) {
	var plan Plan
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		return plan, fmt.Errorf("%s is no plan: %w", PlanVariable, err)
	}
	switch {
	case plan.Directory == "":
		return plan, errors.New("the plan names no directory")
	case plan.FileBytes < 1<<20 || plan.FileBytes > 16<<30:
		return plan, fmt.Errorf("a file of %d bytes: it must have 1 MiB to 16 GiB", plan.FileBytes)
	case plan.ShortSeconds < 1 || plan.LongSeconds < 1 || plan.PatternSeconds < 1 || plan.ShortSeconds > maxCourse || plan.LongSeconds > maxCourse || plan.PatternSeconds > maxCourse:
		return plan, errors.New("each length must be 1 to 3600 seconds")
	}
	return plan, nil
}

// JSON of the plan.
func (p Plan) JSON() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // Strings and numbers can always be marshalled.
	}
	return string(text)
}

// Step is one run of fio.
type Step struct {
	// Name is Fill, a phase or a pattern.
	Name string
	// Arguments of fio, without the file's name and the log's, which Command adds.
	Arguments []string
	// Limit after which it counts as hung.
	Limit time.Duration
	// Seconds of its length; 0 for the fill.
	Seconds int
	// Block and depth of a pattern.
	Block int64
	Depth int32
	// Write is whether it writes.
	Write bool
	// Optional steps are left out where the file system refuses them.
	Optional bool
}

// Steps of the plan, in their order: the syncs first, while the medium is fresh.
func (p Plan) Steps() []Step {
	fill := Step{Name: "Fill", Arguments: []string{"--rw=write", "--bs=1M", "--ioengine=psync", "--end_fsync=1"},
		Limit: grace + time.Duration(p.FileBytes/slowestFill)*time.Second, Write: true}
	steps := []Step{fill, p.sync(Short, p.ShortSeconds), p.sync(Long, p.LongSeconds)}
	for _, pattern := range []Step{
		{Name: "sequential-write", Arguments: []string{"--rw=write"}, Block: 1 << 20, Depth: 8, Write: true},
		{Name: "sequential-read", Arguments: []string{"--rw=read"}, Block: 1 << 20, Depth: 8},
		{Name: "random-write", Arguments: []string{"--rw=randwrite"}, Block: 4 << 10, Depth: 32, Write: true},
		{Name: "random-read", Arguments: []string{"--rw=randread"}, Block: 4 << 10, Depth: 32},
		// What a query waits for that misses every cache.
		{Name: "page-read", Arguments: []string{"--rw=randread"}, Block: 8 << 10, Depth: 1},
	} {
		// Past the page cache, or the figures would be those of memory.
		pattern.Arguments = append(pattern.Arguments, "--direct=1", "--ioengine=libaio", "--time_based",
			"--runtime="+strconv.Itoa(p.PatternSeconds), "--bs="+strconv.FormatInt(pattern.Block, 10), "--iodepth="+strconv.Itoa(int(pattern.Depth)))
		pattern.Seconds, pattern.Optional = p.PatternSeconds, true
		pattern.Limit = grace + time.Duration(p.PatternSeconds)*time.Second
		steps = append(steps, pattern)
	}
	return steps
}

// sync is a phase of what PostgreSQL does at each commit: 8 kB into a file that is there, and fdatasync
// (wal_sync_method's default on Linux).
func (p Plan) sync(phase string, seconds int) Step {
	return Step{Name: phase, Seconds: seconds, Limit: grace + time.Duration(seconds)*time.Second, Write: true, Block: 8 << 10, Depth: 1,
		Arguments: []string{"--rw=write", "--bs=8k", "--ioengine=psync", "--iodepth=1", "--fdatasync=1", "--overwrite=1", "--time_based",
			"--runtime=" + strconv.Itoa(seconds)}}
}

// Command is fio's whole command line for a step on a file; log is the beginning of the names of the
// logs for the course.
func (p Plan) Command(step Step, file, log string) []string {
	arguments := append([]string{"--name=" + step.Name, "--filename=" + file, "--size=" + strconv.FormatInt(p.FileBytes, 10),
		"--output-format=json", "--percentile_list=50:99:99.9", "--randrepeat=1", "--allow_file_create=" + map[bool]string{true: "1", false: "0"}[step.Name == "Fill"]},
		step.Arguments...)
	if step.Name == Long {
		arguments = append(arguments, "--write_iops_log="+log, "--log_avg_msec=1000")
	}
	return arguments
}

// Limit of the whole probe, with time to spare for pulling the image and making the volume.
func (p Plan) Limit() time.Duration {
	limit := 5 * time.Minute
	for _, step := range p.Steps() {
		limit += step.Limit
	}
	return limit
}
