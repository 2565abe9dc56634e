package report

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestSizingIsInKeycloaksUnits(t *testing.T) {
	r := New(sample(540, true))
	s, err := NewSizing(r, 200, 2*time.Minute, []Usage{
		{Part: "identity provider", Pods: 2, CPU: 20 * time.Second},
		{Part: "database", Pods: 1, CPU: 4 * time.Second, Writes: new(int64(4800))},
	})
	if err != nil {
		t.Fatal(err)
	}
	// 20 s for 200 logins are 0.1 s each: ten logins a second keep one core busy.
	if p := s.Parts[0]; p.CPUMicrosPerLogin != 100_000 || p.LoginsPerSecondPerCoreMilli != 10_000 || p.WriteIOPSPer100Logins != nil {
		t.Errorf("the identity provider's part is %+v", p)
	}
	if p := s.Parts[1]; p.WriteIOPSPer100Logins == nil || *p.WriteIOPSPer100Logins != 2400 {
		t.Errorf("the database's part is %+v", p)
	}
	var b bytes.Buffer
	if err := WriteSizing(&b, s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"DOUBLE", "200 logins in 2m0s", "100ms", "10.0", "10.00", "not counted", "2400"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, b.String())
		}
	}
}

func TestSizingIsRefusedWithoutEvidence(t *testing.T) {
	r := New(sample(540, false))
	if _, err := NewSizing(r, 0, time.Minute, nil); err == nil || !strings.Contains(err.Error(), "no logins") {
		t.Errorf("without logins: %v", err)
	}
	if _, err := NewSizing(r, 10, time.Minute, []Usage{{Part: "database", Pods: 1}}); err == nil || !strings.Contains(err.Error(), "database") {
		t.Errorf("without CPU time: %v", err)
	}
}
