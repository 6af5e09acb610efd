package main

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/buildertest"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/journal"
)

const service jamq.ServiceID = 133 // id of the rollup's service

// node serves wallets: it passes their transactions to the builder, and shows them
// the blocks that JAM has accumulated. The builder's log is in memory, because the
// simulated JAM chain ends with the process too.
type node struct {
	*rollup
	network *buildertest.Network
	builder *builder.Builder[*block]
	adding  sync.Mutex
	where   map[uint64]whereabouts // by height; the rollup's lock protects it
}

// whereabouts holds the JAM package and block of a rollup block.
type whereabouts struct {
	pkg    jamq.PackageHash
	header jamq.HeaderHash
}

// newNode returns a node on a simulated JAM chain.
func newNode(ctx context.Context, network jamtest.Config) (*node, error) {
	chain, err := jamtest.New(network)
	if err != nil {
		return nil, err
	}
	n := &node{rollup: newRollup(), network: buildertest.NewNetwork(chain, service), where: map[uint64]whereabouts{}}
	cfg := builder.DefaultConfig[*block](network.Spec)
	cfg.Codec = codec{}
	cfg.Runner.Observe = n.observe
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

// add accepts a wallet's transaction, one at a time, so that no two spend the same
// note. The error wraps errDoubleSpend, or is that of the builder.
func (n *node) add(ctx context.Context, t *transaction) error {
	n.adding.Lock()
	defer n.adding.Unlock()
	if err := n.check(t); err != nil {
		return err
	}
	return n.builder.Submit(ctx, t.encode())
}

// observe notes where JAM has accumulated a block.
func (n *node) observe(o submit.Observation) {
	e, ok := o.Effect.(bundlequeue.Changed)
	if !ok {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if e.To == bundlequeue.Accumulated || e.To == bundlequeue.Finalized {
		n.where[e.Number] = whereabouts{e.Package, e.At.Hash}
	} else {
		delete(n.where, e.Number)
	}
}

// heads returns the heights of the newest block that JAM has accumulated and of the
// newest final one. The builder moves its heads before the rollup and observe have
// followed them, and heads returns blocks only when both have. The caller holds the
// lock.
func (n *node) heads() (latest, final uint64) {
	heads := n.builder.Heads()
	latest = min(heads.Latest.Number, n.tip().Height)
	for latest > 0 && n.where[latest] == (whereabouts{}) {
		latest--
	}
	return latest, min(latest, heads.Finalized.Number)
}
