package authentik

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestSlower(t *testing.T) {
	const takes = 20 * time.Millisecond
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(takes)
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte("once"))
		_, _ = w.Write([]byte(" and again"))
	})
	for percent, least := range map[int]time.Duration{0: takes, 100: 2 * takes, 400: 5 * takes} {
		got, began := httptest.NewRecorder(), time.Now()
		slower(answer, percent).ServeHTTP(got, httptest.NewRequest(http.MethodGet, "/", nil))
		if took := time.Since(began); took < least || got.Code != http.StatusTeapot || got.Body.String() != "once and again" {
			t.Errorf("%d %%: %d %q after %s, want at least %s", percent, got.Code, got.Body, took, least)
		}
	}
}
