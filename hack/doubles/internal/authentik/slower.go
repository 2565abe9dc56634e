package authentik

import (
	"net/http"
	"time"
)

// slower makes each answer take so many per cent longer than it took to make: a fault to order, for a gate that has to see
// it. The product has no such setting.
func slower(h http.Handler, percent int) http.Handler {
	if percent <= 0 {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(&slowWriter{ResponseWriter: w, began: time.Now(), percent: percent}, r)
	})
}

// slowWriter waits before the answer begins.
type slowWriter struct {
	http.ResponseWriter
	began   time.Time
	percent int
	waited  bool
}

func (w *slowWriter) wait() {
	if !w.waited {
		w.waited = true
		time.Sleep(time.Since(w.began) * time.Duration(w.percent) / 100)
	}
}

func (w *slowWriter) WriteHeader(status int) {
	w.wait()
	w.ResponseWriter.WriteHeader(status)
}

func (w *slowWriter) Write(data []byte) (int, error) {
	w.wait()
	return w.ResponseWriter.Write(data)
}
