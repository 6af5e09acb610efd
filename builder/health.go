package builder

import (
	"slices"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/submit"
)

// Health is the condition of a builder. Operators and alerts read it to learn whether the builder
// works, and which call of the host it waits for. See [Builder.Health].
type Health struct {
	// Running is true while Run of the builder runs. It becomes true at the moment from which on
	// other calls no longer return ErrStopped.
	Running bool
	// Follows is true from Open on until this process leads the log: see SharedLog. It is never
	// true if the log is not shared.
	Follows bool
	// Err is the error because of which the builder has stopped. It is nil while the builder runs,
	// and if the host stopped the builder.
	Err error
	// Held is true while the builder makes and sends no packages after a restart, because it waits
	// for newer blocks: see Config.HoldTimeout.
	Held bool
	// Doubted is true while the builder makes and sends no packages because its log may have lost
	// records: see SharedLog. It becomes false when it is certain what has become of every package
	// that a lost record may have had. Held is true too.
	Doubted bool
	// Paused is the fatal error because of which the builder makes and sends no packages, or nil:
	// see submit.Fatal. [Builder.Resume] ends the pause.
	Paused error
	// Waiting describes the first bundle without a submitted package. Waiting.Since is zero if
	// there is no such bundle.
	Waiting bundlequeue.Delay
	// Delayed is true if Waiting has lasted for at least Config.DelayAlarm. The
	// builder never gives up such a bundle by itself: see [Builder.GiveUp].
	Delayed bool
	// Builds and Sends are the numbers of packages that are being made and sent at the moment. A
	// package whose block the rollup has not applied yet counts in Builds. A package that waits for
	// the sending window does not count in Sends.
	Builds, Sends int
	// BuildFailures and SendFailures count the failed builds and sends since the last successful
	// one. A package that the queue could not use is a failed build.
	BuildFailures, SendFailures int
	// LastError is the error of the last failed build or send, and nil if none has
	// failed since Open. A later success does not clear it.
	LastError error
	// Fatal counts builds and sends that failed with the class submit.Fatal since
	// Open.
	Fatal int
	// Behind is an estimate of how far the host's clock is behind the chain's, from blocks that
	// arrived before their slot began by the host's clock. The builder sends packages as if
	// Window.Skew were -Behind, unless Window.Skew is lower already. Without new evidence Behind
	// halves every eleven blocks.
	Behind time.Duration
	// LastImport is when the last JAM block was imported, by the host's clock. It is
	// zero if there was none since Open.
	LastImport time.Time
	// LastSend is when Network.Send last returned without an error, by the host's
	// clock. It is zero if there was none since Open.
	LastSend time.Time
	// Calls describes each method of the host of which a call runs, or whose last call failed. It
	// is sorted by Call.Method, and nil if there is none. A table in docs/embedding.md lists which
	// work waits while a method hangs.
	Calls []Call
}

// Stuck returns the method of the host that needs an operator most, for an alert or a readiness
// check. A method is in trouble in these cases:
//
//   - One of its calls has run for at least the duration after.
//   - It has failed repeatedly without a success in between, the failures cover at least the
//     duration after, and the last one is at most that long ago.
//
// If several methods are in trouble, Stuck returns the one whose trouble lasts longest. It returns
// false if no method is in trouble.
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

// note changes the condition that Health returns. It calls change with the mutex of the engine
// locked.
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

// noteImport records that a JAM block was imported, and estimates from the time of the import how
// far the host's clock is behind the chain's.
func (e *engine) noteImport(slot jamq.Slot) {
	now, clock := time.Now(), e.cfg.Window.Clock
	early := clock.Start(slot).Sub(now)
	var rise time.Duration
	e.note(func(h *Health) {
		before := h.Behind
		h.LastImport = now
		switch {
		case early >= clock.SlotDuration || early <= -clock.SlotDuration:
			// If a block is this early, its author has made an error. If it is this late, the
			// network has delayed it. Neither shows an error of the clock.
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

// window returns the part of each slot in which packages are sent: the configured one, shifted by
// the estimated lag of the host's clock.
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
	e.cfg.Metrics.Record(BuildSeconds, time.Since(began).Seconds())
}

// noteBuildOutcome records whether a build has succeeded, for Health and the metrics. A package
// that was made but that the queue cannot use counts as a failure.
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

// failed notes the error of a build or a send.
func (h *Health) failed(err error) {
	h.LastError = err
	if submit.ClassOf(err) == submit.Fatal {
		h.Fatal++
	}
}
