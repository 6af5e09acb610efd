package node

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/submit"
)

// sink passes the updates of the JAM chain to the runner, in order, and wakes
// the producer.
type sink struct{ *Node }

// Import implements submit.ChainSink.
func (n sink) Import(ctx context.Context, b jamq.Block, best jamq.HeaderHash) error {
	if err := n.runner.Import(ctx, b, best); err != nil {
		return fmt.Errorf("node: JAM block of slot %d: %w", b.Slot, err)
	}
	n.live.Import(b, best)
	wake(n.slotBegan)
	return nil
}

// Finalize implements submit.ChainSink.
func (n sink) Finalize(ctx context.Context, hash jamq.HeaderHash) error {
	if err := n.runner.Finalize(ctx, hash); err != nil {
		return fmt.Errorf("node: finalized JAM block: %w", err)
	}
	n.live.Finalize(hash)
	wake(n.slotBegan)
	return nil
}

// taken records the payload of a package that the rollup's service has received
// on the final chain.
func (n *Node) taken(payload []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.service.accumulate(payload)
}

// observe moves the heads by the effects of the queue. It runs on the runner's
// goroutine.
func (n *Node) observe(o submit.Observation) {
	if _, failed := o.Effect.(bundlequeue.Failed[Bundle]); o.Replayed && !failed {
		return // recoverHeads has done this
	}
	n.show(o)
	switch e := o.Effect.(type) {
	case bundlequeue.Changed:
		n.ledger.note(e, n.JAMSlot())
		n.moveHeads(e)
	case bundlequeue.Failed[Bundle]:
		n.mu.Lock()
		n.failed = append(n.failed, e.Bundle)
		n.mu.Unlock()
		wake(n.produceNow)
	case bundlequeue.Build[Bundle], bundlequeue.Send[Bundle]:
		n.log.Debug("queue", "effect", e)
	}
}

// moveHeads moves latest, finalized and the canonical root.
func (n *Node) moveHeads(e bundlequeue.Changed) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var err error
	item := canonical.Item{Number: e.Number, Commitment: e.Commitment}
	switch {
	case e.To == bundlequeue.Finalized:
		before := n.tracker.Heads().Finalized.Number
		head, moved, failure := n.tracker.Finalized(item)
		if err = failure; err == nil && moved {
			err = n.finalize(before+1, head.Number)
		}
	case e.To == bundlequeue.Accumulated:
		_, err = n.tracker.Accumulate(item)
	case e.From == bundlequeue.Accumulated && e.To != bundlequeue.FailedState:
		_, err = n.tracker.Retract(item)
	}
	if err != nil {
		n.log.Error("the heads could not be moved", "change", e, "err", err)
	}
	n.logHeads()
}

// logHeads records the heads for subscribers. The caller holds the lock.
func (n *Node) logHeads() {
	heads := n.tracker.Heads()
	n.headLog.move(n.ledger, heads.Latest.Number, heads.Finalized.Number)
}

// finalize records the blocks that became final, moves the canonical root to
// the last of them, and discards old states.
func (n *Node) finalize(first, last uint64) error {
	for number := first; number <= last; number++ {
		b := n.ledger.byNumber(number)
		if err := n.store.final(number); err != nil {
			return err
		}
		if err := n.states.SetCanonical(b.Root()); err != nil {
			return err
		}
		if number > n.cfg.RetainStates {
			old := n.ledger.byNumber(number - n.cfg.RetainStates).Root()
			if err := n.states.Unpin(old); err != nil {
				return err
			}
			if err := n.states.Discard(old); err != nil {
				return err
			}
		}
	}
	return nil
}

// service is the record of the rollup's service on the finalized JAM chain: the
// blocks that it received, and whether each continued the previous one. It uses
// no answer of the queue.
type service struct {
	first, total uint64
	last         uint64
	root         common.Hash
	duplicates   []uint64
	gaps         []uint64
}

// accumulate records the payload of an accumulated package.
func (s *service) accumulate(payload []byte) {
	var t transition
	if err := rlp.DecodeBytes(payload, &t); err != nil {
		return // of another service
	}
	s.total++
	switch {
	case s.first == 0:
		s.first = t.Number
	case t.Number <= s.last:
		s.duplicates = append(s.duplicates, t.Number)
		return
	case t.Number != s.last+1 || t.PreRoot != s.root:
		s.gaps = append(s.gaps, t.Number)
	}
	s.last, s.root = t.Number, t.PostRoot
}
