package drive

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/submit"
)

// ErrJournal is wrapped if a step could not be recorded. The runner has then
// stopped without acting on the step. Open it again with [OpenRunner].
var ErrJournal = errors.New("builder: the log failed")

// ErrCorrupt is wrapped if a journal holds a record that no runner wrote.
var ErrCorrupt = errors.New("builder: the steps of the queue are corrupt")

// Journal stores the steps of a runner: see builder.Log.
type Journal interface {
	// Append adds records, all or none.
	Append(records ...[]byte) error
	// Replace replaces all records.
	Replace(records ...[]byte) error
	// Replay calls f with each record in order.
	Replay(f func(record []byte) error) error
}

// Durability is the part of a runner's configuration that lets it survive a
// crash at any instruction.
type Durability struct {
	// Journal records every step before the runner acts on it. No other code
	// may use it until the runner has stopped. The host closes it.
	Journal Journal
	// SnapshotEvery is the number of steps after which a snapshot replaces
	// them. It limits the size of the journal and the duration of a restart. 0
	// means 1024. A negative number means never: the host then replaces the
	// records itself, with those of [Runner.Snapshot].
	SnapshotEvery int
	// Follow is called with each recorded step, in order, before the runner acts
	// on it. [OpenRunner] calls it for the steps that it replays, so that a host
	// can derive its state from the steps, in the same way before and after a
	// crash. Later calls come from the runner's goroutine, and must return
	// quickly. After an error OpenRunner fails, or the runner stops. Nil, the
	// default, means no call.
	Follow func(bundlequeue.Event, []bundlequeue.Effect) error
}

const defaultSnapshotEvery = 1024

// The first byte of a record is its kind.
const (
	// Configuration of the queue as JSON, valid for the records after it.
	recordConfig = 'C'
	// Part of a snapshot that more parts follow.
	recordPart = 'P'
	// Last part of a snapshot. The joined parts hold the number of effects
	// before the snapshot (8 bytes, big-endian) and the queue's snapshot.
	recordSnapshot = 'S'
	// The queue's record of a step.
	recordStep = 'T'
)

// partSize is the size of a part of a snapshot, in bytes. Journals limit the
// size of a record.
const partSize = 1 << 20

// OpenRunner returns a runner that keeps its queue in a journal. If the journal
// is empty, the runner begins like one from [NewRunner]. Otherwise it continues
// from the last recorded step: root is ignored, and [Runner.Recovered] returns
// the block from which the host's feed must continue. cfg.Observe must not be
// nil, because it is the only way to take failed bundles back.
//
// After a recovery the runner first learns what happened on the chain. It
// accepts events, but builds and sends nothing until one of these happens:
//
//   - It imports a block, and the best block is at most three slots old.
//   - The host calls [Runner.Resume].
//   - Config.HoldTimeout has passed since Start.
//
// It then carries out the requests that were unanswered before the crash. It
// may send a package a second time, which is harmless.
//
// The runner first reports the effects of the last recorded step again, because
// the crash may have come before Config.Observe saw them. Effects of earlier steps
// are not reported again. The host recognizes what it saw by Observation.Number.
//
// Every field of cfg.Queue except the chain may differ from the last run.
// Recorded steps are replayed under the configuration that they were recorded
// under.
//
// OpenRunner returns ErrInvalidConfig if cfg or d is invalid, ErrJournal if the
// journal fails, ErrCorrupt if its records are invalid, and otherwise errors of
// the queue. After an error the journal is unchanged. If a recorded step is
// refused, the error names it; docs/operations.md lists the ways out.
func OpenRunner(cfg submit.Config, root jamq.Block, d Durability, builder Builder, submitter Submitter) (*Runner, error) {
	if d.Journal == nil {
		return nil, fmt.Errorf("%w: Durability.Journal is nil", submit.ErrInvalidConfig)
	}
	if cfg.Observe == nil {
		return nil, fmt.Errorf("%w: Observe is nil: failed bundles would be lost", submit.ErrInvalidConfig)
	}
	if d.SnapshotEvery == 0 {
		d.SnapshotEvery = defaultSnapshotEvery
	}
	r, err := newRunner(cfg, builder, submitter)
	if err != nil {
		return nil, err
	}
	r.durable = &d
	if err := r.replay(); err != nil {
		return nil, err
	}
	if r.queue != nil {
		r.recovered, r.repeating, r.held, r.health.Held = true, true, true, true
		return r, nil
	}
	if r.queue, err = bundlequeue.New(r.cfg.Queue, root); err != nil {
		return nil, err
	}
	return r, r.snapshot()
}

// queueConfig is the configuration that a queue is created from. The journal
// stores it before each snapshot.
type queueConfig struct{ Queue bundlequeue.Config }

func (r *Runner) queueConfig() queueConfig { return queueConfig{r.cfg.Queue} }

// replay rebuilds the queue from the journal. The queue stays nil if the
// journal is empty.
func (r *Runner) replay() error {
	before := r.queueConfig() // default without a recordConfig
	var snapshot []byte
	records := 0
	err := r.durable.Journal.Replay(func(record []byte) error {
		if records++; len(record) == 0 {
			return fmt.Errorf("%w: empty record", ErrCorrupt)
		}
		switch kind, body := record[0], record[1:]; {
		case kind == recordConfig:
			before = queueConfig{}
			if err := json.Unmarshal(body, &before); err != nil {
				return fmt.Errorf("%w: configuration: %w", ErrCorrupt, err)
			}
			return nil
		case kind == recordPart:
			snapshot = append(snapshot, body...)
			return nil
		case kind == recordSnapshot:
			whole := append(snapshot, body...)
			snapshot = nil // another one may follow
			return r.restore(before, whole)
		case kind == recordStep && r.queue != nil:
			return r.redo(body)
		default:
			return fmt.Errorf("%w: record of kind %q, want a snapshot or a step", ErrCorrupt, kind)
		}
	})
	switch {
	case errors.Is(err, ErrCorrupt):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", ErrJournal, err)
	case r.queue != nil:
		return r.reconfigure(before)
	case records > 0:
		return fmt.Errorf("%w: %d records without a complete snapshot", ErrCorrupt, records)
	}
	return nil
}

func (r *Runner) restore(cfg queueConfig, snapshot []byte) (err error) {
	const number = 8
	if len(snapshot) < number {
		return fmt.Errorf("%w: snapshot of %d bytes, want at least %d", ErrCorrupt, len(snapshot), number)
	}
	r.effects, r.replayed, r.steps = binary.BigEndian.Uint64(snapshot), nil, 0
	if r.queue, err = bundlequeue.Restore(cfg.Queue, snapshot[number:]); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

// reconfigure changes the queue's configuration from before to the current one.
func (r *Runner) reconfigure(before queueConfig) (err error) {
	if bytes.Equal(encodeConfig(before), encodeConfig(r.queueConfig())) {
		return nil
	}
	r.queue, err = bundlequeue.Restore(r.cfg.Queue, r.queue.AppendSnapshot(nil))
	if err != nil {
		return fmt.Errorf("the recorded queue under the new configuration: %w", err)
	}
	return nil
}

func encodeConfig(cfg queueConfig) []byte {
	raw, err := json.Marshal(cfg)
	if err != nil {
		panic(err) // impossible for numbers and strings
	}
	return raw
}

// redo repeats a recorded step. The effects of the last one are reported again,
// because the last run may have crashed before it reported them. It had
// reported those of a step before it recorded the next one.
func (r *Runner) redo(body []byte) error {
	now, ev, err := bundlequeue.DecodeRecord(body)
	if err != nil {
		return fmt.Errorf("%w: step %d after the snapshot: %w", ErrCorrupt, r.steps, err)
	}
	effects, err := r.queue.Step(now, ev)
	if err != nil {
		return fmt.Errorf("%w: step %d after the snapshot: the queue refuses an event that it accepted before: %w", ErrCorrupt, r.steps, err)
	}
	r.steps++
	if err := r.durable.follow(ev, effects); err != nil {
		return fmt.Errorf("%w: step %d after the snapshot: %w", ErrCorrupt, r.steps, err)
	}
	r.replayed = nil
	for _, e := range effects {
		r.effects++
		r.replayed = append(r.replayed, submit.Observation{Number: r.effects, At: now, Effect: e, Replayed: true})
	}
	return nil
}

// write records a step that the queue has accepted.
func (r *Runner) write(now time.Time, ev bundlequeue.Event) error {
	record, err := bundlequeue.AppendRecord([]byte{recordStep}, now, ev)
	if err == nil {
		err = r.durable.Journal.Append(record)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	r.steps++
	return nil
}

func (d *Durability) follow(ev bundlequeue.Event, effects []bundlequeue.Effect) error {
	if d.Follow == nil {
		return nil
	}
	return d.Follow(ev, effects)
}

// snapshot replaces the records of the journal with a snapshot. The caller has
// reported all effects so far.
func (r *Runner) snapshot() error {
	if err := r.durable.Journal.Replace(r.snapshotRecords()...); err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	r.steps = 0
	return nil
}

// snapshotRecords returns the records that have the present state.
func (r *Runner) snapshotRecords() [][]byte {
	snapshot := r.queue.AppendSnapshot(nil)
	snapshot = append(binary.BigEndian.AppendUint64(nil, r.effects), snapshot...)
	records := [][]byte{append([]byte{recordConfig}, encodeConfig(r.queueConfig())...)}
	for ; len(snapshot) > partSize; snapshot = snapshot[partSize:] {
		records = append(records, append([]byte{recordPart}, snapshot[:partSize]...))
	}
	return append(records, append([]byte{recordSnapshot}, snapshot...))
}

// Snapshot calls f with records that have the present state, between two steps.
// The host may then replace all records of the journal before the first later one
// with them. f runs on the runner's goroutine. Snapshot returns its error, and
// ErrStopped if the runner does not run. It returns ErrInvalidConfig for a runner
// without a journal.
func (r *Runner) Snapshot(ctx context.Context, f func(records [][]byte) error) error {
	if r.durable == nil {
		return fmt.Errorf("%w: the runner has no journal", submit.ErrInvalidConfig)
	}
	return r.do(ctx, func() error { return f(r.snapshotRecords()) })
}
