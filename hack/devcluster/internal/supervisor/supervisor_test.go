package supervisor

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"authstack.dev/authstack/hack/devcluster/internal/layout"
)

// Whoever reads a part's process while the part is started again, as `devcluster status`
// does, finds the old one or the new one, never half a note.
func TestANoteOfAProcessIsNeverHalfThere(t *testing.T) {
	l := layout.Layout{State: t.TempDir()}
	if err := notePID(l, "etcd", 1); err != nil {
		t.Fatal(err)
	}
	noted := make(chan error, 1)
	go func() {
		for pid := 1; pid <= 500; pid++ {
			if err := notePID(l, "etcd", pid); err != nil {
				noted <- err
				return
			}
		}
		noted <- nil
	}()
	for {
		data, err := os.ReadFile(PIDFile(l, "etcd"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := strconv.Atoi(strings.TrimSpace(string(data))); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-noted:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}
