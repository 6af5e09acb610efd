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
	// Queue configures the queue of bundles. Queue.FirstNumber is the number of the first
	// block if the log is empty, and is at least 1. If the log of a rollup was lost or
	// has an old format, the rollup continues with the number after its last block. All
	// fields except Spec may differ from those of the last run, because the log records
	// the configuration of each step.
	Queue bundlequeue.Config
	// Window is the part of each slot in which packages are sent.
	Window Window
	// BuildTimeout is the maximum time for the calls of Payload and Pack for one package. It
	// must be positive. The default is H slots, because the anchor of a package that takes
	// longer is too old when the package is ready.
	BuildTimeout time.Duration
	// SendTimeout is the maximum duration of one call of Network.Send. It must be positive. The
	// default is one slot.
	SendTimeout time.Duration
	// HoldTimeout is how long a builder waits after a restart, at most, before it builds and
	// sends packages. It waits because newer JAM blocks must first show what has happened in
	// the meantime. The wait ends earlier when the best block is at most three slots old, or
	// with [Builder.Resume]. HoldTimeout must be positive. The default is 5 slots.
	HoldTimeout time.Duration
	// DelayAlarm is how long the first bundle without a submitted package may wait before
	// Health.Delayed becomes true. It must be positive. The default is 20 slots; for
	// comparison, each lost package delays a bundle by about H slots.
	DelayAlarm time.Duration
	// CheckpointEvery is the number of records in the log after which the builder replaces them
	// by a checkpoint, if the rollup is a [Checkpointer]. It limits the size of the log and the
	// duration of a restart. A record counts once more for each 16 KiB of its size. If the last
	// checkpoint itself had more records, for example because many operations wait, the builder
	// waits for that number instead. CheckpointEvery must be positive. The default is 4096,
	// which is about 64 MiB of large records.
	CheckpointEvery int
	// Retry is how long the builder waits before it repeats a call of the rollup that has failed.
	// It must be positive. The default is a second.
	Retry time.Duration
	// NewChain tells Open that the JAM chain of the log has ended, so that none of the packages
	// that were sent to it will ever be accumulated. It is meant for simulated chains that end
	// with their process. If the chain continues, operations are executed twice.
	//
	// With NewChain, Open undoes all blocks that are not final and begins the log again. The
	// operations of these blocks are executed again, and readers of Watch get no event about
	// the blocks. The rollup must be a [Checkpointer].
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
