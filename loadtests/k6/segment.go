// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// takeSegment makes this process do its part of a run that several Pods share: of AUTHSTACK_PODS Pods
// the one whose index the Indexed Job gave it in JOB_COMPLETION_INDEX. k6 splits the work by execution
// segments, which it takes as flags alone; the image has no shell that could compute one.
func takeSegment(args []string) ([]string, error) {
	pods := os.Getenv("AUTHSTACK_PODS")
	if pods == "" || pods == "1" || len(args) < 2 || args[1] != "run" {
		return args, nil
	}
	segment, sequence, err := segmentOf(os.Getenv("JOB_COMPLETION_INDEX"), pods)
	if err != nil {
		return nil, err
	}
	return slices.Insert(args, 2, "--execution-segment="+segment, "--execution-segment-sequence="+sequence), nil
}

// segmentOf is k6's execution segment and the sequence of all segments of equal parts.
func segmentOf(index, pods string) (segment, sequence string, err error) {
	n, err := strconv.Atoi(pods)
	if err != nil || n < 1 {
		return "", "", fmt.Errorf("AUTHSTACK_PODS must be a whole number of at least 1, not %q", pods)
	}
	i, err := strconv.Atoi(index)
	if err != nil || i < 0 || i >= n {
		return "", "", fmt.Errorf("JOB_COMPLETION_INDEX must be 0 to %d, not %q", n-1, index)
	}
	edges := []string{"0"}
	for k := 1; k < n; k++ {
		edges = append(edges, fmt.Sprintf("%d/%d", k, n))
	}
	edges = append(edges, "1")
	return edges[i] + ":" + edges[i+1], strings.Join(edges, ","), nil
}
