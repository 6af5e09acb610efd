package builder

import (
	"log/slog"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/fields"
)

// Config is the configuration of a builder. Start from [DefaultConfig].
type Config struct {
	// Queue configures the queue of bundles. Queue.FirstNumber is the number of the first block if
	// the log is empty, and at least 1. A rollup whose log was lost or has an old format continues
	// with the number after its last block. Except for the chain, all other fields may differ from
	// those of the last run, because the log contains the configuration of each step.
	Queue bundlequeue.Config
	// Window is the part of each slot in which packages are sent.
	Window Window
	// BuildTimeout is the maximum time for the calls of Payload and Pack for one package. It must
	// be positive. The default is H slots, because a package that takes longer has no recent anchor
	// when it is ready.
	BuildTimeout time.Duration
	// SendTimeout is the maximum duration of one call of Network.Send. It must be positive. The
	// default is one slot.
	SendTimeout time.Duration
	// HoldTimeout is how long a builder waits after a restart, at most, before it builds and sends
	// packages, because it must first learn from newer JAM blocks what has happened in the
	// meantime. The wait ends earlier with a best block that is at most three slots old, or with
	// [Builder.Resume]. HoldTimeout must be positive. The default is 5 slots.
	HoldTimeout time.Duration
	// DelayAlarm is how long the first bundle without a submitted package may wait before
	// Health.Delayed is true. It must be positive. The default is 20 slots; each lost package
	// delays a bundle by about H slots.
	DelayAlarm time.Duration
	// CheckpointEvery is the number of records in the log after which the builder replaces them by
	// a checkpoint, if the rollup is a [Checkpointer]. It limits the size of the log and the
	// duration of a restart. A record counts once more for each 16 KiB that it has. If the last
	// checkpoint itself had more records, for example because many operations wait, the builder
	// waits for as many. CheckpointEvery must be positive. The default is 4096, which is about 64
	// MiB of large records.
	CheckpointEvery int
	// Retry is how long the builder waits before it repeats a call of the rollup that has failed.
	// It must be positive. The default is a second.
	Retry time.Duration
	// NewChain is set if the JAM chain of the log has ended, so that no package that was sent to it
	// is ever accumulated. It is meant for simulated chains that end with their process. On a chain
	// that goes on, operations would be executed twice.
	//
	// With NewChain, Open undoes all blocks that are not final and begins the log again. The
	// operations of these blocks are executed again, and readers of Watch get no event about the
	// blocks. The rollup must be a [Checkpointer].
	NewChain bool
	// CheckInvariants makes the builder check the queue after each step. If the check fails, Run
	// ends with bundlequeue.ErrInvariant before the step is written to the log. The cost is
	// proportional to the number of bundles in the queue. The default is false.
	CheckInvariants bool
	// Invariants is an additional check by the host, for example of its transaction pool. The
	// builder calls it after each step of the queue, before the step is written to the log. An
	// error ends Run. The queue waits until Invariants returns. Nil, the default, means no check.
	Invariants func() error
	// Metrics receives counts and durations. The zero value discards them.
	Metrics jamq.Metrics
	// Logger receives messages for operators. Nil means none.
	Logger *slog.Logger
}

// DefaultConfig returns the default configuration for a JAM chain.
func DefaultConfig(spec jamq.ChainSpec) Config {
	const (
		holdSlots  = 5
		alarmSlots = 20
		records    = 4096
	)
	return Config{
		Queue:           bundlequeue.DefaultConfig(spec),
		Window:          DefaultWindow(spec),
		BuildTimeout:    time.Duration(spec.RecentHistory) * spec.SlotDuration,
		SendTimeout:     spec.SlotDuration,
		HoldTimeout:     holdSlots * spec.SlotDuration,
		DelayAlarm:      alarmSlots * spec.SlotDuration,
		CheckpointEvery: records,
		Retry:           time.Second,
	}
}

// Validate returns an error that names each field whose value is out of range. The error wraps
// [ErrInvalidConfig] and, for the field Queue, bundlequeue.ErrInvalidConfig.
func (c *Config) Validate() error {
	var wrong fields.Errors
	wrong.AddPart("Queue", c.Queue.Validate())
	c.Window.validate(&wrong)
	fields.Positive(&wrong, "BuildTimeout", c.BuildTimeout)
	fields.Positive(&wrong, "SendTimeout", c.SendTimeout)
	fields.Positive(&wrong, "HoldTimeout", c.HoldTimeout)
	fields.Positive(&wrong, "DelayAlarm", c.DelayAlarm)
	fields.Positive(&wrong, "Retry", c.Retry)
	fields.Positive(&wrong, "CheckpointEvery", c.CheckpointEvery)
	fields.Positive(&wrong, "Queue.FirstNumber", c.Queue.FirstNumber)
	return wrong.Wrap(ErrInvalidConfig)
}
