package jamtest_test

import (
	"errors"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/jamtest"
)

// severalBuilder is one builder among several: a queue, and the loop around it of examples/minimal.
type severalBuilder struct {
	*several
	index int
	// queue has the builder's own blocks since base. It is nil before the builder's first slot, and
	// outside of its turn.
	queue *bundlequeue.Queue
	base  proof.Commitment // the block under the own ones
	own   []*rollupBlock
	// failed is set when the queue hands a block back.
	failed bool
}

// act lets the builder work after an update of the chain.
func (b *severalBuilder) act(u jamtest.Update) error {
	sends, makes := b.inTurn(b.index)
	if !sends {
		b.queue = nil
		return nil
	}
	done := b.applied[u.Best]
	if b.queue == nil || b.failed || b.guard && !b.continues(done) {
		if err := b.adopt(done); err != nil {
			return err
		}
	} else if err := b.hear(u); err != nil {
		return err
	}
	for makes && b.queue.CanEnqueue() {
		txs := b.waiting(done)
		if len(txs) == 0 {
			break
		}
		block := b.execute(b.index, b.head(), txs)
		payload, err := block.payload()
		if err != nil {
			return err
		}
		b.own = append(b.own, block)
		if err := b.step(bundlequeue.Enqueue{Number: block.Number, Bundle: payload}); err != nil {
			return err
		}
	}
	return nil
}

// continues reports whether the builder's own blocks begin on, or contain, the last block of the
// service. If they do not, the block of another builder has taken the place of one of them.
func (b *severalBuilder) continues(done []applied) bool {
	last := lastOf(done)
	if last.Number < b.base.Number || last.Number > b.head().Number {
		return false
	}
	if last.Number == b.base.Number {
		return last.PostRoot == b.base.PostRoot
	}
	return last.PostRoot == b.own[last.Number-b.base.Number-1].PostRoot
}

// adopt gives up the builder's own blocks and begins after the last block of the service, with a
// new queue. The guard makes this safe without waiting for the death of the packages in the old
// queue: they do not continue a block that the builder has adopted.
func (b *severalBuilder) adopt(done []applied) (err error) {
	b.own, b.failed = nil, false
	if b.guard {
		b.base = lastOf(done)
	}
	cfg := bundlequeue.DefaultConfig(b.chain.Config().Spec)
	cfg.FirstNumber = b.base.Number + 1
	cfg.MaxQueueDepth = 2 // a block in advance is lost with the one before it
	for i := range cfg.Cores {
		cfg.Cores[i] = jamq.CoreIndex((b.index + i) % len(cfg.Cores))
	}
	if b.queue, err = bundlequeue.New(cfg, b.chain.Finalized()); err != nil {
		return err
	}
	for _, block := range b.recent {
		if err := b.step(bundlequeue.Imported{Block: block, Best: block.Hash}); err != nil {
			return err
		}
	}
	best := b.chain.Best()
	return b.step(bundlequeue.Imported{Block: best, Best: best.Hash})
}

// hear gives the queue an update of the chain.
func (b *severalBuilder) hear(u jamtest.Update) error {
	for _, block := range u.Imported {
		if err := b.step(bundlequeue.Imported{Block: block, Best: u.Best}); err != nil {
			return err
		}
	}
	if err := b.step(bundlequeue.FinalizedBlock{Hash: u.Finalized}); err != nil {
		return err
	}
	return b.step(bundlequeue.Tick{})
}

// head returns the newest block of the builder.
func (b *severalBuilder) head() proof.Commitment {
	if len(b.own) == 0 {
		return b.base
	}
	return b.own[len(b.own)-1].Commitment
}

func lastOf(done []applied) proof.Commitment {
	if len(done) == 0 {
		return proof.Commitment{}
	}
	return done[len(done)-1].Commitment
}

// waiting returns the transactions for the next block: those that neither the service nor the
// builder has executed.
func (b *severalBuilder) waiting(done []applied) (txs []int) {
	executed := make([]bool, len(b.arrived))
	for _, block := range done {
		for _, tx := range block.Txs {
			executed[tx] = true
		}
	}
	for _, block := range b.own {
		for _, tx := range block.Txs {
			executed[tx] = true
		}
	}
	for tx := range executed {
		if !executed[tx] && len(txs) < maxTxs {
			txs = append(txs, tx)
		}
	}
	return txs
}

// step gives an event to the queue and carries out the effects, whose answers are events again.
func (b *severalBuilder) step(event bundlequeue.Event) error {
	now := jamq.NewSlotClock(b.chain.Config().Spec).Start(b.chain.Slot())
	for todo := []bundlequeue.Event{event}; len(todo) > 0; todo = todo[1:] {
		effects, err := b.queue.Step(now, todo[0])
		if errors.Is(err, bundlequeue.ErrNotExpected) || errors.Is(err, chainview.ErrOld) {
			continue
		}
		if err != nil {
			return err
		}
		for _, effect := range effects {
			switch e := effect.(type) {
			case bundlequeue.Build:
				todo = append(todo, b.build(&e))
			case bundlequeue.Send:
				todo = append(todo, b.send(&e))
			case bundlequeue.Failed:
				b.failed = true
			}
		}
	}
	return nil
}

func (b *severalBuilder) build(e *bundlequeue.Build) bundlequeue.Event {
	refine, err := anchor.Pick(b.chain.Anchors(), e.Anchor.Hash, b.chain.LookupAnchor(), e.Prerequisites)
	if err != nil {
		return bundlequeue.BuildFailed{Ticket: e.Ticket}
	}
	p := jamtest.NewPackage(rollup, refine, e.Bundle)
	b.sent[p.Hash] = sentPackage{p, b.own[e.Number-b.base.Number-1]}
	return bundlequeue.Built{Ticket: e.Ticket, Package: p.Hash, Context: refine, Bundle: e.Bundle}
}

// send sends a package to a guarantor. It may be lost.
func (b *severalBuilder) send(e *bundlequeue.Send) bundlequeue.Event {
	err := b.chain.Submit(b.sent[e.Package].Package, e.Core, e.Attempt)
	return bundlequeue.Sent{Ticket: e.Ticket, OK: err == nil}
}
