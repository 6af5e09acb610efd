package page

import (
	"net/http"
	"time"

	"github.com/jamq/jamq/examples/refnode/live"
)

const (
	// maxStreams is the maximum number of streams at once.
	maxStreams = 64
	// writeTime is the maximum duration of writing one message.
	writeTime = 10 * time.Second
	// silence is the time without messages after which a stream sends a sign of
	// life.
	silence = 10 * time.Second
)

// stream sends the state and its changes as server-sent events.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	if !p.streams.TryAcquire(1) {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many streams are open", http.StatusServiceUnavailable)
		return
	}
	defer p.streams.Release(1)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // prevents buffering in proxies
	out := message{w: w, conn: http.NewResponseController(w)}
	// Only the ResponseWriter of a real connection supports deadlines.
	defer func() { _ = out.conn.SetWriteDeadline(time.Time{}) }()
	if out.write([]byte("retry: 1000\n\n")) != nil {
		return
	}
	p.follow(&out, r)
}

// follow writes the newest snapshot whenever there is a newer one.
func (p *Page) follow(out *message, r *http.Request) {
	alive := time.NewTicker(silence)
	defer alive.Stop()
	var seen live.Seen
	for {
		snapshot, changed := p.hub.Snapshot()
		if out.write(append(append([]byte("data: "), snapshot.Changes(&seen)...), '\n', '\n')) != nil {
			return
		}
	wait:
		for {
			select {
			case <-changed:
				break wait
			case <-alive.C:
				if out.write([]byte("event: alive\ndata: 1\n\n")) != nil {
					return
				}
			case <-p.hub.Done():
				return
			case <-p.closed:
				return
			case <-r.Context().Done():
				return
			}
		}
	}
}

// message writes messages to a reader with a deadline.
type message struct {
	w    http.ResponseWriter
	conn *http.ResponseController
}

func (m *message) write(b []byte) error {
	_ = m.conn.SetWriteDeadline(time.Now().Add(writeTime)) // some ResponseWriters have no deadlines
	if _, err := m.w.Write(b); err != nil {
		return err
	}
	return m.conn.Flush()
}
