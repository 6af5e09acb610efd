package page

import (
	"net/http"
	"time"

	"github.com/jamq/jamq/examples/refnode/live"
)

const (
	// maxStreams bounds how many browsers look on.
	maxStreams = 64
	// writeTime is how long a reader may take for a message.
	writeTime = 10 * time.Second
	// silence is after how long a stream says that it still lives.
	silence = 10 * time.Second
)

// stream sends the state, and what changes of it, as server-sent events.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many browsers look on", http.StatusServiceUnavailable)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies hold such streams back otherwise
	out := message{w: w, conn: http.NewResponseController(w)}
	defer func() { _ = out.conn.SetWriteDeadline(time.Time{}) }() // not every ResponseWriter has deadlines
	if out.write([]byte("retry: 1000\n\n")) != nil {
		return
	}
	p.follow(&out, r)
}

// follow writes the newest snapshot, waits for a newer one, and so on.
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

// message writes to a reader who may not take for ever.
type message struct {
	w    http.ResponseWriter
	conn *http.ResponseController
}

func (m *message) write(b []byte) error {
	_ = m.conn.SetWriteDeadline(time.Now().Add(writeTime)) // not every ResponseWriter has deadlines
	if _, err := m.w.Write(b); err != nil {
		return err
	}
	return m.conn.Flush()
}
