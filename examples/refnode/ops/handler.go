package ops

import (
	"fmt"
	"net/http"
	"net/http/pprof"

	"github.com/jamq/jamq/evmrollup/guard"
	"github.com/jamq/jamq/evmrollup/node"
)

// Handler serves the endpoints for operators, and passes all other requests to
// next. Profiles are served only for requests that address one of the host
// names in profilesFor, or an IP address, so that no web site can bind its own
// name to the node's address. "*" allows any name, and nil disables profiles.
func Handler(n *node.Node, m *Metrics, profilesFor []string, next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	mux.Handle("GET /healthz", answer(n.Alive))
	mux.Handle("GET /readyz", answer(n.Ready))
	if profilesFor != nil {
		mux.Handle("GET /debug/pprof/", guard.Hosts(profilesFor, profiles()))
	}
	mux.Handle("/", next)
	return mux
}

func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// answer responds with "ok", or with 503 and the error.
func answer(check func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := check(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
}
