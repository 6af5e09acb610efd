package submit

import (
	"fmt"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
)

// Health is the condition of a runner. It can be read at any time, also after the runner has
// stopped.
type Health struct {
	// Running is true from Start until the runner has stopped.
	Running bool
	// Err is why the runner stopped by itself, or nil.
	Err error
	// Held is true while a runner that recovered waits for newer blocks: see [OpenRunner].
	Held bool
	// Paused is the fatal error after which the runner builds and sends nothing, or nil: see
	// [Fatal].
	Paused error
	// Waiting describes the first bundle without a package out there; its Since is zero if there
	// is none.
	Waiting bundlequeue.Delay
	// Delayed is true if Waiting has lasted for Config.DelayAlarm. The queue never gives such a
	// bundle up by itself; the host can, by bundlequeue.GiveUp.
	Delayed bool
	// Builds and Sends are under way.
	Builds, Sends int
	// BuildFailures and SendFailures count failures in a row; a success sets them to 0.
	BuildFailures, SendFailures int
	// LastError is the error of the last failure.
	LastError error
	// Fatal counts builds and sends that failed with the class [Fatal].
	Fatal int
	// Behind estimates how far the host's clock lags the chain's, from blocks that arrived before
	// their slot began by the host's clock. The submission window is shifted by it. Without new
	// evidence it halves every eleven blocks.
	Behind time.Duration
	// LastImport is when the last JAM block came, LastSlot its slot.
	LastImport time.Time
	LastSlot   jamq.Slot
	// LastSend is when a guarantor last took a package.
	LastSend time.Time
}

// Health returns the condition of the runner.
func (r *Runner[B]) Health() Health {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.health
	h.Delayed = !h.Waiting.Since.IsZero() && time.Since(h.Waiting.Since) >= r.cfg.DelayAlarm
	return h
}

// noteWaiting notes the first bundle without a package out there.
func (r *Runner[B]) noteWaiting() {
	delay, waits := r.queue.Delayed()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.health.Waiting = (bundlequeue.Delay{}); waits {
		r.health.Waiting = delay
	}
}

func (r *Runner[B]) noteStopped() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.health.Running = false
}

// stopped is ErrStopped with the cause.
func (r *Runner[B]) stopped() error {
	if err := r.Health().Err; err != nil {
		return fmt.Errorf("%w: %w", ErrStopped, err)
	}
	return ErrStopped
}

func (r *Runner[B]) noteImport(slot jamq.Slot) {
	now := time.Now()
	early := r.cfg.Window.Clock.Start(slot).Sub(now)
	r.mu.Lock()
	before := r.health.Behind
	r.health.LastImport, r.health.LastSlot = now, slot
	switch length := r.cfg.Window.Clock.SlotDuration; {
	case early >= length || early <= -length: // from so far ahead it says something about its author; so late, about the way that it took
	case early > before:
		r.health.Behind = early
	default:
		r.health.Behind -= (before - max(early, 0)) / 16
	}
	rise := r.health.Behind - before
	r.mu.Unlock()
	if rise > r.cfg.Window.Clock.SlotDuration/12 { // else it is known
		r.log.Warn("the clock is behind the chain's", "by", early)
	}
}

// window is the configured one, moved by what is known of the clock.
func (r *Runner[B]) window() Window {
	w := r.cfg.Window
	if behind := r.Health().Behind; behind > 0 {
		w.Skew = min(w.Skew, -behind)
	}
	return w
}

func (r *Runner[B]) noteBuild() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.health.Builds++
	return time.Now()
}

func (r *Runner[B]) noteBuilt(began time.Time) {
	r.mu.Lock()
	r.health.Builds--
	r.mu.Unlock()
	r.cfg.Metrics.observe(BuildSeconds, time.Since(began))
}

// noteBuildOutcome notes the outcome of a build. A package that the queue cannot use is a failure.
func (r *Runner[B]) noteBuildOutcome(err error) {
	r.mu.Lock()
	r.health.BuildFailures++
	label := "failed"
	if err == nil {
		label, r.health.BuildFailures = "ok", 0
	} else {
		r.health.LastError = err
		if ClassOf(err) == Fatal {
			r.health.Fatal++
		}
	}
	r.mu.Unlock()
	r.cfg.Metrics.count(CountBuilds, label)
}

func (r *Runner[B]) noteSend() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.health.Sends++
	return time.Now()
}

func (r *Runner[B]) noteSent(began time.Time, err error) {
	label := "ok"
	r.mu.Lock()
	r.health.Sends--
	r.health.SendFailures++
	if err == nil {
		r.health.SendFailures, r.health.LastSend = 0, time.Now()
	} else {
		label, r.health.LastError = ClassOf(err).String(), err
		if ClassOf(err) == Fatal {
			r.health.Fatal++
		}
	}
	r.mu.Unlock()
	r.cfg.Metrics.count(CountSends, label)
	r.cfg.Metrics.observe(SendSeconds, time.Since(began))
}

// Recovery is what a runner found in its journal.
type Recovery struct {
	// Found is false where the journal was empty: then the rest is what the runner began with.
	Found bool
	// Steps is how many steps there were after the last snapshot. Next is the number that the next
	// bundle must have.
	Steps int
	Next  uint64
	// Bundles describes what the queue holds, by number.
	Bundles []bundlequeue.Info
	// Finalized and Best are the blocks of the JAM chain that the queue knows as such. A feed goes
	// on after Finalized; what the queue knows already it may be given again.
	Finalized, Best anchor.Point
	// Out are the packages that may be out there. The host passes them to a feed that must know its
	// packages, before the feed continues.
	Out []Out
}

// Out is a package that may be out there.
type Out struct {
	// Number and Version name it, Package is its hash.
	Number  uint64
	Version int
	Package jamq.PackageHash
	// Core is the core that it was sent to last.
	Core jamq.CoreIndex
	// Context is its refine context as far as evidence needs it: anchor, lookup anchor's slot, and
	// prerequisites.
	Context jamq.RefineContext
	// Reported, Available and Accumulated are the blocks of the best chain in which that happened,
	// or zero.
	Reported, Available, Accumulated anchor.Point
}

// Recovered says where a runner stands that was opened and not started yet.
func (r *Runner[B]) Recovered() Recovery {
	found := Recovery{Found: r.recovered, Steps: r.steps, Next: r.queue.Next(), Bundles: r.queue.Infos(), Finalized: r.queue.Finalized(), Best: r.queue.Best()}
	for _, info := range found.Bundles {
		for _, v := range info.Versions {
			if v.Attempts > 0 && info.State != bundlequeue.Finalized {
				found.Out = append(found.Out, Out{
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
