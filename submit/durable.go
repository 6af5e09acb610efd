package submit

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/bundlequeue/told"
)

// ErrJournal is wrapped if a step could not be written down. The runner has then stopped, before it
// acted on the step: open it again.
var ErrJournal = errors.New("submit: journal failed")

// ErrCorrupt is wrapped if a journal holds a record that no runner wrote.
var ErrCorrupt = errors.New("submit: journal is corrupt")

// Journal keeps a runner's steps; package submit/journal has some.
type Journal interface {
	// Append adds records, all or none of which survive a crash before it returns; after it all do.
	Append(records ...[]byte) error
	// Replace puts records in the place of all that there are; a crash leaves the old or the new
	// ones.
	Replace(records ...[]byte) error
	// Replay calls f with each record in order. The record is only valid during the call.
	Replay(f func(record []byte) error) error
}

// Durability is what a runner needs to survive a crash at any instruction.
type Durability[B any] struct {
	// Journal gets every step before the runner acts on it. It belongs to the runner alone until
	// that has stopped; the host closes it.
	Journal Journal
	// Codec encodes the host's bundles.
	Codec bundlequeue.Codec[B]
	// SnapshotEvery is after how many steps a snapshot replaces the steps before it. It bounds the
	// journal and the time that a restart takes; 0 means 1024.
	SnapshotEvery int
}

const defaultSnapshotEvery = 1024

// A record begins with a byte that says what it is.
const (
	recordConfig   = 'C' // the queue's configuration as JSON: that under which the steps were taken
	recordPart     = 'P' // a part of a snapshot, and more follow
	recordSnapshot = 'S' // its last part; together how many effects there were before (8 bytes, big-endian), and the queue's snapshot
	recordStep     = 'T' // the queue's record of a step
)

// partSize is how much of a snapshot goes into one record: journals bound those.
const partSize = 1 << 20

// OpenRunner returns a runner that keeps its queue in a journal. With an empty journal it begins
// like [NewRunner]. Otherwise it goes on where the last runner was killed: root is ignored, and
// [Runner.Recovered] says where the host's feed must go on. cfg.Observe must be given, because
// nothing else takes failed bundles back.
//
// A runner that recovered first learns what happened meanwhile: it takes events but builds and
// sends nothing until one of these:
//   - it is given a block that is at most three slots old;
//   - [Runner.Resume] is called;
//   - Config.HoldTimeout has passed since Start.
//
// Then it does what was not answered before the crash. A send may happen a second time, which is
// harmless. A failed bundle may be handed back a second time; the host knows it by its ticket.
//
// cfg.Queue may differ from before in everything but the chain: steps are replayed under the
// configuration under which they were taken.
//
// Errors wrap ErrInvalidConfig, ErrJournal, ErrCorrupt or the queue's.
func OpenRunner[B any](cfg Config, root jamq.Block, d Durability[B], builder Builder[B], submitter Submitter[B]) (*Runner[B], error) {
	if d.Journal == nil || d.Codec == nil || d.SnapshotEvery < 0 {
		return nil, fmt.Errorf("%w: Durability: Journal and Codec must be given, SnapshotEvery is %d, want at least 0", ErrInvalidConfig, d.SnapshotEvery)
	}
	if cfg.Observe == nil {
		return nil, fmt.Errorf("%w: Observe is nil: failed bundles would be lost", ErrInvalidConfig)
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
		r.recovered, r.held, r.health.Held = true, true, true
		return r, nil
	}
	if r.queue, err = newQueue[B](r.queueConfig(), root); err != nil {
		return nil, err
	}
	return r, r.snapshot()
}

// queueConfig is what a queue is made of. The journal keeps it beside the steps.
type queueConfig struct {
	Queue bundlequeue.Config
	Told  *told.Config
}

func (r *Runner[B]) queueConfig() queueConfig { return queueConfig{r.cfg.Queue, r.cfg.Told} }

// newQueue returns an empty queue.
func newQueue[B any](cfg queueConfig, root jamq.Block) (*bundlequeue.Queue[B], error) {
	if cfg.Told == nil {
		return bundlequeue.New[B](cfg.Queue, root)
	}
	evidence, err := told.NewEvidence(cfg.Queue.Spec, *cfg.Told)
	if err != nil {
		return nil, err
	}
	return bundlequeue.NewWith[B](cfg.Queue, evidence)
}

// restoreQueue makes a queue of a snapshot.
func restoreQueue[B any](cfg queueConfig, codec bundlequeue.Codec[B], snapshot []byte) (*bundlequeue.Queue[B], error) {
	if cfg.Told == nil {
		return bundlequeue.Restore(cfg.Queue, codec, snapshot)
	}
	return bundlequeue.RestoreWith(cfg.Queue, codec, snapshot, func(b []byte) (bundlequeue.Evidence, error) {
		return told.RestoreEvidence(cfg.Queue.Spec, *cfg.Told, b)
	})
}

// replay brings the queue to where the journal ends.
func (r *Runner[B]) replay() error {
	before := r.queueConfig() // unless the journal says otherwise
	var snapshot []byte
	records := 0
	err := r.durable.Journal.Replay(func(record []byte) error {
		if records++; len(record) == 0 {
			return fmt.Errorf("%w: an empty record", ErrCorrupt)
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
			snapshot = append(snapshot, body...)
			return r.restore(before, snapshot)
		case kind == recordStep && r.queue != nil:
			return r.redo(body)
		default:
			return fmt.Errorf("%w: record %q where a snapshot or a step was expected", ErrCorrupt, kind)
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
		return fmt.Errorf("%w: %d records, and no whole snapshot", ErrCorrupt, records)
	}
	return nil
}

func (r *Runner[B]) restore(cfg queueConfig, snapshot []byte) (err error) {
	const number = 8
	if len(snapshot) < number {
		return fmt.Errorf("%w: a snapshot of %d bytes", ErrCorrupt, len(snapshot))
	}
	r.effects, r.replayed, r.steps = binary.BigEndian.Uint64(snapshot), nil, 0
	if r.queue, err = restoreQueue(cfg, r.durable.Codec, snapshot[number:]); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

// reconfigure puts the queue under the configuration of now.
func (r *Runner[B]) reconfigure(before queueConfig) (err error) {
	if bytes.Equal(encodeConfig(before), encodeConfig(r.queueConfig())) {
		return nil
	}
	r.queue, err = restoreQueue(r.queueConfig(), r.durable.Codec, bundlequeue.AppendSnapshot(nil, r.durable.Codec, r.queue))
	return err
}

func encodeConfig(cfg queueConfig) []byte {
	raw, err := json.Marshal(cfg)
	if err != nil {
		panic(err) // numbers and texts can be encoded
	}
	return raw
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
	snapshot := bundlequeue.AppendSnapshot(binary.BigEndian.AppendUint64(nil, r.effects), r.durable.Codec, r.queue)
	records := [][]byte{append([]byte{recordConfig}, encodeConfig(r.queueConfig())...)}
	for ; len(snapshot) > partSize; snapshot = snapshot[partSize:] {
		records = append(records, append([]byte{recordPart}, snapshot[:partSize]...))
	}
	records = append(records, append([]byte{recordSnapshot}, snapshot...))
	if err := r.durable.Journal.Replace(records...); err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	r.steps = 0
	return nil
}
