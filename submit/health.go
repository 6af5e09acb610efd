package submit

import (
	"fmt"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
)

// Health is how a runner does. It is there at any time, also when the runner has stopped.
type Health struct {
	// Running is true from Start until the runner has stopped; Err is why it stopped by itself, or nil.
	Running bool
	Err     error
	// Held says that a runner that recovered waits for newer blocks: see [OpenRunner].
	Held bool
	// Builds and Sends are under way.
	Builds, Sends int
	// BuildFailures and SendFailures count those in a row; the last success sets them to 0. LastError is the last one's.
	BuildFailures, SendFailures int
	LastError                   error
	// Fatal counts sends that failed with the class [Fatal]: an operator must look at the last error.
	Fatal int
	// Behind is by how much the host's clock is behind the chain's, as far as the blocks of late have shown: they came before their slot had begun.
	// The window is moved by it. Where they do so no longer, it falls to half in eleven blocks.
	Behind time.Duration
	// LastImport is when the last JAM block came, LastSlot its slot; LastSend when the last package was taken.
	LastImport time.Time
	LastSlot   jamq.Slot
	LastSend   time.Time
}

// Health says how the runner does.
func (r *Runner[B]) Health() Health {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.health
}

func (r *Runner[B]) noteStopped() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.health.Running = false
}

// stopped is ErrStopped, with why.
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

// noteBuildOutcome notes what the queue had of a build: a package that it cannot take is no success.
func (r *Runner[B]) noteBuildOutcome(err error) {
	r.mu.Lock()
	r.health.BuildFailures++
	label := "failed"
	if err == nil {
		label, r.health.BuildFailures = "ok", 0
	} else {
		r.health.LastError = err
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
	// Steps is how many steps there were after the last snapshot. Next is the number that the next bundle must have.
	Steps int
	Next  uint64
	// Bundles describes what the queue holds, by number.
	Bundles []bundlequeue.Info
	// Finalized and Best are the blocks of the JAM chain that the queue knows as such. A feed goes on after Finalized; what the queue knows
	// already it may be given again.
	Finalized, Best anchor.Point
	// Out are the packages that may be out there: a feed that must know its packages is told of them before it goes on.
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
	// Context is its refine context as far as evidence needs it: anchor, lookup anchor's slot, and prerequisites.
	Context jamq.RefineContext
	// Reported, Available and Accumulated are the blocks of the best chain in which that happened, or zero.
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
