package latency

import (
	"path/filepath"

	"authstack.dev/authstack/loadtests/scenarios"
)

// LocalRun is a run on the caller's own machine, outside of a cluster.
type LocalRun struct {
	// Files by their path: the scripts, plan.json and credentials.json, which holds passwords and must be
	// readable by its owner only.
	Files map[string]string
	// Arguments of k6, and its environment beside PATH and HOME.
	Arguments, Environment []string
}

// Local is the run of a plan against a target that the caller names, by k6 with the output authstack.
// Its files lie in folder, an absolute path, since k6 takes others from where a script lies.
func Local(folder, id string, plan *Plan, target Target, secret Credentials) LocalRun {
	planPath, credentials := filepath.Join(folder, "plan.json"), filepath.Join(folder, "credentials.json")
	run := LocalRun{
		Files:       map[string]string{planPath: planJSON(id, plan, target), credentials: mustJSON(secret)},
		Arguments:   []string{"run", "--quiet", "--no-color", "--out", "authstack", filepath.Join(folder, "scripts", scenarios.Main)},
		Environment: []string{"AUTHSTACK_PLAN=" + planPath, "AUTHSTACK_CREDENTIALS=" + credentials},
	}
	for path, text := range scenarios.Scripts() {
		run.Files[filepath.Join(folder, "scripts", filepath.FromSlash(path))] = text
	}
	for _, e := range quietEnv() {
		run.Environment = append(run.Environment, e.Name+"="+e.Value)
	}
	return run
}
