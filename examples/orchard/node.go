package main

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/journal"
)

const service jamq.ServiceID = 133 // id of the rollup's service

// node serves wallets: it passes their transactions to the builder, and shows them
// the blocks that JAM has accumulated. The builder's log is in memory, because the
// simulated JAM chain ends with the process too.
type node struct {
	*rollup
	network *simnet.Network
	builder *builder.Builder[*block]
}

// newNode returns a node on a simulated JAM chain.
func newNode(ctx context.Context, network *simnet.Network) (n *node, err error) {
	n = &node{rollup: newRollup(), network: network}
	cfg := builder.DefaultConfig(network.Spec())
	n.builder, err = builder.Open(ctx, cfg, new(journal.Memory), n.rollup, n.network)
	return n, err
}

// run runs the chain and the builder until ctx ends.
func (n *node) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return n.network.Run(ctx, nil) })
	group.Go(func() error { return n.builder.Run(ctx) })
	return group.Wait()
}

// heads returns the heights of the newest block that JAM has accumulated and of the
// newest final one. The rollup has both. The caller holds the lock.
func (n *node) heads() (latest, final uint64) {
	heads := n.builder.Heads()
	return heads.Latest.Number, heads.Finalized.Number
}

// progress returns the way of a block through JAM. The caller holds the lock.
func (n *node) progress(height uint64) builder.Progress {
	if b, some := n.builder.Block(height); some {
		return b.Progress
	}
	return n.final[height]
}
