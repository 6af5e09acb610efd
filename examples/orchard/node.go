package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/submit"
)

const service jamq.ServiceID = 133 // id of the rollup's service

// perBlock is the number of transactions in a block.
const perBlock = 4

// node builds blocks of the transactions that wallets send, and follows the
// blocks through JAM. It uses the same queue as a rollup of EVM blocks; only
// the bundle differs.
type node struct {
	driver  *jamtest.Driver
	runner  *submit.Runner[bundle]
	arrived chan struct{} // new transaction or free queue

	mu      sync.Mutex
	waiting []*transaction   // mempool in order of arrival
	claimed map[bytes32]bool // nullifiers that waiting transactions spend
	state   pool             // after the last of blocks
	blocks  []*block         // by height, the genesis first
	serial  uint64           // of the last block
	byHash  map[bytes32]*block
	where   map[uint64]whereabouts
	heads   *canonical.Tracker
}

// whereabouts holds the JAM package and block of a rollup block.
type whereabouts struct {
	pkg    jamq.PackageHash
	header jamq.HeaderHash
}

// bundle is the queue's bundle.
type bundle struct {
	block *block
	work  jamtest.Package // once it is built
}

// newNode returns a node on a simulated JAM chain.
func newNode(network jamtest.Config) (*node, error) {
	chain, err := jamtest.New(network)
	if err != nil {
		return nil, err
	}
	genesis := &block{Time: time.Now().Unix()}
	n := &node{
		driver: jamtest.NewDriver(chain), arrived: make(chan struct{}, 1), claimed: map[bytes32]bool{}, state: pool{spent: map[bytes32]bool{}},
		blocks: []*block{genesis}, byHash: map[bytes32]*block{genesis.hash(): genesis}, where: map[uint64]whereabouts{},
		heads: canonical.New(headOf(genesis), ^uint64(0)>>1),
	}
	cfg := submit.DefaultConfig(network.Spec)
	cfg.Observe = n.observe
	n.runner, err = submit.NewRunner(cfg, chain.Best(), n, n)
	return n, err
}

func headOf(b *block) canonical.Head {
	return canonical.Head{Number: b.Height, Hash: common.Hash(b.hash()), Root: common.Hash(b.Root), Commitment: common.Hash(b.hash())}
}

func itemOf(b *block) canonical.Item {
	return canonical.Item{Number: b.Height, Commitment: common.Hash(b.hash())}
}

// run runs the node until ctx ends.
func (n *node) run(ctx context.Context) error {
	if err := n.runner.Start(ctx); err != nil {
		return err
	}
	defer n.runner.Stop()
	following, stop := context.WithCancel(ctx)
	followed := make(chan error, 1)
	go func() {
		followed <- n.driver.Run(following, func(u jamtest.Update) {
			for _, b := range u.Imported {
				if n.runner.Import(following, b, u.Best) != nil {
					return // it has stopped
				}
			}
			_ = n.runner.Finalize(following, u.Finalized)
			n.wake()
		})
	}()
	defer func() { stop(); <-followed }()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-n.arrived:
		}
		if err := n.produce(ctx); err != nil {
			return err
		}
	}
}

func (n *node) wake() {
	select {
	case n.arrived <- struct{}{}:
	default:
	}
}

// produce creates blocks while there are transactions and the queue has room.
func (n *node) produce(ctx context.Context) error {
	for {
		can, err := n.runner.CanEnqueue(ctx)
		if err != nil || !can {
			return err
		}
		n.mu.Lock()
		b := n.seal()
		n.mu.Unlock()
		if b == nil {
			return nil
		}
		_, err = n.runner.EnqueueNext(ctx, common.Hash(b.Previous), common.Hash(b.hash()), bundle{block: b})
		if errors.Is(err, bundlequeue.ErrWrongParent) {
			return nil // failed with an earlier block
		}
		if err != nil {
			return err
		}
	}
}

// seal executes the waiting transactions and returns a block of them, or nil if
// there are none. The caller holds the lock.
func (n *node) seal() *block {
	tip := n.blocks[len(n.blocks)-1]
	n.serial++
	b := &block{Height: tip.Height + 1, Previous: tip.hash(), Time: time.Now().Unix(), Serial: n.serial}
	for len(n.waiting) > 0 && len(b.Transactions) < perBlock {
		t := n.waiting[0]
		n.waiting = n.waiting[1:]
		for i := range t.Actions {
			delete(n.claimed, t.Actions[i].Nullifier)
		}
		if n.state.apply(t) == nil {
			b.Transactions = append(b.Transactions, t)
		}
	}
	if len(b.Transactions) == 0 {
		return nil
	}
	b.Root, b.notes = n.state.root, n.state.notes
	if err := n.heads.ExecutedBatch(headOf(tip), []canonical.Head{headOf(b)}); err != nil {
		panic(fmt.Sprintf("orchard: %v", err)) // impossible: the tip is pending
	}
	n.blocks = append(n.blocks, b)
	n.byHash[b.hash()] = b
	return b
}

// add adds a wallet's transaction to the mempool. The error wraps
// errDoubleSpend.
func (n *node) add(t *transaction) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	seen := map[bytes32]bool{}
	for i := range t.Actions {
		nf := t.Actions[i].Nullifier
		if n.state.spent[nf] || n.claimed[nf] || seen[nf] {
			return fmt.Errorf("%w: %s", errDoubleSpend, nf)
		}
		seen[nf] = true
	}
	n.hold(t)
	return nil
}

func (n *node) hold(t *transaction) {
	for i := range t.Actions {
		n.claimed[t.Actions[i].Nullifier] = true
	}
	n.waiting = append(n.waiting, t)
	n.wake()
}

// Build implements submit.Builder.
func (n *node) Build(_ context.Context, r bundlequeue.Build[bundle]) (submit.Package[bundle], error) {
	recent, lookup := n.driver.Anchors()
	refine, err := anchor.Pick(recent, r.Anchor.Hash, lookup, r.Prerequisites)
	if err != nil {
		return submit.Package[bundle]{}, err
	}
	b := bundle{r.Bundle.block, jamtest.NewPackage(service, refine, r.Bundle.block.encode())}
	return submit.Package[bundle]{Hash: b.work.Hash, Context: refine, Bundle: b}, nil
}

// Submit implements submit.Submitter.
func (n *node) Submit(_ context.Context, r bundlequeue.Send[bundle]) error {
	return n.driver.Submit(r.Bundle.work, r.Core, r.Attempt)
}

// observe moves the heads according to the queue's effects, and takes failed
// blocks back.
func (n *node) observe(o submit.Observation) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch e := o.Effect.(type) {
	case bundlequeue.Changed:
		item := canonical.Item{Number: e.Number, Commitment: e.Commitment}
		// Errors about a block that was taken back are ignored.
		var err error
		switch {
		case e.To == bundlequeue.Finalized:
			_, _, err = n.heads.Finalized(item)
		case e.To == bundlequeue.Accumulated:
			_, err = n.heads.Accumulate(item)
		case e.From == bundlequeue.Accumulated && e.To != bundlequeue.FailedState:
			_, err = n.heads.Retract(item)
		}
		if err == nil && (e.To == bundlequeue.Accumulated || e.To == bundlequeue.Finalized) {
			n.where[e.Number] = whereabouts{e.Package, e.At.Hash}
		}
	case bundlequeue.Failed[bundle]:
		n.takeBack(e.Bundle.block)
	}
}

// takeBack undoes a block and the blocks after it. Their transactions return to
// the front of the mempool.
func (n *node) takeBack(failed *block) {
	if n.byHash[failed.hash()] == nil {
		return // already taken back
	}
	height := failed.Height
	if _, err := n.heads.Fail(itemOf(failed)); err != nil {
		panic(fmt.Sprintf("orchard: %v", err)) // impossible: final blocks do not fail
	}
	later := n.waiting
	n.waiting = nil
	last := n.blocks[height-1]
	for _, b := range n.blocks[height:] {
		n.state.forget(b)
		delete(n.byHash, b.hash())
		delete(n.where, b.Height)
		for _, t := range b.Transactions {
			n.hold(t)
		}
	}
	n.state.root, n.state.notes = last.Root, last.notes
	n.blocks = n.blocks[:height]
	n.waiting = append(n.waiting, later...)
}
