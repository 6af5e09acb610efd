package builder

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/submit"
)

// recover reads the log when a builder is opened, and brings the queue, the chain and the
// rollup to the state that they had after its last record. An empty log begins with the
// genesis.
func (e *engine) recover(ctx context.Context) error {
	first, err := e.firstRecord(ctx)
	if err != nil {
		return err
	}
	if first == nil {
		if err := e.beginAtGenesis(ctx); err != nil {
			return err
		}
		return e.recoverOperations(ctx)
	}
	if err := e.continueLog(ctx); err != nil {
		return err
	}
	if e.shared == nil {
		return e.takeLead(ctx)
	}
	// Another process may lead the log. takeLead completes the recovery when this
	// process leads.
	e.note(func(h *Health) { h.Follows = true })
	return nil
}

// beginAtGenesis begins an empty log with the genesis of the rollup.
func (e *engine) beginAtGenesis(ctx context.Context) error {
	root, err := e.root()
	if err != nil {
		return err
	}
	final := genesis(e.cfg.Queue.FirstNumber-1, root)
	if err := e.checkReceived(ctx, final.Number, true); err != nil {
		return err
	}
	if e.shared != nil && e.shared.Promoted() {
		e.startDoubt()
	}
	e.chain.begin(final, 0)
	return e.beginLog(ctx, &checkpoint{final: final}, nil)
}

// takeLead completes the recovery of a builder that now leads its log.
func (e *engine) takeLead(ctx context.Context) error {
	e.hold(true)
	if err := e.doubtIfPromoted(); err != nil {
		return err
	}
	if err := e.reconfigure(e.tail.config); err != nil {
		return err
	}
	if err := e.checkReceived(ctx, e.chain.head().Number, false); err != nil && !e.cfg.NewChain {
		return err
	}
	if err := e.recoverOperations(ctx); err != nil || !e.cfg.NewChain {
		return err
	}
	return e.leaveChain(ctx)
}

// recoverOperations tells the rollup that it may accept operations from now on.
func (e *engine) recoverOperations(ctx context.Context) error {
	if err := guard(func() error { return e.host.recovered(ctx, e.save) }); err != nil {
		return err
	}
	if e.chain.final.Number >= e.chain.first {
		e.trust.earned.Store(true)
	}
	e.trust.lost = 0
	e.tail = nil
	e.note(func(h *Health) { h.Follows = false })
	close(e.leads)
	return nil
}

// recovered returns what Network.Follow needs to begin.
func (e *engine) recovered() submit.Recovery {
	found := submit.Recovery{Finalized: e.queue.Finalized(), Best: e.queue.Best(), Logger: e.log}
	for _, info := range e.queue.Infos() {
		for _, v := range info.Versions {
			// This package was sent before the restart, and its block is not final. A new feed
			// knows no packages, so it must learn about this one.
			if v.Attempts > 0 && info.State != bundlequeue.Finalized {
				found.Out = append(found.Out, submit.Out{
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

// beginLog replaces the content of the log by a checkpoint with a new queue.
func (e *engine) beginLog(ctx context.Context, c *checkpoint, state [][]byte) (err error) {
	var root jamq.Block
	if err := guard(func() (err error) { root, err = e.network.Root(ctx); return err }); err != nil {
		return err
	}
	c.first = c.final.Number + 1
	e.beginAt(c.first)
	if e.queue, err = bundlequeue.New(e.cfg.Queue, root); err != nil {
		return err
	}
	e.hold(e.doubt.lost)
	c.config, c.doubted = encodeConfig(&e.cfg.Queue), e.doubt.lost
	// state holds the records of Checkpointer.Checkpoint; it is nil at the genesis.
	return e.records.end(checkpointRecords(c, state, e.queue.AppendSnapshot(nil)))
}

// beginAt sets the number of the first block that the rollup ever makes. The log has this
// number; the one in Config.Queue is used only to begin an empty log.
func (e *engine) beginAt(first uint64) { e.chain.first, e.cfg.Queue.FirstNumber = first, first }

// hold sets whether the builder holds back packages after a restart.
func (e *engine) hold(restarted bool) {
	// Newer JAM blocks must first show what has happened in the meantime: see
	// Config.HoldTimeout.
	e.repeating, e.requests.held = restarted, restarted
	e.note(func(h *Health) { h.Held = restarted })
}

func encodeConfig(cfg *bundlequeue.Config) []byte {
	raw, err := json.Marshal(cfg)
	if err != nil {
		panic(err) // impossible for numbers and strings
	}
	return raw
}

// continueLog recovers from a log that is not empty.
func (e *engine) continueLog(ctx context.Context) error {
	e.tail = &replay{engine: e, ctx: ctx, start: new(checkpoint)}
	if err := e.tail.run(); err != nil {
		return err
	}
	e.beginAt(e.tail.start.first)
	return nil
}

// reconfigure applies this run's configuration to the queue, and writes it to the log.
func (e *engine) reconfigure(before []byte) error {
	raw := encodeConfig(&e.cfg.Queue)
	if bytes.Equal(before, raw) {
		return nil
	}
	if err := e.configure(raw); err != nil {
		return fmt.Errorf("%w: the queue of the log does not continue with it: %w", ErrInvalidConfig, err)
	}
	// A restart repeats each step under the configuration that the step was made with,
	// so this record must come before the steps of this run.
	return e.records.append(append([]byte{recordConfig}, raw...))
}

// configure makes the queue continue with the configuration in a record of the log. The
// error wraps ErrCorrupt if the record cannot be decoded.
func (e *engine) configure(raw []byte) (err error) {
	var cfg bundlequeue.Config
	if err := json.Unmarshal(raw, &cfg); err != nil {
		return fmt.Errorf("%w: the configuration of the queue: %w", ErrCorrupt, err)
	}
	e.queue, err = bundlequeue.Restore(cfg, e.queue.AppendSnapshot(nil))
	return err
}

// root returns the rollup's root. The only error is a panic of Root.
func (e *engine) root() (root common.Hash, err error) {
	err = e.calls.make(context.Background(), "Rollup.Root", func() error { root = e.host.root(); return nil })
	return root, err
}

// leaveChain carries out Config.NewChain: it undoes all blocks that are not final.
func (e *engine) leaveChain(ctx context.Context) error {
	// openEngine has checked that the rollup is a Checkpointer.
	c := e.host.optional().(Checkpointer)

	e.records.begin() // the records that the rollup appends meanwhile stay
	defer func() { _ = e.records.end(nil) }()
	e.chain.cutAll()
	if err := e.catchUp(ctx); err != nil {
		return err
	}
	var state [][]byte
	if err := guard(func() (err error) { state, err = c.Checkpoint(ctx); return err }); err != nil {
		return err
	}
	start := e.chain.checkpoint()
	start.made = true
	if err := e.beginLog(ctx, start, state); err != nil {
		return err
	}
	e.prune(ctx)
	return nil
}

// replay reads the log, while Open recovers and while Run follows another process. It
// repeats for each record the effects that the record had in the process that wrote it.
type replay struct {
	*engine
	ctx   context.Context
	start *checkpoint // the first record

	read   int      // number of records read so far
	state  [][]byte // records of the rollup in the checkpoint
	queue  []byte   // snapshot of the queue in the checkpoint
	config []byte   // configuration of the queue for the next step, as JSON
}

// run reads the whole log as it is now.
func (r *replay) run() error {
	var cause error // kept here because the log may wrap the error of its callback
	err := r.records.log.Replay(func(record []byte) error {
		cause = r.again(record)
		return cause
	})
	switch {
	case cause != nil:
		return cause
	case err != nil:
		return fmt.Errorf("%w: %w", ErrLog, err)
	case r.read < 1+r.start.records+r.start.parts:
		return fmt.Errorf("%w: it ends in its checkpoint", ErrCorrupt)
	}
	return nil
}

// again processes the next record of the log.
func (r *replay) again(record []byte) error {
	if len(record) == 0 {
		return fmt.Errorf("%w: an empty record", ErrCorrupt)
	}
	kind, body := record[0], record[1:]
	i := r.read
	r.read++
	states, parts := 1+r.start.records, 1+r.start.records+r.start.parts
	// A log begins with the records of a checkpoint, whose number the first record contains.
	// They are collected until all are there. Each later record is a change that happened
	// after the checkpoint.
	if i < parts {
		r.records.covered += weight(record)
	}
	switch {
	case i == 0:
		return r.begin(kind, body)
	case i < states && kind == recordState:
		r.state = append(r.state, bytes.Clone(body))
	case i >= states && i < parts && kind == recordPart:
		r.queue = append(r.queue, body...)
	case i < parts:
		return fmt.Errorf("%w: a record of kind %q in a checkpoint", ErrCorrupt, kind)
	default:
		r.records.size += weight(record)
		return r.redo(kind, body)
	}
	if r.read == parts {
		return r.restore()
	}
	return nil
}

// begin decodes the first record of the log.
func (r *replay) begin(kind byte, body []byte) (err error) {
	if kind != recordCheckpoint {
		return fmt.Errorf("%w: it begins with a record of kind %q", ErrCorrupt, kind)
	}
	// If the log is shared, this record may be a newer checkpoint than the one that
	// firstRecord has read, because the leader may have replaced the log in between.
	r.start, err = r.readCheckpoint(body)
	return err
}

// redo repeats the consequences of a record that follows the checkpoint.
func (r *replay) redo(kind byte, body []byte) error {
	switch kind {
	case recordChange:
		return guard(func() error { return r.host.replay(r.ctx, bytes.Clone(body)) })
	case recordConfig:
		r.config = bytes.Clone(body)
		return r.configure(body)
	case recordStep:
		return r.stepAgain(body)
	case recordMark:
		return r.mark()
	case recordDoubt, recordTrust:
		r.doubt.set(kind == recordDoubt)
		return nil
	}
	return fmt.Errorf("%w: a record of kind %q", ErrCorrupt, kind)
}

// stepAgain repeats a step of the queue, and its consequences in chain and rollup.
func (r *replay) stepAgain(body []byte) error {
	now, ev, err := bundlequeue.DecodeRecord(body)
	if err != nil {
		return fmt.Errorf("%w: record %d: %w", ErrCorrupt, r.read, err)
	}
	effects, err := r.engine.queue.Step(now, ev)
	if err != nil {
		return fmt.Errorf("%w: record %d: the queue refuses an event that it accepted before: %w", ErrCorrupt, r.read, err)
	}
	if err := r.follow(now, ev, effects); err != nil {
		return fmt.Errorf("%w: record %d: %w", ErrCorrupt, r.read, err)
	}
	return r.catchUp(r.ctx)
}

// restore sets the queue, the chain and the rollup to the state of the checkpoint.
func (r *replay) restore() error {
	r.config = r.start.config
	r.doubt.set(r.start.doubted)
	var cfg bundlequeue.Config
	err := json.Unmarshal(r.config, &cfg)
	if err == nil {
		r.engine.queue, err = bundlequeue.Restore(cfg, r.queue)
	}
	if err != nil {
		return fmt.Errorf("%w: the queue of its checkpoint: %w", ErrCorrupt, err)
	}
	want := r.chain.restore(r.start)
	if r.start.made {
		c, ok := r.host.optional().(Checkpointer)
		if !ok {
			return fmt.Errorf("%w: the log has a checkpoint, and the rollup is no Checkpointer", ErrOtherRollup)
		}
		if err := guard(func() error { return c.Restore(r.ctx, r.state) }); err != nil {
			return fmt.Errorf("builder: restore a checkpoint: %w", err)
		}
	}
	// The root shows whether the rollup is in the state that it had when the checkpoint
	// was made.
	have, err := r.root()
	switch {
	case err != nil || have == want:
		return err
	case !r.start.made:
		return fmt.Errorf("%w: the genesis has root %s, want %s", ErrOtherRollup, have, want)
	case len(r.state) == 0:
		return fmt.Errorf("%w: the last checkpoint has no records, because Checkpoint returned none, so the rollup must find the state on its disk: have %s, want %s", ErrDiverged, have, want)
	}
	return fmt.Errorf("%w: Restore of the last checkpoint does not lead to the state that Checkpoint had: have %s, want %s", ErrDiverged, have, want)
}

// catchUp calls the rollup until it has followed the chain.
func (e *engine) catchUp(ctx context.Context) error {
	for t, some := e.chain.next(); some; t, some = e.chain.next() {
		// Unlike the worker, this does not repeat a call that has failed: Open or Run
		// returns the error.
		if err := e.carry(ctx, t); err != nil {
			return fmt.Errorf("builder: block %d: %w", t.block.Number, err)
		}
		e.chain.done()
	}
	for block, some := e.chain.nextFinal(); some; block, some = e.chain.nextFinal() {
		if err := e.callFinal(ctx, block); err != nil {
			return fmt.Errorf("builder: block %d is final: %w", block.Number, err)
		}
		e.chain.finished()
	}
	return nil
}
