// Package jip2net connects a builder to JAM through the RPC of a JAM node
// (JIP-2): it implements builder.Network.
//
//	network, err := jip2net.Open(ctx, jip2net.Config{
//		Node: jip2.DefaultConfig("ws://127.0.0.1:19800"),
//		Service: jip2.Service{
//			ID:    service,
//			Key:   func(pkg jamq.PackageHash) []byte { return pkg[:] },
//			Taken: func(_ jamq.PackageHash, value []byte) (bool, error) { return value != nil, nil },
//		},
//		Version: codec.V072,
//		Package: codec.OneItem(service, codeHash, authorizer, refineGas, accumulateGas),
//		Sign:    sign,
//	})
//	defer network.Close()
//	cfg := builder.DefaultConfig(network.Spec())
//
// # What the service must store
//
// JIP-2 does not show whether the service has accepted a package, so the
// service must store a mark for each package that it accepts. The program above
// assumes the simplest kind of mark: when the service accepts a package, it
// writes any value, for example the slot, under the 32 bytes of the package's
// hash as the key. If it refuses the package, it writes nothing. The value must
// stay for an epoch (600 slots, or 12 on the tiny chain) and may be removed
// afterwards. Other keys and values are possible, for example one key with the
// hashes of an epoch: see jip2.Service. If the service also stores the number
// of packages that it has accepted, Config.Received can read that number.
//
// If a service accepts packages but stores no marks, this package concludes
// that the service has refused them. The builder then sends their operations
// again, and finally stops with builder.ErrEvidence.
//
// All methods are safe for concurrent use.
package jip2net

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/codec"
	"github.com/jamq/jamq/submit/jip2"
)

// ErrInvalidConfig is wrapped by the error of Open if the configuration is
// invalid.
var ErrInvalidConfig = errors.New("jip2net: invalid configuration")

// ErrNotFollowing is returned by Pack and Send if the builder does not run yet,
// because the network then has no feed of JAM blocks.
var ErrNotFollowing = errors.New("jip2net: the chain is not followed yet")

// Config is the configuration of a [Network].
type Config struct {
	// Node configures the connection to the JAM node.
	Node jip2.Config
	// Service is the rollup's service. It also defines which key of the service's storage
	// holds the mark of an accepted package.
	Service jip2.Service
	// LostAfter is how many slots the node's chain may contradict the delivered blocks
	// before Follow returns jip2.ErrHistoryLost. 0 means 16: see jip2.FeedConfig.
	LostAfter int
	// Version is the version of the Gray Paper whose encoding of packages the chain uses.
	Version codec.Version
	// Received returns the number of packages that the service has accepted,
	// which it reads from the service's storage. With this number, a builder
	// with an empty log detects that the service is already in use: see
	// builder.Receiver. The function read returns the value under a key at the
	// newest block, or nil if there is none.
	//
	// If Received is nil, a service counts as used after its first
	// accumulation, even if that accumulation only processed a transfer.
	Received func(read func(key []byte) ([]byte, error)) (uint64, error)
	// Accepted tells the builder whether the service has accepted a rollup block, given the
	// payload of the block, and in which package: see builder.Explainer. It reads the
	// service's storage at the finalized block. The builder needs it after its log has lost
	// records. If Accepted is nil, the builder sends such a block again, although JAM may have
	// accepted it.
	Accepted func(read func(key []byte) ([]byte, error), payload []byte) (jamq.PackageHash, error)
	// Package returns the work package for a payload. The network sets the
	// refine context of the package afterwards.
	Package func(payload []byte) codec.WorkPackage
	// Sign sets the authorization token of a package after all other parts of
	// the package are set. An example is service.Signer.Sign. If Sign is nil,
	// the package keeps the token that Package has set. If Sign returns an
	// error, the builder tries again later.
	Sign func(c *codec.Codec, p *codec.WorkPackage) error
}

// Network is a builder.Network over the RPC of a JAM node. Create it with [Open].
type Network struct {
	cfg    Config
	client *jip2.Client
	spec   jamq.ChainSpec
	codec  *codec.Codec

	mu   sync.Mutex
	feed *jip2.Feed // nil before Follow
}

var (
	_ builder.Network   = (*Network)(nil)
	_ builder.Receiver  = (*Network)(nil)
	_ builder.Explainer = (*Network)(nil)
)

// Open connects to a node, reads the constants of its chain, and checks that
// the node has the methods that a builder needs. The error wraps one of these:
//
//   - ErrInvalidConfig
//   - jip2.ErrUnsupported, with the missing methods
//   - another error of package jip2
func Open(ctx context.Context, cfg Config) (*Network, error) {
	if cfg.Package == nil {
		return nil, fmt.Errorf("%w: Package is nil, want a function", ErrInvalidConfig)
	}
	feed := cfg.feed()
	if err := feed.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidConfig, err)
	}
	client, err := jip2.Open(cfg.Node)
	if err != nil {
		return nil, err
	}
	n := &Network{cfg: cfg, client: client}
	parameters, err := client.Parameters(ctx)
	if err == nil {
		n.spec, err = parameters.Spec("jip2")
	}
	if err == nil {
		n.codec, err = codec.New(cfg.Version, n.spec)
	}
	if err == nil {
		err = client.Check(ctx, n.spec.RecentHistory)
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	return n, nil
}

// feed returns the configuration of a feed that begins at the node's final block.
func (c *Config) feed() jip2.FeedConfig {
	return jip2.FeedConfig{Service: c.Service, LostAfter: c.LostAfter, Logger: c.Node.Logger}
}

// Spec returns the constants of the chain.
func (n *Network) Spec() jamq.ChainSpec { return n.spec }

// Client returns the connection to the node.
func (n *Network) Client() *jip2.Client { return n.client }

// Heads returns the best and the finalized JAM block. Both are zero until the
// builder runs and the network follows the chain.
func (n *Network) Heads() (best, finalized jamq.Block) {
	feed, err := n.following()
	if err != nil {
		return jamq.Block{}, jamq.Block{}
	}
	b, f := feed.Heads()
	return jamq.Block{Hash: jamq.HeaderHash(b.HeaderHash), Slot: b.Slot}, jamq.Block{Hash: jamq.HeaderHash(f.HeaderHash), Slot: f.Slot}
}

// Health returns the condition of the feed of JAM blocks, for an operator. It
// is zero until the builder runs.
func (n *Network) Health() submit.FeedHealth {
	feed, err := n.following()
	if err != nil {
		return submit.FeedHealth{}
	}
	return feed.Health()
}

// Close closes the connection to the node. The builder must have stopped
// before.
func (n *Network) Close() { n.client.Close() }

// Root implements builder.Network. It returns the node's newest final block.
func (n *Network) Root(ctx context.Context) (jamq.Block, error) { return n.client.Root(ctx) }

// Received implements builder.Receiver.
func (n *Network) Received(ctx context.Context) (uint64, error) {
	best, err := n.client.BestBlock(ctx)
	if err != nil {
		return 0, err
	}
	at := jamq.HeaderHash(best.HeaderHash)
	if n.cfg.Received != nil {
		return n.cfg.Received(n.storageAt(ctx, at))
	}
	account, err := n.client.ServiceData(ctx, at, n.cfg.Service.ID)
	if refused := new(jip2.Error); errors.As(err, &refused) && refused.Code == jip2.CodeMethodNotFound {
		return 0, nil // the node cannot answer this
	}
	if err != nil {
		return 0, err
	}
	if codec.LastAccumulation(account) != 0 {
		return 1, nil
	}
	return 0, nil
}

// Accepted implements builder.Explainer.
func (n *Network) Accepted(ctx context.Context, payload []byte) (jamq.PackageHash, error) {
	if n.cfg.Accepted == nil {
		return jamq.PackageHash{}, nil
	}
	final, err := n.client.FinalizedBlock(ctx)
	if err != nil {
		return jamq.PackageHash{}, err
	}
	return n.cfg.Accepted(n.storageAt(ctx, jamq.HeaderHash(final.HeaderHash)), payload)
}

// storageAt returns a function that reads the service's storage after a JAM block.
func (n *Network) storageAt(ctx context.Context, at jamq.HeaderHash) func(key []byte) ([]byte, error) {
	return func(key []byte) ([]byte, error) {
		return n.client.ServiceValue(ctx, at, n.cfg.Service.ID, key)
	}
}

// Pack implements builder.Network. It encodes the package that Config.Package
// returns, with the refine context of the anchor and the token of Config.Sign.
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

// Send implements builder.Network. The JAM node chooses the guarantor.
func (n *Network) Send(ctx context.Context, pkg builder.Package, core jamq.CoreIndex, _ int) error {
	feed, err := n.following()
	if err != nil {
		return err
	}
	return feed.Submit(ctx, jip2.Submission{Core: core, Hash: pkg.Hash, Context: pkg.Context, Package: pkg.Data})
}

func (n *Network) following() (*jip2.Feed, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.feed == nil {
		return nil, ErrNotFollowing
	}
	return n.feed, nil
}

// Follow implements builder.Network. It begins at the last final block that the
// builder knows. After a restart, it also observes the packages that may still
// be on the network.
func (n *Network) Follow(ctx context.Context, found submit.Recovery, to submit.ChainSink) error {
	cfg := n.cfg.feed()
	if cfg.Logger == nil {
		cfg.Logger = found.Logger
	}
	cfg.Root, cfg.Best = jamq.Block{Hash: found.Finalized.Hash, Slot: found.Finalized.Slot}, found.Best.Hash
	feed, err := jip2.OpenFeed(ctx, n.client, cfg)
	if err != nil {
		return err
	}
	for _, out := range found.Out {
		feed.Restore(known(out, found.Finalized))
	}
	n.mu.Lock()
	n.feed = feed
	n.mu.Unlock()
	return feed.Follow(ctx, to)
}

// known converts a package that may be on the network to the feed's type.
func known(out submit.Out, final anchor.Point) jip2.Known {
	upTo := func(at anchor.Point) jamq.Slot {
		// The feed delivers every block after the final one again. Only progress up to the
		// final block must be passed on, because the feed will not see it.
		if at.IsZero() || at.Height > final.Height {
			return 0
		}
		return at.Slot
	}
	return jip2.Known{
		Package: out.Package, Context: out.Context, Core: out.Core,
		Reported: upTo(out.Reported), Available: upTo(out.Available), Accumulated: upTo(out.Accumulated),
	}
}
