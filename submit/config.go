package submit

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
)

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

// Config is the configuration of the part of a builder that drives the queue. Start
// from [DefaultConfig].
type Config struct {
	// Queue configures the queue.
	Queue bundlequeue.Config
	// Window is the part of each slot in which packages are sent.
	Window Window
	// BuildTimeout limits one call of the builder. It must be positive. The
	// default is H slots: a package that takes longer has no recent anchor when
	// it is ready.
	BuildTimeout time.Duration
	// SubmitTimeout limits one call of the submitter. It must be positive. The
	// default is one slot.
	SubmitTimeout time.Duration
	// HoldTimeout is the longest time that a builder waits for newer blocks after
	// a recovery, before it builds and sends. It must first learn what happened on
	// the chain. The wait ends earlier with a best block that is at most three slots
	// old, or with builder.Builder.Resume. It must be positive. The default is 5
	// slots.
	HoldTimeout time.Duration
	// DelayAlarm is how long the first bundle without a submitted package may
	// wait before Health.Delayed is true. It must be positive. The default is
	// 20 slots. Each lost package delays a bundle by about H slots.
	DelayAlarm time.Duration
	// Observe is called with every effect, in order, after the queue has
	// processed the event and the step is in the log. It runs on the goroutine of
	// the queue: it must return quickly, and it must not wait for a call of the
	// builder. Nil, the default, means no call.
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
// wraps [ErrInvalidConfig] and, for Queue, bundlequeue.ErrInvalidConfig.
func (c *Config) Validate() error {
	if err := c.Queue.Validate(); err != nil {
		return fmt.Errorf("%w: Queue: %w", ErrInvalidConfig, err)
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
