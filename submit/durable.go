package submit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
)

// ErrJournal is wrapped where a step could not be written down. The runner has stopped then, before it acted on the step: open it again.
var ErrJournal = errors.New("submit: journal failed")

// ErrCorrupt is wrapped where a journal holds what no runner wrote.
var ErrCorrupt = errors.New("submit: journal is corrupt")

// Journal keeps a runner's steps; package submit/journal has some.
type Journal interface {
	// Append adds records, all or none of which survive a crash before it returns; after it all do.
	Append(records ...[]byte) error
	// Replace puts records in the place of all that there are; a crash leaves the old or the new ones.
	Replace(records ...[]byte) error
	// Replay calls f with each record in order. The record is only valid during the call.
	Replay(f func(record []byte) error) error
}

// Durability is what a runner needs to survive a crash at any instruction.
type Durability[B any] struct {
	// Journal gets every step before the runner acts on it. It belongs to the runner alone until that has stopped; the host closes it.
	Journal Journal
	// Codec encodes the host's bundles.
	Codec bundlequeue.Codec[B]
	// SnapshotEvery is after how many steps a snapshot takes the place of the steps before it, which bounds the journal and the time that a
	// restart takes; 0 means 1024.
	SnapshotEvery int
}

const defaultSnapshotEvery = 1024

// A record begins with a byte that says what it is.
const (
	recordSnapshot = 'S' // how many effects there were before (8 bytes, big-endian), and the queue's snapshot
	recordStep     = 'T' // the queue's record of a step
)

// OpenRunner returns a runner that keeps its queue in a journal. With an empty journal it begins like [NewRunner]. Otherwise it goes on
// where the last one was killed: root is ignored, and [Runner.Recovered] says where the host's feed must go on.
//
// A runner that recovered first learns what happened meanwhile: until it is given a block that is at most three slots old, or
// [Runner.Resume] is called, or Config.HoldTimeout has passed since Start, it takes events but builds and sends nothing. Then it does what was not
// answered before the crash. A send may happen a second time, which is harmless; a failed bundle may be handed back a second time, which the
// host knows by its ticket.
//
// Errors wrap ErrInvalidConfig, ErrJournal, ErrCorrupt or the queue's.
func OpenRunner[B any](cfg Config, root jamq.Block, d Durability[B], builder Builder[B], submitter Submitter[B]) (*Runner[B], error) {
	if d.Journal == nil || d.Codec == nil || d.SnapshotEvery < 0 {
		return nil, fmt.Errorf("%w: Durability: Journal and Codec must be given, SnapshotEvery is %d, want at least 0", ErrInvalidConfig, d.SnapshotEvery)
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
		r.recovered, r.held = true, r.queue.Pending() > 0
		r.health.Held = r.held
		return r, nil
	}
	if r.queue, err = bundlequeue.New[B](cfg.Queue, root); err != nil {
		return nil, err
	}
	return r, r.snapshot()
}

// replay brings the queue to where the journal ends.
func (r *Runner[B]) replay() error {
	err := r.durable.Journal.Replay(func(record []byte) error {
		if len(record) == 0 {
			return fmt.Errorf("%w: an empty record", ErrCorrupt)
		}
		switch kind, body := record[0], record[1:]; {
		case kind == recordSnapshot:
			return r.restore(body)
		case kind == recordStep && r.queue != nil:
			return r.redo(body)
		default:
			return fmt.Errorf("%w: record %q where a snapshot or a step was expected", ErrCorrupt, kind)
		}
	})
	if err != nil && !errors.Is(err, ErrCorrupt) {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	return err
}

func (r *Runner[B]) restore(body []byte) (err error) {
	const number = 8
	if len(body) < number {
		return fmt.Errorf("%w: a snapshot of %d bytes", ErrCorrupt, len(body))
	}
	r.effects, r.replayed, r.steps = binary.BigEndian.Uint64(body), nil, 0
	if r.queue, err = bundlequeue.Restore(r.cfg.Queue, r.durable.Codec, body[number:]); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

// redo does a step again. Its effects are told again, since nobody knows whether they were.
func (r *Runner[B]) redo(body []byte) error {
	now, ev, err := bundlequeue.DecodeRecord(r.durable.Codec, body)
	if err != nil {
		return fmt.Errorf("%w: step %d after the snapshot: %w", ErrCorrupt, r.steps, err)
	}
	effects, err := r.queue.Step(now, ev)
	if err != nil {
		return fmt.Errorf("%w: step %d after the snapshot: the queue refuses what it took before: %w", ErrCorrupt, r.steps, err)
	}
	r.steps++
	for _, e := range effects {
		r.effects++
		r.replayed = append(r.replayed, Observation{Number: r.effects, At: now, Effect: e, Replayed: true})
	}
	return nil
}

// write writes a step down that the queue has taken.
func (r *Runner[B]) write(now time.Time, ev bundlequeue.Event) error {
	record, err := bundlequeue.AppendRecord([]byte{recordStep}, r.durable.Codec, now, ev)
	if err == nil {
		err = r.durable.Journal.Append(record)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	r.steps++
	return nil
}

// snapshot makes the journal short. All effects so far have been told.
func (r *Runner[B]) snapshot() error {
	record := binary.BigEndian.AppendUint64([]byte{recordSnapshot}, r.effects)
	if err := r.durable.Journal.Replace(bundlequeue.AppendSnapshot(record, r.durable.Codec, r.queue)); err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	r.steps = 0
	return nil
}
