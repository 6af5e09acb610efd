package ops

import (
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/jamq/jamq/eoa"
)

// Handler serves the endpoints. A problem that has lasted for at least lasting is
// a reason for /healthz to answer 503.
func Handler(f *eoa.Fleet, m *Metrics, lasting time.Duration) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		problems := f.Health()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if len(problems) == 0 {
			fmt.Fprintln(w, "ok")
			return
		}
		if time.Since(problems[0].Since) >= lasting {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		for _, p := range problems {
			fmt.Fprintln(w, p)
		}
	})
	return mux
}
