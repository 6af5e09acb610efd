package builder

import (
	"encoding/binary"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/canonical"
)

// chain is the fold of the log: the blocks that are not final, the heads, and the calls
// that the rollup still needs to follow them. The same records always lead to the same
// chain.
type chain struct {
	log *slog.Logger

	mu      sync.Mutex
	final   block   // the last final block, or the genesis, without its body
	blocks  []block // those after it, oldest first
	serial  uint64  // of the last execution
	first   uint64  // number of the first block of the queue
	tracker *canonical.Tracker
	todo    []task         // apply and undo, in order
	finals  []block        // for which Final must be called, in order
	applied canonical.Head // the newest block that the rollup has applied
	events  []Event        // the newest ones
	noted   uint64         // number of the last one
	moved   chan struct{}  // closed when something changes
}

// task is a call of the rollup that follows the log.
type task struct {
	kind  taskKind
	block block
	after canonical.Head // the newest block of the rollup after apply or undo
}

type taskKind int

const (
	apply taskKind = iota
	undo
)

// begin sets the chain to its genesis, or to a checkpoint without blocks.
func (c *chain) begin(final block, serial uint64) {
	c.final, c.serial, c.blocks, c.applied = final, serial, nil, headOf(&final)
	c.tracker = canonical.New(headOf(&final))
	c.moved = make(chan struct{})
}

// genesis returns the block before the first one.
func genesis(number uint64, root common.Hash) block {
	return block{Number: number, Root: root, commitment: crypto.Keccak256Hash([]byte("jamq builder genesis"), root[:])}
}

func headOf(b *block) canonical.Head {
	return canonical.Head{Number: b.Number, Hash: b.commitment, Root: b.Root, Commitment: b.commitment}
}

func itemOf(b *block) canonical.Item {
	return canonical.Item{Number: b.Number, Commitment: b.commitment}
}

// commit sets the commitment of a block. The serial number makes it differ from
// that of every other execution, even of the same operations on the same state.
func commit(b *block, parent common.Hash) {
	serial := binary.BigEndian.AppendUint64(nil, b.serial)
	b.commitment = crypto.Keccak256Hash(parent[:], serial, b.Root[:], b.raw)
}

// head returns the newest block. The caller holds c.mu.
func (c *chain) head() *block {
	if n := len(c.blocks); n > 0 {
		return &c.blocks[n-1]
	}
	return &c.final
}

// follow moves the chain by a step of the queue: the block that the step has enqueued,
// if it has, and its effects. It is the only way in which blocks come, go and become
// final.
func (c *chain) follow(now time.Time, enqueued *block, effects []bundlequeue.Effect) (undone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.heads()
	c.note(now, effects)
	if enqueued != nil {
		c.extend(*enqueued)
	}
	for _, effect := range effects {
		switch e := effect.(type) {
		case bundlequeue.Failed:
			undone = c.cut(e.Commitment) || undone
		case bundlequeue.Changed:
			c.move(e)
		}
	}
	if c.tell(before); undone {
		c.wakeAll()
	}
	return undone
}

// tell wakes those that wait for other heads than before.
func (c *chain) tell(before canonical.Heads) {
	if c.heads() != before {
		c.wakeAll()
	}
}

// idle tells those that wait that the rollup has nothing to propose.
func (c *chain) idle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wakeAll()
}

// settled reports whether all blocks are final, and the rollup has followed them.
func (c *chain) settled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.blocks) == 0 && len(c.todo) == 0
}

// wakeAll wakes all that wait for a change. The caller holds c.mu.
func (c *chain) wakeAll() {
	close(c.moved)
	c.moved = make(chan struct{})
}

// heads returns the heads. Pending is the newest block that the rollup has applied and
// has not undone yet, so that the operations of a block that left the heads wait in the
// rollup again. The others are not above it: a block that a head names is in the state of
// the rollup.
func (c *chain) heads() canonical.Heads {
	h := c.tracker.Heads()
	h.Pending = c.applied
	for _, head := range []*canonical.Head{&h.Latest, &h.Safe, &h.Finalized} {
		if head.Number > c.applied.Number {
			*head = c.applied
		}
	}
	return h
}

// extend adds an executed block.
func (c *chain) extend(b block) {
	c.serial = b.serial
	c.blocks = append(c.blocks, b)
	c.todo = append(c.todo, task{apply, b, headOf(&b)})
	c.report(c.tracker.Executed(headOf(&b)))
}

// cut removes a failed block and all later ones, newest first, because they were
// executed on a state that will never exist. The queue hands the later ones back
// too; they are unknown by then.
func (c *chain) cut(commitment common.Hash) bool {
	first := slices.IndexFunc(c.blocks, func(b block) bool { return b.commitment == commitment })
	if first < 0 {
		return false
	}
	for i, b := range slices.Backward(c.blocks[first:]) {
		before := &c.final
		if first+i > 0 {
			before = &c.blocks[first+i-1]
		}
		c.todo = append(c.todo, task{undo, b, headOf(before)})
	}
	_, err := c.tracker.Fail(itemOf(&c.blocks[first]))
	c.report(err)
	c.blocks = c.blocks[:first]
	return true
}

// cutAll removes all blocks that are not final.
func (c *chain) cutAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.blocks) > 0 {
		c.cut(c.blocks[0].commitment)
	}
}

// move moves the heads by a bundle's change of state.
func (c *chain) move(e bundlequeue.Changed) {
	i := slices.IndexFunc(c.blocks, func(b block) bool { return b.commitment == e.Commitment })
	if i < 0 {
		return // it was removed with an earlier one
	}
	c.progress(i, Progress{State: e.To, Version: e.Version, Package: e.Package, Core: e.Core, At: e.At})
}

// progress moves the heads by the progress of a block.
func (c *chain) progress(i int, to Progress) {
	b := &c.blocks[i]
	was := b.Progress.State
	b.Progress = to
	var err error
	switch {
	case to.State == bundlequeue.Finalized:
		_, _, err = c.tracker.Finalized(itemOf(b))
		c.settle()
	case to.State == bundlequeue.Accumulated:
		_, err = c.tracker.Accumulate(itemOf(b))
	case was == bundlequeue.Accumulated && to.State != bundlequeue.FailedState:
		_, err = c.tracker.Retract(itemOf(b))
	}
	c.report(err)
}

// settle forgets the blocks that have become final.
func (c *chain) settle() {
	last := c.tracker.Heads().Finalized.Number
	for len(c.blocks) > 0 && c.blocks[0].Number <= last {
		b := c.blocks[0]
		c.finals = append(c.finals, b)
		c.final, c.blocks = b, c.blocks[1:]
	}
	c.final.Body, c.final.raw = nil, nil
}

// report logs an error of the tracker, which a correct fold never gets.
func (c *chain) report(err error) {
	if err != nil {
		c.log.Error("builder: a head could not be moved", "err", err)
	}
}

// next returns the first task, and whether there is one.
func (c *chain) next() (t task, some bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.todo) == 0 {
		return t, false
	}
	return c.todo[0], true
}

// done removes the first task, which the rollup has carried out.
func (c *chain) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applied, c.todo = c.todo[0].after, c.todo[1:]
	c.wakeAll()
}

// nextFinal returns the first block for which Final must be called.
func (c *chain) nextFinal() (b block, some bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.finals) == 0 {
		return b, false
	}
	return c.finals[0], true
}

// finished removes the first of them.
func (c *chain) finished() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finals = c.finals[1:]
}

// find returns the block with a commitment, whether it is in the chain, and whether the
// rollup has applied it. moved is closed when this may change.
func (c *chain) find(commitment common.Hash) (b block, there, applied bool, moved <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.blocks, func(other block) bool { return other.commitment == commitment }); i >= 0 {
		b, there = c.blocks[i], true
	}
	return b, there, c.applied.Number >= b.Number, c.moved
}

// parent returns the newest block, on which the next one is executed, and the serial
// number of that execution. It returns false if the rollup has not followed so far.
func (c *chain) parent() (b block, serial uint64, caughtUp bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *c.head(), c.serial + 1, len(c.todo) == 0
}
