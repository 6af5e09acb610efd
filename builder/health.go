package builder

import (
	"slices"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/submit"
)

// Health is the condition of a builder. Operators and alerts read it to find out
// whether the builder works, and which call of the host holds it up. See
// [Builder.Health].
type Health struct {
	// Running is true while Run runs. Once it is true, no call returns ErrStopped merely
	// because Run has not begun yet.
	Running bool
	// Follows is true from Open until this process leads the log: see SharedLog. It is always
	// false if the log is not shared.
	Follows bool
	// Err is the error with which the builder has stopped. It is nil while the builder
	// runs, and if the host stopped the builder.
	Err error
	// Held is true while the builder makes and sends no packages after a restart, because it waits
	// for newer blocks: see Config.HoldTimeout.
	Held bool
	// Doubted is true while the builder makes and sends no packages because its log may
	// have lost records: see SharedLog. It becomes false when every package whose
	// record may be lost is accumulated or can never be. Held is also true in the
	// meantime.
	Doubted bool
	// Paused is the fatal error that keeps the builder from making and sending packages, or
	// nil: see submit.Fatal. [Builder.Resume] ends the pause.
	Paused error
	// Waiting describes the first bundle without a submitted package. Waiting.Since is zero if
	// there is no such bundle.
	Waiting bundlequeue.Delay
	// Delayed is true if Waiting has lasted for at least Config.DelayAlarm. The builder
	// never gives up a bundle by itself only because it waits: see [Builder.GiveUp].
	Delayed bool
	// Builds and Sends are the numbers of packages that the builder is making and sending at
	// the moment. Builds includes a package whose block the rollup has not applied yet. Sends
	// does not include a package that waits for the sending window.
	Builds, Sends int
	// BuildFailures and SendFailures count the failed builds and sends since the last
	// successful one. If the queue cannot use a package, its build counts as failed.
	BuildFailures, SendFailures int
	// LastError is the error of the last failed build or send. It is nil if none has failed
	// since Open. A later success does not clear it.
	LastError error
	// Fatal counts the builds and sends since Open that failed with an error of the class
	// submit.Fatal.
	Fatal int
	// Behind is an estimate of how far the host's clock is behind the chain's clock. The
	// evidence is a block that arrives before its slot has begun by the host's clock. The
	// builder sends packages as if Window.Skew were -Behind, unless Window.Skew is lower
	// already. Without new evidence, Behind halves every eleven blocks.
	Behind time.Duration
	// LastImport is the time of the last import of a JAM block, by the host's clock. It is zero
	// if there was none since Open.
	LastImport time.Time
	// LastSend is when Network.Send last returned without an error, by the host's clock.
	// It is zero if there was none since Open.
	LastSend time.Time
	// Calls describes each method of the host that has a running call, or whose last call
	// failed. The list is sorted by Call.Method, and nil if it is empty. A table in
	// docs/embedding.md lists which work waits while a method hangs.
	Calls []Call
}

// Stuck returns the method of the host that most needs an operator's attention, for
// an alert or a readiness check. A method is in trouble in two cases:
//
//   - One of its calls has run for at least the duration after.
//   - It has failed repeatedly without a success in between. The failures span at
//     least the duration after, and the last one is at most that long ago.
//
// If several methods are in trouble, Stuck returns the one whose trouble has lasted
// longest. It returns false if no method is in trouble.
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

// note changes the result of Health, with e.mu locked.
func (e *engine) note(change func(h *Health)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.health)
}

// noteWaiting notes the first bundle without a submitted package.
func (e *engine) noteWaiting() {
	delay, _ := e.queue.Delayed() // the zero Delay if no bundle waits
	e.note(func(h *Health) { h.Waiting = delay })
}

// noteImport records the import of a JAM block, and estimates the lag of the clock.
func (e *engine) noteImport(slot jamq.Slot) {
	now, clock := time.Now(), e.cfg.Window.Clock
	early := clock.Start(slot).Sub(now)
	var rise time.Duration
	e.note(func(h *Health) {
		before := h.Behind
		h.LastImport = now
		switch {
		// A block that is a slot early is its author's error, and one that is a slot late was
		// delayed by the network. Neither shows an error of the clock.
		case early >= clock.SlotDuration || early <= -clock.SlotDuration:
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

// window returns the part of each slot in which packages are sent.
func (e *engine) window() Window {
	w := e.cfg.Window
	e.note(func(h *Health) {
		if h.Behind > 0 {
			// The host's clock lags behind the chain's by this estimate, so shift the
			// window.
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
	e.cfg.Metrics.Record(BuildSeconds, time.Since(began).Seconds())
}

// noteBuildOutcome records for Health and the metrics whether a build has succeeded.
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
	e.cfg.Metrics.Add(CountBuilds, label, 1)
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
	e.cfg.Metrics.Add(CountSends, label, 1)
	e.cfg.Metrics.Record(SendSeconds, time.Since(began).Seconds())
}

// failed records the error of a build or a send.
func (h *Health) failed(err error) {
	h.LastError = err
	if submit.ClassOf(err) == submit.Fatal {
		h.Fatal++
	}
}
