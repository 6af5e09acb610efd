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

// chain is the rollup's chain as the log defines it: the blocks that are not final, the
// heads, and the calls of Apply, Undo and Final that the rollup still needs. It is
// computed from the records of the log alone, so a restart leads to the same chain.
type chain struct {
	log *slog.Logger

	mu      sync.Mutex
	final   block   // the last final block, or the genesis, without its body
	blocks  []block // the blocks after final, oldest first
	serial  uint64  // number of the last execution of a block, also of one that failed
	first   uint64  // number of the first block of the queue
	tracker *canonical.Tracker
	todo    []task         // calls of Apply and Undo that the worker must make, in order
	finals  []block        // blocks for which the worker must call Final, in order
	applied canonical.Head // the newest block that the rollup has applied and not undone
	events  []Event        // the newest events, for Watch
	noted   uint64         // number of the last event
	moved   chan struct{}  // closed and replaced when something changes: see wakeAll
}

// task is a call of Apply or Undo that the rollup has not made yet. The log is always
// ahead of the rollup: it adds or removes a block first, and the worker carries out the
// tasks afterwards, in order.
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

// begin sets the block on which all later ones build: the genesis or, after a restart from
// a checkpoint, the last final block in the checkpoint.
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

// commit sets a block's commitment, a hash over its parent, its contents and its serial
// number.
func commit(b *block, parent common.Hash) {
	// The serial number makes the commitments of two executions differ, even if the
	// same operations are executed on the same state again.
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

// follow updates the blocks and the heads after a step of the queue, which may have
// enqueued a block and may have changed the states of others. The result is true if blocks
// have failed and were removed.
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

// tell wakes the waiting goroutines if the heads have changed. The caller holds c.mu.
func (c *chain) tell(before canonical.Heads) {
	if c.heads() != before {
		c.wakeAll()
	}
}

// idle wakes the goroutines that wait, after Propose has returned ErrIdle.
func (c *chain) idle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Drain then checks again whether the rollup still has operations.
	c.wakeAll()
}

// settled reports whether nothing is left to do: every block is final, and the rollup has
// made all calls of Apply and Undo.
func (c *chain) settled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.blocks) == 0 && len(c.todo) == 0
}

// wakeAll wakes all goroutines that wait for a change of the chain. The caller holds
// c.mu.
func (c *chain) wakeAll() {
	close(c.moved)
	c.moved = make(chan struct{})
}

// heads returns the heads as users see them. The caller holds c.mu.
func (c *chain) heads() canonical.Heads {
	h := c.tracker.Heads()
	// Pending is the newest block that the rollup has applied. If a block fails, users see it
	// until Undo has returned, because only then do its operations wait again.
	h.Pending = c.applied
	for _, head := range []*canonical.Head{&h.Latest, &h.Safe, &h.Finalized} {
		// A user who reads a head expects the state of that block. The log may be ahead of the
		// rollup, so no head is shown before its block is applied.
		if head.Number > c.applied.Number {
			*head = c.applied
		}
	}
	return h
}

// extend adds a proposed block, and a task to apply it. The caller holds c.mu.
func (c *chain) extend(b block) {
	c.serial = b.serial
	c.blocks = append(c.blocks, b)
	c.todo = append(c.todo, task{apply, b, headOf(&b)})
	c.report(c.tracker.Executed(headOf(&b)))
}

// cut removes a block that no JAM chain can accumulate, and all later blocks, because they
// were executed on its state. It returns false if an earlier call has removed the block.
// The caller holds c.mu.
func (c *chain) cut(commitment common.Hash) bool {
	first := slices.IndexFunc(c.blocks, func(b block) bool { return b.commitment == commitment })
	// If several blocks fail together, the queue reports each of them. The call for the first
	// one has already removed the rest.
	if first < 0 {
		return false
	}
	for i, b := range slices.Backward(c.blocks[first:]) {
		before := &c.final
		if first+i > 0 {
			before = &c.blocks[first+i-1]
		}
		// The rollup has executed these blocks, so it must undo them, from the newest one back
		// to the one that failed.
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

// move updates a block whose bundle has changed its state. The caller holds c.mu.
func (c *chain) move(e bundlequeue.Changed) {
	i := slices.IndexFunc(c.blocks, func(b block) bool { return b.commitment == e.Commitment })
	if i < 0 {
		return // the block was removed with an earlier block
	}
	c.progress(i, Progress{State: e.To, Version: e.Version, Package: e.Package, Core: e.Core, At: e.At})
}

// progress records how far a block has come on JAM and moves the heads accordingly, for
// example the finalized head. The caller holds c.mu.
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

// settle moves the final blocks to the list finals. The caller holds c.mu.
func (c *chain) settle() {
	last := c.tracker.Heads().Finalized.Number
	for len(c.blocks) > 0 && c.blocks[0].Number <= last {
		b := c.blocks[0]
		// The worker calls Final for the blocks in this list.
		c.finals = append(c.finals, b)
		c.final, c.blocks = b, c.blocks[1:]
	}
	c.final.Body, c.final.raw = nil, nil
}

// report logs an error of the tracker that computes the heads.
func (c *chain) report(err error) {
	if err != nil {
		// Only a bug of this package causes this error, so no caller could handle it.
		c.log.Error("builder: a head could not be moved", "err", err)
	}
}

// next returns the next call of Apply or Undo that the worker must make, if any.
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

// nextFinal returns the oldest block for which the worker must still call Final, if
// any.
func (c *chain) nextFinal() (b block, some bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.finals) == 0 {
		return b, false
	}
	return c.finals[0], true
}

// finished removes the block that nextFinal has returned last.
func (c *chain) finished() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finals = c.finals[1:]
}

// open returns a block that is not final, counted from the oldest one: 0 selects the
// oldest block. The result some is false if there are fewer blocks.
func (c *chain) open(skip int) (b block, some bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if skip < len(c.blocks) {
		return c.blocks[skip], true
	}
	return b, false
}

// find looks up the block that a build needs, by its commitment. The result there is false
// if the block was removed or is final. applied is true if the rollup has applied the
// block. The channel moved is closed when either may have changed.
func (c *chain) find(commitment common.Hash) (b block, there, applied bool, moved <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.blocks, func(other block) bool { return other.commitment == commitment }); i >= 0 {
		b, there = c.blocks[i], true
	}
	return b, there, c.applied.Number >= b.Number, c.moved
}

// parent returns the newest block, on which the next one must be executed.
func (c *chain) parent() (b block, serial uint64, caughtUp bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// With open tasks, the rollup's state is not yet that of the newest block.
	return *c.head(), c.serial + 1, len(c.todo) == 0
}
