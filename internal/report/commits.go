package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// WaitingCommits is which commits of a login wait for the WAL under a durability, counted request by request by
// PostgreSQL (make bench-durability), in place of a stack: tasks of a running worker could not be told from a login's.
type WaitingCommits struct {
	// Product and Version that made the requests; Double where it was a stand-in.
	Product string `json:"product"`
	Version string `json:"version"`
	Double  bool   `json:"double"`
	// Database that counted, such as PostgreSQL 15.18.
	Database   string `json:"database"`
	Durability string `json:"durability"`
	// Logins that the figures are the mean of.
	Logins   int              `json:"logins"`
	Requests []RequestCommits `json:"requests"`
}

// RequestCommits are the commits of one request.
type RequestCommits struct {
	Request string `json:"request"`
	// Waits are the commits that waited.
	Waits float64 `json:"waits"`
	// Writes that make a commit wait under this durability, such as "UPDATE authentik_core_user".
	Writes []string `json:"writes,omitempty"`
}

func (w WaitingCommits) sum() (waits float64) {
	for _, r := range w.Requests {
		waits += r.Waits
	}
	return waits
}

// ReadWaitingCommits reads what make bench-durability wrote.
func ReadWaitingCommits(r io.Reader) ([]WaitingCommits, error) {
	var counted []WaitingCommits
	if err := json.NewDecoder(r).Decode(&counted); err != nil {
		return nil, fmt.Errorf("this is not a file that make bench-durability wrote: %w", err)
	}
	for _, c := range counted {
		if c.Durability == "" || len(c.Requests) != len(counted[0].Requests) {
			return nil, fmt.Errorf("this is not a file that make bench-durability wrote: each durability needs a name and the same requests")
		}
	}
	return counted, nil
}

// commitColumns heads the table of the requests.
func commitColumns(counted []WaitingCommits) []string {
	columns := []string{"REQUEST OF A LOGIN"}
	for _, c := range counted {
		columns = append(columns, strings.ToUpper(c.Durability))
	}
	return append(columns, "WHAT STILL WAITS UNDER "+strings.ToUpper(counted[len(counted)-1].Durability))
}

// commitRows are the requests, a figure for each durability, and the sum. What waits is said of the last, the least strict.
func commitRows(counted []WaitingCommits) [][]string {
	var rows [][]string
	last := counted[len(counted)-1]
	for i, request := range last.Requests {
		row := []string{request.Request}
		for _, c := range counted {
			row = append(row, fmt.Sprintf("%.1f", c.Requests[i].Waits))
		}
		rows = append(rows, append(row, orDash(strings.Join(request.Writes, ", "))))
	}
	sum := []string{"all"}
	for _, c := range counted {
		sum = append(sum, fmt.Sprintf("%.1f", c.sum()))
	}
	return append(rows, append(sum, ""))
}

// commitWords say what was counted.
func commitWords(counted []WaitingCommits) string {
	c := counted[0]
	product := c.Product + " " + c.Version
	if c.Double {
		product = "the DOUBLE of " + product
	}
	return fmt.Sprintf("%s on %s, its worker stopped; mean of %d logins, by PostgreSQL's count of WAL syncs", product, c.Database, c.Logins)
}
