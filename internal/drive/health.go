package drive

import (
	"fmt"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/submit"
)

// Health returns the condition of the runner. It can be called at any time,
// also after the runner has stopped.
func (r *Runner) Health() submit.Health {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.health
	h.Delayed = !h.Waiting.Since.IsZero() && time.Since(h.Waiting.Since) >= r.cfg.DelayAlarm
	return h
}

// noteWaiting records the first bundle without a submitted package.
func (r *Runner) noteWaiting() {
	delay, waits := r.queue.Delayed()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.health.Waiting = (bundlequeue.Delay{}); waits {
		r.health.Waiting = delay
	}
}

func (r *Runner) noteStopped() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.health.Running = false
}

// stopped returns ErrStopped, wrapped with the cause if there is one.
func (r *Runner) stopped() error {
	if err := r.Health().Err; err != nil {
		return fmt.Errorf("%w: %w", ErrStopped, err)
	}
	return ErrStopped
}

func (r *Runner) noteImport(slot jamq.Slot) {
	now := time.Now()
	early := r.cfg.Window.Clock.Start(slot).Sub(now)
	r.mu.Lock()
	before := r.health.Behind
	r.health.LastImport, r.health.LastSlot = now, slot
	switch length := r.cfg.Window.Clock.SlotDuration; {
	case early >= length || early <= -length:
		// A block this early shows an error of its author. A block this late
		// was delayed by the network. Neither shows an error of the clock.
	case early > before:
		r.health.Behind = early
	default:
		r.health.Behind -= (before - max(early, 0)) / 16
	}
	rise := r.health.Behind - before
	r.mu.Unlock()
	if rise > r.cfg.Window.Clock.SlotDuration/12 { // new or larger lag
		r.log.Warn("clock lags the chain's", "by", early)
	}
}

// window returns the configured window, shifted by the estimated lag of the
// clock.
func (r *Runner) window() submit.Window {
	w := r.cfg.Window
	if behind := r.Health().Behind; behind > 0 {
		w.Skew = min(w.Skew, -behind)
	}
	return w
}

func (r *Runner) noteBuild() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.health.Builds++
	return time.Now()
}

func (r *Runner) noteBuilt(began time.Time) {
	r.mu.Lock()
	r.health.Builds--
	r.mu.Unlock()
	observe(&r.cfg.Metrics, submit.BuildSeconds, time.Since(began))
}

// noteBuildOutcome records the outcome of a build. A package that the queue
// cannot use is a failure.
func (r *Runner) noteBuildOutcome(err error) {
	r.mu.Lock()
	r.health.BuildFailures++
	label := "failed"
	if err == nil {
		label, r.health.BuildFailures = "ok", 0
	} else {
		r.health.LastError = err
		if submit.ClassOf(err) == submit.Fatal {
			r.health.Fatal++
		}
	}
	r.mu.Unlock()
	count(&r.cfg.Metrics, submit.CountBuilds, label)
}

func (r *Runner) noteSend() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.health.Sends++
	return time.Now()
}

func (r *Runner) noteSent(began time.Time, err error) {
	label := "ok"
	r.mu.Lock()
	r.health.Sends--
	r.health.SendFailures++
	if err == nil {
		r.health.SendFailures, r.health.LastSend = 0, time.Now()
	} else {
		label, r.health.LastError = submit.ClassOf(err).String(), err
		if submit.ClassOf(err) == submit.Fatal {
			r.health.Fatal++
		}
	}
	r.mu.Unlock()
	count(&r.cfg.Metrics, submit.CountSends, label)
	observe(&r.cfg.Metrics, submit.SendSeconds, time.Since(began))
}

// Recovered returns the state that the runner restored. Call it after
// [OpenRunner] and before [Runner.Start]. It must not be called later, because
// it reads the queue without synchronization.
func (r *Runner) Recovered() submit.Recovery {
	found := submit.Recovery{Found: r.recovered, Steps: r.steps, Next: r.queue.Next(), Head: r.queue.Head(), Bundles: r.queue.Infos(), Finalized: r.queue.Finalized(), Best: r.queue.Best()}
	for _, info := range found.Bundles {
		for _, v := range info.Versions {
			if v.Attempts > 0 && info.State != bundlequeue.Finalized {
				found.Out = append(found.Out, submit.Out{
					Number: info.Number, Version: v.Version, Package: v.Package, Core: info.Core,
					Context: jamq.RefineContext{
						Anchor: v.Anchor.Hash, AnchorSlot: v.Anchor.Slot, LookupAnchorSlot: v.LookupAnchorSlot, Prerequisites: v.Prerequisites,
					},
					Reported: v.Reported, Available: v.Available, Accumulated: v.Accumulated,
				})
			}
		}
	}
	return found
}
