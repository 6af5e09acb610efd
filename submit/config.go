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

// Builder makes packages. Its methods are called from several goroutines
// concurrently.
type Builder interface {
	// Build makes a package for request, anchored as request requires. The
	// Builder can ignore request.Ticket.
	//
	// If Build returns an error, the queue requests the build again after a
	// back-off, without limit. An error of class [Fatal] pauses the runner. ctx
	// ends after Config.BuildTimeout, or when the runner stops.
	Build(ctx context.Context, request bundlequeue.Build) (Package, error)
}

// Package is the result of [Builder.Build].
type Package struct {
	// Hash is the hash of the package's bytes.
	Hash jamq.PackageHash
	// Context is the refine context that the bytes contain.
	Context jamq.RefineContext
	// Bundle is passed to the Submitter. It holds the package's bytes.
	Bundle []byte
}

// Submitter sends packages. Its methods are called from several goroutines
// concurrently.
type Submitter interface {
	// Submit sends a package to a guarantor of request.Core. It should choose
	// another guarantor for each request.Attempt.
	//
	// If Submit returns an error, the runner sends the same bytes again after a
	// back-off, unless the class of the error requires otherwise: see
	// [WithClass]. ctx ends after Config.SubmitTimeout, or when the runner
	// stops.
	Submit(ctx context.Context, request bundlequeue.Send) error
}

// Observation is an effect of the queue. It is reported after the step that
// caused it.
type Observation struct {
	// Number counts the effects of a queue from 1, without gaps, across
	// restarts of a durable runner.
	Number uint64
	// At is when the queue processed the event.
	At     time.Time
	Effect bundlequeue.Effect
	// Replayed is true if the step happened before a restart. The host may have
	// seen the effect already: compare Number.
	Replayed bool
}

// Config is the configuration of a runner. Start from [DefaultConfig].
type Config struct {
	// Queue configures the queue.
	Queue bundlequeue.Config
	// Told makes the queue learn the state of packages from the host instead of
	// from imported blocks. The host then feeds bundlequeue.Told events with
	// [Runner.Step]. See package bundlequeue/told for the risk. Nil, the
	// default, means imported blocks.
	Told *told.Config
	// Window is the part of each slot in which packages are sent.
	Window Window
	// BuildTimeout limits one call of the builder. It must be positive. The
	// default is H slots: a package that takes longer has no recent anchor when
	// it is ready.
	BuildTimeout time.Duration
	// SubmitTimeout limits one call of the submitter. It must be positive. The
	// default is one slot.
	SubmitTimeout time.Duration
	// HoldTimeout is the longest time that a runner waits for newer blocks
	// after a recovery, before it builds and sends: see [OpenRunner]. It must
	// be positive. The default is five slots.
	HoldTimeout time.Duration
	// DelayAlarm is how long the first bundle without a submitted package may
	// wait before Health.Delayed is true. It must be positive. The default is
	// 20 slots. Each lost package delays a bundle by about H slots.
	DelayAlarm time.Duration
	// Observe is called with every effect, in order, after the queue has
	// processed the event and, if there is a journal, recorded it. It runs on
	// the runner's goroutine: it must return quickly, and it must not wait for
	// a call of the runner.
	//
	// The queue forgets a failed bundle in the step that fails it. A host that
	// must not lose transactions therefore stores them before Observe returns. If
	// Observe is nil, the default, failed bundles are only logged, and
	// [OpenRunner] returns ErrInvalidConfig.
	Observe func(Observation)
	// CheckInvariants makes the runner check the queue after each step. If the
	// check fails, the runner stops with bundlequeue.ErrInvariant before it
	// acts on the step. The cost is proportional to the number of bundles in
	// the queue. The default is false.
	CheckInvariants bool
	// Invariants is an additional check by the host, for example of its
	// transaction pool. It runs after each step, on the runner's goroutine. If
	// it returns an error, the runner stops before it acts on the step. Nil,
	// the default, means no check.
	Invariants func() error
	// Metrics receives counts and durations. The zero value discards them.
	Metrics Metrics
	// Logger receives messages for operators. Nil means no log.
	Logger *slog.Logger
}

const (
	// holdSlots is the default of HoldTimeout, in slots.
	holdSlots = 5
	// alarmSlots is the default of DelayAlarm, in slots.
	alarmSlots = 20
)

// DefaultConfig returns the default configuration for a chain.
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

// Validate returns an error that names the first field out of range. The error
// wraps [ErrInvalidConfig] and, for Queue and Told, the error of their
// packages.
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
