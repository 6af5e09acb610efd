package ops

import (
	"fmt"
	"net/http"
	"net/http/pprof"

	"github.com/jamq/jamq/examples/refnode/node"
)

// Handler answers what operators ask, and gives everything else to next. Profiles are shown only if withProfiles is true.
func Handler(n *node.Node, m *Metrics, withProfiles bool, next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	mux.Handle("GET /healthz", answer(n.Alive))
	mux.Handle("GET /readyz", answer(n.Ready))
	if withProfiles {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	mux.Handle("/", next)
	return mux
}

// answer says ok, or what is wrong.
func answer(check func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := check(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
}
