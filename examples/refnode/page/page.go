package page

import (
	"context"
	"embed"
	"net/http"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/jamq/jamq/examples/refnode/lab"
	"github.com/jamq/jamq/examples/refnode/live"
)

//go:embed static
var static embed.FS

// Page is the HTTP handler of the page. It is safe for concurrent use.
type Page struct {
	http.Handler
	hub     *live.Hub
	lab     *lab.Lab // nil without fault injection
	kill    func(ctx context.Context, address string) error
	closed  chan struct{}
	closing sync.Once
	streams *semaphore.Weighted // has a weight of one for each stream
}

// New returns a page that shows the node of hub. lab injects faults; nil
// disables fault injection. kill ends the process of the replica with an address,
// such as [lab.Node.KillReplica]; the page answers 400 if its error wraps
// lab.ErrRefused or node.ErrNoCluster.
func New(hub *live.Hub, lab *lab.Lab, kill func(ctx context.Context, address string) error) *Page {
	p := &Page{hub: hub, lab: lab, kill: kill, closed: make(chan struct{}), streams: semaphore.NewWeighted(maxStreams)}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, static, "static/index.html") })))
	mux.Handle("GET /static/", guard(http.FileServerFS(static)))
	mux.HandleFunc("GET /live", p.stream)
	mux.Handle("/lab/", p.laboratory())
	p.Handler = mux
	return p
}

// Close ends all streams. Streams that are opened later end at once.
func (p *Page) Close() { p.closing.Do(func() { close(p.closed) }) }

// policy lets the page load only resources of the node, and forbids other sites
// to embed it in a frame.
const policy = "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-cache")
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}
