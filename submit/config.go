package submit

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
)

// Builder makes packages. Its methods are called from several goroutines at once.
type Builder[B any] interface {
	// Build makes a package as the request says. The ticket is the runner's business. An error is retried after a
	// back-off. ctx ends with Config.BuildTimeout or the runner.
	Build(ctx context.Context, request bundlequeue.Build[B]) (Package[B], error)
}

// Package is what a [Builder] made.
type Package[B any] struct {
	// Hash is the hash of the package's bytes.
	Hash jamq.PackageHash
	// Context is the refine context in them.
	Context jamq.RefineContext
	// Bundle is what the Submitter will get; it holds the bytes.
	Bundle B
}

// Submitter sends packages. Its methods are called from several goroutines at once.
type Submitter[B any] interface {
	// Submit gives a package to a guarantor of request.Core; another one for each request.Attempt. An error is retried
	// after a back-off; [WithClass] says what else it calls for. ctx ends with Config.SubmitTimeout or the runner.
	Submit(ctx context.Context, request bundlequeue.Send[B]) error
}

// Observation is an effect of the queue, told after the fact.
type Observation struct {
	// Number counts the effects of a queue from 1, in order and without a gap, across restarts of a durable runner. 0: an effect that was
	// told before a restart and is carried out again after it.
	Number uint64
	// At is when the queue took the event.
	At time.Time
	// Effect is what the queue said.
	Effect bundlequeue.Effect
	// Replayed says that this is told after a restart, for a step from before it. The host may have heard it already: see Number.
	Replayed bool
}

// Config holds what a runner needs besides the host's interfaces. Begin with [DefaultConfig].
type Config struct {
	// Queue configures the queue.
	Queue bundlequeue.Config
	// Window says when packages are sent.
	Window Window
	// BuildTimeout and SubmitTimeout bound one call each; 10 s and one slot by default, positive.
	BuildTimeout, SubmitTimeout time.Duration
	// HoldTimeout is how long a runner that has just recovered waits for newer blocks before it acts: see [OpenRunner]; five slots by
	// default, positive.
	HoldTimeout time.Duration
	// Observe is told every effect, in order, after the queue has taken the event and, with a journal, written it down. It runs on the
	// runner's goroutine: it should be quick and must not call the runner and wait. A failed bundle counts as taken back when Observe
	// returns, so a host that must lose nothing keeps its transactions here. Nil by default: then failed bundles are only logged.
	Observe func(Observation)
	// Metrics is told what to count; the zero value counts nothing.
	Metrics Metrics
	// Logger gets what an operator should know. Nil is silent.
	Logger *slog.Logger
}

// holdSlots is HoldTimeout by default.
const holdSlots = 5

// DefaultConfig returns the defaults for a chain.
func DefaultConfig(spec jamq.ChainSpec) Config {
	return Config{
		Queue:         bundlequeue.DefaultConfig(spec),
		Window:        DefaultWindow(spec),
		BuildTimeout:  10 * time.Second,
		SubmitTimeout: spec.SlotDuration,
		HoldTimeout:   holdSlots * spec.SlotDuration,
	}
}

// Validate names the first field that is out of range. The error wraps [ErrInvalidConfig] or the queue's.
func (c *Config) Validate() error {
	if err := c.Queue.Validate(); err != nil {
		return fmt.Errorf("%w: Queue: %w", ErrInvalidConfig, err)
	}
	if err := c.Window.Validate(); err != nil {
		return err
	}
	if c.BuildTimeout <= 0 || c.SubmitTimeout <= 0 || c.HoldTimeout <= 0 {
		return fmt.Errorf("%w: BuildTimeout %v, SubmitTimeout %v, HoldTimeout %v: want positive", ErrInvalidConfig, c.BuildTimeout, c.SubmitTimeout, c.HoldTimeout)
	}
	return nil
}
