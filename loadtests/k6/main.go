// SPDX-License-Identifier: AGPL-3.0-only

// Command k6 is k6 with one more output, authstack, which keeps histograms in place of samples and
// prints one result at the end of the run:
//
//	k6 run --out authstack main.js
//
// It links k6 and is therefore under k6's licence, AGPL-3.0, and a program and module of its own,
// apart from the operator.
package main

import (
	"fmt"
	"os"

	"go.k6.io/k6/v2/cmd"
	"go.k6.io/k6/v2/output"
)

func init() {
	output.RegisterExtension(outputName, func(params output.Params) (output.Output, error) { return newOutput(params) })
}

func main() {
	args, err := takeSegment(os.Args)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		// k6's code for an invalid configuration.
		os.Exit(104)
	}
	os.Args = args
	if os.Getenv(scriptVariable) != "" {
		confine()
	}
	cmd.Execute()
}
