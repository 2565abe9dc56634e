package controllers

import (
	"testing"

	. "github.com/onsi/gomega"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/diagnosis"
)

func TestProbed(t *testing.T) {
	short, long := v1alpha1.SyncFigures{Phase: "Short", P50Micros: 1000}, v1alpha1.SyncFigures{Phase: "Long", P50Micros: 3300}
	for name, c := range map[string]struct {
		probe  *v1alpha1.StorageProbeStatus
		micros int64
		crypto *diagnosis.Crypto
	}{
		"no probe":                              {},
		"a probe that has not ended":            {probe: &v1alpha1.StorageProbeStatus{Running: "probe"}},
		"the long phase counts":                 {probe: &v1alpha1.StorageProbeStatus{Syncs: []v1alpha1.SyncFigures{short, long}}, micros: 3300},
		"whatever the order":                    {probe: &v1alpha1.StorageProbeStatus{Syncs: []v1alpha1.SyncFigures{long, short}}, micros: 3300},
		"the short one where there is no other": {probe: &v1alpha1.StorageProbeStatus{Syncs: []v1alpha1.SyncFigures{short}}, micros: 1000},
		"the CPU": {probe: &v1alpha1.StorageProbeStatus{CPU: &v1alpha1.CPUFigures{AESGCMBytesPerSecond: 27_000_000, ChaCha20Poly1305BytesPerSecond: 173_000_000}},
			crypto: &diagnosis.Crypto{AESGCMBytesPerSecond: 27_000_000, ChaCha20Poly1305BytesPerSecond: 173_000_000}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			micros, crypto := probed(c.probe)
			g.Expect(micros).To(Equal(c.micros))
			g.Expect(crypto).To(Equal(c.crypto))
		})
	}
}
