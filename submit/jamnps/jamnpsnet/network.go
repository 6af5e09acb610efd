// Package jamnpsnet connects a builder to JAM through the network protocol of
// JAM nodes (JAMNP-S): it implements builder.Network. Such a builder needs no
// JAM node, because it follows the chain and sends packages as a peer of the
// validators.
//
//	client, err := jamnps.Open(jamnps.DefaultConfig(key, genesis, codec, peers))
//	defer client.Close()
//	network, err := jamnpsnet.New(client, jamnpsnet.Config{
//		Service: service,
//		Package: codec.OneItem(service, codeHash, authorizer, refineGas, accumulateGas),
//		Sign:    sign,
//	})
//	cfg := builder.DefaultConfig(network.Spec())
//
// jamnps.OpenChain reads genesis, codec and peers from the specification file
// of a network. Package jip2net does the same as this package over the RPC of a
// node.
//
// All methods are safe for concurrent use.
package jamnpsnet

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/codec"
	"github.com/jamq/jamq/submit/jamnps"
)

var (
	// ErrInvalidConfig is returned by New if the client or Config.Package is missing.
	ErrInvalidConfig = errors.New("jamnpsnet: invalid configuration")
	// ErrNotFollowing is returned by Pack before the builder runs, because the network does
	// not follow the chain yet.
	ErrNotFollowing = errors.New("jamnpsnet: the chain is not followed yet")
)

// Config is the configuration of a [Network].
type Config struct {
	// Feed determines which peers the network follows, and how many of them must agree on
	// finality. Network.Follow replaces Feed.Root and Feed.Best.
	Feed jamnps.FeedConfig
	// Service is the rollup's service.
	Service jamq.ServiceID
	// Package returns the work package for a payload, which is a block of the rollup in the
	// builder's encoding. The network adds the refine context to the package afterwards.
	Package func(payload []byte) codec.WorkPackage
	// Sign sets the authorization token of a package that is complete otherwise. An example
	// is service.Signer.Sign. If Sign is nil, the package keeps the token that Package has
	// set. If Sign returns an error, the builder tries again later.
	Sign func(c *codec.Codec, p *codec.WorkPackage) error
}

// Network is a builder.Network that needs no JAM node. Create it with [New].
type Network struct {
	cfg    Config
	client *jamnps.Client
	codec  *codec.Codec

	mu   sync.Mutex
	feed *jamnps.Feed // nil before Follow
}

var (
	_ builder.Network  = (*Network)(nil)
	_ builder.Receiver = (*Network)(nil)
)

// New returns a network that uses the given client. The caller closes the client after
// the builder has stopped. The error wraps ErrInvalidConfig.
func New(client *jamnps.Client, cfg Config) (*Network, error) {
	if client == nil || cfg.Package == nil {
		return nil, fmt.Errorf("%w: client and Package must be given", ErrInvalidConfig)
	}
	return &Network{cfg: cfg, client: client, codec: client.Config().Codec}, nil
}

// Spec returns the constants of the chain.
func (n *Network) Spec() jamq.ChainSpec { return n.codec.Spec() }

// Health returns the condition of the JAM block feed for monitoring. It is zero until
// the builder follows the chain.
func (n *Network) Health() submit.FeedHealth {
	feed, err := n.following()
	if err != nil {
		return submit.FeedHealth{}
	}
	return feed.Health()
}

// Root implements builder.Network. It returns the finalized block of the first peer
// that answers, and does not verify it.
func (n *Network) Root(ctx context.Context) (jamq.Block, error) {
	feed, err := jamnps.OpenFeed(ctx, n.client, n.cfg.Feed)
	if err != nil {
		return jamq.Block{}, err
	}
	return feed.Root(), nil
}

// Received implements builder.Receiver. The JAM state does not contain the number of
// packages that the service has received. Received therefore returns 1 if the service
// has ever been accumulated, even if only for a transfer, and otherwise 0. It trusts
// the first peer that answers.
func (n *Network) Received(ctx context.Context) (uint64, error) {
	root, err := n.Root(ctx)
	if err != nil {
		return 0, err
	}
	account, err := n.client.Account(ctx, root.Hash, n.cfg.Service)
	if err != nil || codec.LastAccumulation(account) == 0 {
		return 0, err
	}
	return 1, nil
}

// Pack implements builder.Network.
func (n *Network) Pack(ctx context.Context, at builder.Anchor, payload []byte) (builder.Package, error) {
	feed, err := n.following()
	if err != nil {
		return builder.Package{}, err
	}
	work := n.cfg.Package(payload)
	if work.Context, err = feed.Context(ctx, at.Hash, at.Prerequisites); err != nil {
		return builder.Package{}, err
	}
	if n.cfg.Sign != nil {
		if err := n.cfg.Sign(n.codec, &work); err != nil {
			return builder.Package{}, err
		}
	}
	raw, hash, err := n.codec.EncodePackage(&work)
	return builder.Package{Hash: hash, Context: work.Context, Data: raw}, err
}

// Send implements builder.Network. It sends the package to one guarantor of the core.
// Each attempt goes to a different guarantor.
func (n *Network) Send(ctx context.Context, pkg builder.Package, core jamq.CoreIndex, attempt int) error {
	return n.client.SubmitPackage(ctx, jamnps.Submission{Core: core, Attempt: attempt, Package: pkg.Data})
}

func (n *Network) following() (*jamnps.Feed, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.feed == nil {
		return nil, ErrNotFollowing
	}
	return n.feed, nil
}

// Follow implements builder.Network. It delivers the blocks after the last final block
// that the builder knows.
func (n *Network) Follow(ctx context.Context, found submit.Recovery, to submit.ChainSink) error {
	cfg := n.cfg.Feed
	cfg.Root, cfg.Best = jamq.Block{Hash: found.Finalized.Hash, Slot: found.Finalized.Slot}, found.Best.Hash
	if cfg.Logger == nil {
		cfg.Logger = found.Logger
	}
	feed, err := jamnps.OpenFeed(ctx, n.client, cfg)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.feed = feed
	n.mu.Unlock()
	return feed.Follow(ctx, to)
}
