package load

import "testing"

func TestLater(t *testing.T) {
	for sentence, test := range map[string]struct {
		a, b string
		want bool
	}{
		"a higher number of the same run":           {"p-3-7-12", "p-3-7-9", true},
		"a lower number of the same run":            {"p-3-7-9", "p-3-7-12", false},
		"the same password":                         {"p-3-7-9", "p-3-7-9", false},
		"a lower number of a later run":             {"p-4-7-2", "p-3-7-50", true},
		"a higher number of an earlier run":         {"p-3-7-50", "p-4-7-2", false},
		"anything after the password of an account": {"p-0-7-1", "", true},
	} {
		if got := later(test.a, test.b); got != test.want {
			t.Errorf("%s: %v", sentence, got)
		}
	}
}
