package ops

import (
	"fmt"
	"net/http"
	"net/http/pprof"

	gethnode "github.com/ethereum/go-ethereum/node"

	"github.com/jamq/jamq/examples/refnode/node"
)

// Handler answers what operators ask, and gives everything else to next. Profiles, which show what is in memory, are for who asks by one of some host names
// ("*" is any, an IP address always does), so that no web site can bind its own name to the node's address; nil means that nobody sees them.
func Handler(n *node.Node, m *Metrics, profilesFor []string, next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	mux.Handle("GET /healthz", answer(n.Alive))
	mux.Handle("GET /readyz", answer(n.Ready))
	if profilesFor != nil {
		mux.Handle("GET /debug/pprof/", gethnode.NewHTTPHandlerStack(profiles(), nil, profilesFor, nil, true))
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
