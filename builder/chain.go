package builder

import (
	"encoding/binary"
	"log/slog"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/canonical"
)

// chain is the fold of the log: the blocks that are not final, the heads, and the calls
// that the rollup still needs to follow them. The same records always lead to the same
// chain.
type chain[B any] struct {
	log *slog.Logger

	mu      sync.Mutex
	final   Block[B]   // the last final block, or the genesis, without its body
	blocks  []Block[B] // those after it, oldest first
	serial  uint64     // of the last execution
	tracker *canonical.Tracker
	todo    []task[B] // in order
	moved   chan struct{}
}

// task is a call of the rollup that follows the log.
type task[B any] struct {
	kind  taskKind
	block Block[B]
}

type taskKind int

const (
	apply taskKind = iota
	undo
	finish
)

// begin sets the chain to its genesis, or to a checkpoint without blocks.
func (c *chain[B]) begin(final Block[B], serial uint64) {
	c.final, c.serial, c.blocks = final, serial, nil
	c.tracker = canonical.New(final.head(), 0)
	c.moved = make(chan struct{})
}

// genesis returns the block before the first one.
func genesis[B any](root common.Hash) Block[B] {
	return Block[B]{Root: root, commitment: crypto.Keccak256Hash([]byte("jamq builder genesis"), root[:])}
}

func (b *Block[B]) head() canonical.Head {
	return canonical.Head{Number: b.Number, Hash: b.commitment, Root: b.Root, Commitment: b.commitment}
}

func (b *Block[B]) item() canonical.Item {
	return canonical.Item{Number: b.Number, Commitment: b.commitment}
}

// commit sets the commitment of a block. The serial number makes it differ from
// that of every other execution, even of the same operations on the same state.
func (b *Block[B]) commit(parent common.Hash, body []byte) {
	serial := binary.BigEndian.AppendUint64(nil, b.serial)
	b.commitment = crypto.Keccak256Hash(parent[:], serial, b.Root[:], body)
}

// head returns the newest block. The caller holds c.mu.
func (c *chain[B]) head() *Block[B] {
	if n := len(c.blocks); n > 0 {
		return &c.blocks[n-1]
	}
	return &c.final
}

// follow moves the chain by a step of the queue: its event and its effects. It is
// the only way in which blocks come, go and become final.
func (c *chain[B]) follow(ev bundlequeue.Event, effects []bundlequeue.Effect) (undone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.tracker.Heads()
	if e, ok := ev.(bundlequeue.Enqueue[bundle[B]]); ok {
		c.extend(e.Bundle.block)
	}
	for _, effect := range effects {
		switch e := effect.(type) {
		case bundlequeue.Failed[bundle[B]]:
			undone = c.cut(e.Commitment) || undone
		case bundlequeue.Changed:
			c.move(e)
		}
	}
	if c.tracker.Heads() != before {
		close(c.moved)
		c.moved = make(chan struct{})
	}
	return undone
}

// extend adds an executed block.
func (c *chain[B]) extend(b Block[B]) {
	c.serial = b.serial
	c.blocks = append(c.blocks, b)
	c.todo = append(c.todo, task[B]{apply, b})
	c.report(c.tracker.Executed(b.head()))
}

// cut removes a failed block and all later ones, newest first, because they were
// executed on a state that will never exist. The queue hands the later ones back
// too; they are unknown by then.
func (c *chain[B]) cut(commitment common.Hash) bool {
	first := slices.IndexFunc(c.blocks, func(b Block[B]) bool { return b.commitment == commitment })
	if first < 0 {
		return false
	}
	for _, b := range slices.Backward(c.blocks[first:]) {
		c.todo = append(c.todo, task[B]{undo, b})
	}
	_, err := c.tracker.Fail(c.blocks[first].item())
	c.report(err)
	c.blocks = c.blocks[:first]
	return true
}

// move moves the heads by a bundle's change of state.
func (c *chain[B]) move(e bundlequeue.Changed) {
	i := slices.IndexFunc(c.blocks, func(b Block[B]) bool { return b.commitment == e.Commitment })
	if i < 0 {
		return // it was removed with an earlier one
	}
	switch {
	case e.To == bundlequeue.Finalized:
		c.raise(i, finalized)
	case e.To == bundlequeue.Accumulated:
		c.raise(i, accumulated)
	case e.From == bundlequeue.Accumulated && e.To != bundlequeue.FailedState:
		c.blocks[i].stage = executed
		_, err := c.tracker.Retract(c.blocks[i].item())
		c.report(err)
	}
}

// raise records that JAM has come further with a block.
func (c *chain[B]) raise(i int, to stage) {
	b := &c.blocks[i]
	b.stage = to
	var err error
	switch to {
	case accumulated:
		_, err = c.tracker.Accumulate(b.item())
	case finalized:
		_, _, err = c.tracker.Finalized(b.item())
	}
	c.report(err)
	c.settle()
}

// settle forgets the blocks that have become final.
func (c *chain[B]) settle() {
	last := c.tracker.Heads().Finalized.Number
	for len(c.blocks) > 0 && c.blocks[0].Number <= last {
		b := c.blocks[0]
		c.todo = append(c.todo, task[B]{finish, b})
		c.final, c.blocks = b, c.blocks[1:]
	}
	var none B
	c.final.Body = none
}

// report logs an error of the tracker, which a correct fold never gets.
func (c *chain[B]) report(err error) {
	if err != nil {
		c.log.Error("builder: a head could not be moved", "err", err)
	}
}

// next returns the first task, and whether there is one.
func (c *chain[B]) next() (t task[B], some bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.todo) == 0 {
		return t, false
	}
	return c.todo[0], true
}

// done removes the first task.
func (c *chain[B]) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.todo = c.todo[1:]
}

// parent returns the newest block, on which the next one is executed, and the serial
// number of that execution. It returns false if the rollup has not followed so far.
func (c *chain[B]) parent() (b Block[B], serial uint64, caughtUp bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *c.head(), c.serial + 1, len(c.todo) == 0
}
