package builder

import (
	"slices"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/submit"
)

// Health is the condition of a builder. Operators and alerts read it to learn whether the
// builder works, and which call of the host holds it up. See [Builder.Health].
type Health struct {
	// Running is true while Run of the builder runs.
	Running bool
	// Err is the error that made the builder stop by itself. It is nil if it
	// runs, or if the host stopped it.
	Err error
	// Held is true while the builder waits for newer blocks after a restart:
	// see Config.HoldTimeout.
	Held bool
	// Paused is the fatal error after which the builder stopped packing and
	// sending, or nil: see submit.Fatal.
	Paused error
	// Waiting describes the first bundle without a submitted package. Its Since
	// is zero if there is none.
	Waiting bundlequeue.Delay
	// Delayed is true if Waiting has lasted for at least Config.DelayAlarm. The
	// builder never gives up such a bundle by itself: see [Builder.GiveUp].
	Delayed bool
	// Builds and Sends are the numbers of packages that are being made and sent.
	Builds, Sends int
	// BuildFailures and SendFailures count consecutive failures. A success sets
	// its counter to 0.
	BuildFailures, SendFailures int
	// LastError is the error of the last failed build or send.
	LastError error
	// Fatal counts builds and sends that failed with the class submit.Fatal.
	Fatal int
	// Behind estimates how far the host's clock lags the chain's, from blocks
	// that arrived before their slot began by the host's clock. The submission
	// window is shifted by it. Without new evidence it halves every eleven
	// blocks.
	Behind time.Duration
	// LastImport is when the last JAM block was imported.
	LastImport time.Time
	// LastSend is when Network.Send last returned without an error.
	LastSend time.Time
	// Calls describes each method of the host of which a call runs or of which the last call
	// failed. It is sorted by Call.Method, and nil if there is none. A table in
	// docs/embedding.md lists the work that waits while a method hangs.
	Calls []Call
}

// Stuck returns the method that needs an operator most, for an alert or a readiness check. A
// method counts if one of its calls has run for at least the given time, or if it has failed
// again and again for at least that time and its last failure is not longer ago. If several
// methods count, Stuck returns the one with the longest trouble. It returns false if none counts.
func (h *Health) Stuck(after time.Duration) (call Call, found bool) {
	longest := after
	for _, c := range h.Calls {
		took := c.FailedAt.Sub(c.FailingSince)
		if time.Since(c.FailedAt) > after { // the builder has not needed the method since
			took = 0
		}
		if c.Running > 0 {
			took = max(took, time.Since(c.Since))
		}
		if took >= longest && took > 0 {
			call, found, longest = c, true, took
		}
	}
	return call, found
}

// Health returns the condition of the builder. It can be called at any time, also after Run has
// returned.
func (e *engine) Health() Health {
	e.mu.Lock()
	h := e.health
	e.mu.Unlock()
	h.Delayed = !h.Waiting.Since.IsZero() && time.Since(h.Waiting.Since) >= e.cfg.DelayAlarm
	h.Calls = e.calls.list()
	if n, ok := e.network.(interface{ Health() submit.FeedHealth }); ok {
		if feed := n.Health(); feed.Following && feed.Failures > 0 {
			h.Calls = append(h.Calls, Call{
				Method: "Network.Follow", Failures: feed.Failures, FailingSince: feed.FailingSince, FailedAt: time.Now(), Err: feed.LastError,
			})
			slices.SortFunc(h.Calls, byMethod)
		}
	}
	return h
}

// note changes the condition.
func (e *engine) note(change func(h *Health)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.health)
}

// noteWaiting notes the first bundle without a submitted package.
func (e *engine) noteWaiting() {
	delay, _ := e.queue.Delayed() // zero if there is none
	e.note(func(h *Health) { h.Waiting = delay })
}

// noteImport notes a JAM block, and estimates from it how far the clock lags.
func (e *engine) noteImport(slot jamq.Slot) {
	now, clock := time.Now(), e.cfg.Window.Clock
	early := clock.Start(slot).Sub(now)
	var rise time.Duration
	e.note(func(h *Health) {
		before := h.Behind
		h.LastImport = now
		switch {
		case early >= clock.SlotDuration || early <= -clock.SlotDuration:
			// A block this early shows an error of its author. A block this late
			// was delayed by the network. Neither shows an error of the clock.
		case early > before:
			h.Behind = early
		default:
			h.Behind -= (before - max(early, 0)) / 16
		}
		rise = h.Behind - before
	})
	if rise > clock.SlotDuration/12 { // new or larger lag
		e.log.Warn("builder: the clock lags the chain's", "by", early)
	}
}

// window returns the configured window, shifted by the estimated lag of the clock.
func (e *engine) window() Window {
	w := e.cfg.Window
	e.note(func(h *Health) {
		if h.Behind > 0 {
			w.Skew = min(w.Skew, -h.Behind)
		}
	})
	return w
}

func (e *engine) noteBuild() (began time.Time) {
	e.note(func(h *Health) { h.Builds++ })
	return time.Now()
}

func (e *engine) noteBuilt(began time.Time) {
	e.note(func(h *Health) { h.Builds-- })
	e.cfg.Metrics.observe(BuildSeconds, time.Since(began))
}

// noteBuildOutcome notes the outcome of a build. A package that the queue cannot use is a
// failure.
func (e *engine) noteBuildOutcome(err error) {
	label := "ok"
	e.note(func(h *Health) {
		if err == nil {
			h.BuildFailures = 0
			return
		}
		label = "failed"
		h.BuildFailures++
		h.failed(err)
	})
	e.cfg.Metrics.count(CountBuilds, label)
}

func (e *engine) noteSend() (began time.Time) {
	e.note(func(h *Health) { h.Sends++ })
	return time.Now()
}

func (e *engine) noteSent(began time.Time, err error) {
	label := "ok"
	e.note(func(h *Health) {
		h.Sends--
		if err == nil {
			h.SendFailures, h.LastSend = 0, time.Now()
			return
		}
		label = submit.ClassOf(err).String()
		h.SendFailures++
		h.failed(err)
	})
	e.cfg.Metrics.count(CountSends, label)
	e.cfg.Metrics.observe(SendSeconds, time.Since(began))
}

// failed notes the error of a build or a send.
func (h *Health) failed(err error) {
	h.LastError = err
	if submit.ClassOf(err) == submit.Fatal {
		h.Fatal++
	}
}
