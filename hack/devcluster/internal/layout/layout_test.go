package layout

import (
	"strings"
	"testing"
)

func TestStateFoldersThatCannotWorkAreRefused(t *testing.T) {
	t.Setenv(SourceVariable, "../..")
	for _, state := range []string{"/", "/var", "/var/" + strings.Repeat("x", 100)} {
		if l, err := New(state); err == nil {
			t.Errorf("%s: got %+v", state, l)
		}
	}
}

func TestClustersHaveNamesOfTheirOwn(t *testing.T) {
	a, b := Layout{State: "/var/lib/a"}, Layout{State: "/var/lib/b"}
	if a.Name() == b.Name() || a.Link() == b.Link() {
		t.Error("two clusters share a name")
	}
	if len(a.Link()) > 15 {
		t.Errorf("%s is too long for a link", a.Link())
	}
	if got := (Layout{State: DefaultState}).Name(); got != "devcluster" {
		t.Errorf("got %s", got)
	}
}
