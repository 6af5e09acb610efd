package submit

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/bundlequeue/told"
)

// Builder makes packages. Its methods are called from several goroutines at once.
type Builder[B any] interface {
	// Build makes a package as the request says. The ticket is the runner's business. After an
	// error the queue asks again, after a back-off and without limit; an error of class [Fatal]
	// pauses the runner. ctx ends with Config.BuildTimeout or the runner.
	Build(ctx context.Context, request bundlequeue.Build[B]) (Package[B], error)
}

// Package is what a [Builder] made.
type Package[B any] struct {
	// Hash is the hash of the package's bytes.
	Hash jamq.PackageHash
	// Context is the refine context in them.
	Context jamq.RefineContext
	// Bundle is what the Submitter will get. It holds the bytes.
	Bundle B
}

// Submitter sends packages. Its methods are called from several goroutines at once.
type Submitter[B any] interface {
	// Submit gives a package to a guarantor of request.Core; another one for each request.Attempt.
	// After an error the same bytes are sent again after a back-off, unless its class says
	// otherwise: see [WithClass]. ctx ends with Config.SubmitTimeout or the runner.
	Submit(ctx context.Context, request bundlequeue.Send[B]) error
}

// Observation is an effect of the queue, reported after the fact.
type Observation struct {
	// Number counts the effects of a queue from 1, in order and without a gap, across restarts of a
	// durable runner. 0: an effect that was reported before a restart and is carried out again
	// after it.
	Number uint64
	// At is when the queue took the event.
	At time.Time
	// Effect is the effect.
	Effect bundlequeue.Effect
	// Replayed is true if the effect belongs to a step from before a restart. The host may have
	// seen it already: see Number.
	Replayed bool
}

// Config holds what a runner needs besides the host's interfaces. Begin with [DefaultConfig].
type Config struct {
	// Queue configures the queue.
	Queue bundlequeue.Config
	// Told, if not nil, gives the queue told evidence instead of imported blocks: see package
	// bundlequeue/told for the risk. The host then feeds bundlequeue.Told events by [Runner.Step].
	// Nil by default.
	Told *told.Config
	// Window says when packages are sent.
	Window Window
	// BuildTimeout bounds one call of the builder, positive; H slots by default, because a package
	// that takes longer has no anchor that is recent enough.
	BuildTimeout time.Duration
	// SubmitTimeout bounds one call of the submitter, positive; a slot by default.
	SubmitTimeout time.Duration
	// HoldTimeout is how long a runner that has just recovered waits for newer blocks before it
	// acts: see [OpenRunner]; positive, five slots by default.
	HoldTimeout time.Duration
	// DelayAlarm is how long the first bundle without a package may wait before Health.Delayed is
	// set, positive; 20 slots by default. Losses alone can delay a bundle by H slots each.
	DelayAlarm time.Duration
	// Observe receives every effect, in order, after the queue has taken the event and, with a
	// journal, written it down. It runs on the runner's goroutine: it should be quick, and must not
	// call the runner and wait. A failed bundle counts as taken back when Observe returns, so a
	// host that must lose nothing keeps its transactions here. Nil by default: then failed bundles
	// are only logged, and [OpenRunner] refuses the configuration.
	Observe func(Observation)
	// CheckInvariants makes the runner check the queue after each step, and stop with
	// bundlequeue.ErrInvariant before it acts if the check fails. It costs time in proportion to
	// the bundles that the queue holds. Off by default.
	CheckInvariants bool
	// Invariants, if not nil, is called after each step together with the check of the queue. An
	// error stops the runner before it acts. A host checks its pool here. It runs on the runner's
	// goroutine.
	Invariants func() error
	// Metrics gets counts and durations. The zero value counts nothing.
	Metrics Metrics
	// Logger gets what an operator should know. Nil is silent.
	Logger *slog.Logger
}

const (
	// holdSlots is HoldTimeout by default.
	holdSlots = 5
	// alarmSlots is DelayAlarm by default.
	alarmSlots = 20
)

// DefaultConfig returns the defaults for a chain.
func DefaultConfig(spec jamq.ChainSpec) Config {
	return Config{
		Queue:         bundlequeue.DefaultConfig(spec),
		Window:        DefaultWindow(spec),
		BuildTimeout:  time.Duration(spec.RecentHistory) * spec.SlotDuration,
		SubmitTimeout: spec.SlotDuration,
		HoldTimeout:   holdSlots * spec.SlotDuration,
		DelayAlarm:    alarmSlots * spec.SlotDuration,
	}
}

// Validate names the first field that is out of range. The error wraps [ErrInvalidConfig] or the
// queue's.
func (c *Config) Validate() error {
	if err := c.Queue.Validate(); err != nil {
		return fmt.Errorf("%w: Queue: %w", ErrInvalidConfig, err)
	}
	if c.Told != nil {
		if err := c.Told.Validate(&c.Queue.Spec); err != nil {
			return fmt.Errorf("%w: Told: %w", ErrInvalidConfig, err)
		}
	}
	if err := c.Window.Validate(); err != nil {
		return err
	}
	for _, f := range []struct {
		field string
		have  time.Duration
	}{
		{"BuildTimeout", c.BuildTimeout}, {"SubmitTimeout", c.SubmitTimeout}, {"HoldTimeout", c.HoldTimeout}, {"DelayAlarm", c.DelayAlarm},
	} {
		if f.have <= 0 {
			return fmt.Errorf("%w: %s is %v, want positive", ErrInvalidConfig, f.field, f.have)
		}
	}
	return nil
}
