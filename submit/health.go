package submit

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
)

// Health is the condition of a runner. See [Runner.Health].
type Health struct {
	// Running is true from Start until the runner has stopped.
	Running bool
	// Err is the error that made the runner stop by itself. It is nil if the
	// runner runs, or if the host stopped it.
	Err error
	// Held is true while the runner waits for newer blocks after a recovery:
	// see [OpenRunner].
	Held bool
	// Paused is the fatal error after which the runner stopped building and
	// sending, or nil: see [Fatal].
	Paused error
	// Waiting describes the first bundle without a submitted package. Its Since
	// is zero if there is none.
	Waiting bundlequeue.Delay
	// Delayed is true if Waiting has lasted for at least Config.DelayAlarm. The
	// queue never gives up such a bundle by itself. The host can do so with
	// bundlequeue.GiveUp.
	Delayed bool
	// Builds and Sends are the numbers of running calls of the builder and the
	// submitter.
	Builds, Sends int
	// BuildFailures and SendFailures count consecutive failures. A success sets
	// its counter to 0.
	BuildFailures, SendFailures int
	// LastError is the error of the last failed build or send.
	LastError error
	// Fatal counts builds and sends that failed with the class [Fatal].
	Fatal int
	// Behind estimates how far the host's clock lags the chain's, from blocks
	// that arrived before their slot began by the host's clock. The submission
	// window is shifted by it. Without new evidence it halves every eleven
	// blocks.
	Behind time.Duration
	// LastImport is when the last JAM block was imported, and LastSlot is the
	// slot of that block.
	LastImport time.Time
	LastSlot   jamq.Slot
	// LastSend is when the Submitter last returned without an error.
	LastSend time.Time
}

// Health returns the condition of the runner. It can be called at any time,
// also after the runner has stopped.
func (r *Runner) Health() Health {
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
func (r *Runner) window() Window {
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
	r.cfg.Metrics.observe(BuildSeconds, time.Since(began))
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
		if ClassOf(err) == Fatal {
			r.health.Fatal++
		}
	}
	r.mu.Unlock()
	r.cfg.Metrics.count(CountBuilds, label)
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
		label, r.health.LastError = ClassOf(err).String(), err
		if ClassOf(err) == Fatal {
			r.health.Fatal++
		}
	}
	r.mu.Unlock()
	r.cfg.Metrics.count(CountSends, label)
	r.cfg.Metrics.observe(SendSeconds, time.Since(began))
}

// Recovery is the state that a runner restored from its journal.
type Recovery struct {
	// Logger receives what a feed that continues from here has to tell operators,
	// unless the feed has another logger. Nil means none.
	Logger *slog.Logger
	// Found is false if the journal was empty. The other fields then describe
	// the new queue.
	Found bool
	// Steps is the number of steps after the last snapshot. Next is the number
	// that the next bundle must have.
	Steps int
	Next  uint64
	// Bundles describes the bundles in the queue, sorted by number.
	Bundles []bundlequeue.Info
	// Finalized and Best are the last finalized block and the best block of the
	// JAM chain that the queue knows. A feed continues after Finalized. It may
	// deliver blocks again that the queue knows already: see [Runner.Import].
	Finalized, Best anchor.Point
	// Head is the commitment of the last bundle in the queue, on which the host
	// executes the next one. See bundlequeue.Queue.Head.
	Head common.Hash
	// Out lists the packages that may be on the network. The host passes them
	// to a feed that follows packages, before the feed continues.
	Out []Out
}

// Out is a package that may be on the network: it was sent, and its bundle is
// not final.
type Out struct {
	// Number is the number of the bundle, Version the version of its package,
	// and Package the package's hash.
	Number  uint64
	Version int
	Package jamq.PackageHash
	// Core is the core that the package was last sent to.
	Core jamq.CoreIndex
	// Context holds the parts of its refine context that serve as evidence: the
	// anchor's hash and slot, the lookup anchor's slot, and the prerequisites.
	Context jamq.RefineContext
	// Reported, Available and Accumulated are the blocks of the best chain in
	// which the package was reported, became available and was accumulated. A
	// zero point means that this has not happened.
	Reported, Available, Accumulated anchor.Point
}

// Recovered returns the state that the runner restored. Call it after
// [OpenRunner] and before [Runner.Start]. It must not be called later, because
// it reads the queue without synchronization.
func (r *Runner) Recovered() Recovery {
	found := Recovery{Found: r.recovered, Steps: r.steps, Next: r.queue.Next(), Head: r.queue.Head(), Bundles: r.queue.Infos(), Finalized: r.queue.Finalized(), Best: r.queue.Best()}
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
