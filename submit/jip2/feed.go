package jip2

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/feed"
	"github.com/jamq/jamq/internal/fields"
	"github.com/jamq/jamq/internal/headers"
	"github.com/jamq/jamq/submit"
)

// Service describes how the rollup's service records in its storage which
// packages it has accumulated. The service must store such a mark for each
// package, because JIP-2 shows accumulation in no other way.
type Service struct {
	// ID is the service's id.
	ID jamq.ServiceID
	// Key returns the storage key under which the service stores the mark of a
	// package. All packages may share one key. Key must not be nil.
	Key func(pkg jamq.PackageHash) []byte
	// Taken reports whether the service has accumulated the package. value is
	// the value under the package's key, or nil if there is none. Once the
	// result has become true on a chain, it must stay true on that chain for at
	// least an epoch. If the value is malformed, Taken returns an error, and
	// the feed does not advance. Taken must not be nil.
	Taken func(pkg jamq.PackageHash, value []byte) (bool, error)
}

// FeedConfig configures a [Feed].
type FeedConfig struct {
	// Service is the rollup's service.
	Service Service
	// Root is the block after which the feed begins to deliver. It must be
	// final, and the queue must know it. Zero means the node's finalized block,
	// which is the right choice for a new queue.
	Root jamq.Block
	// Best is the best block that the sink knows. A host sets it after a
	// restart if its queue has blocks after Root, so that the restart does not
	// look like a reorg. The feed reports this block as the best one until it
	// has found the node's best block. Zero means Root.
	Best jamq.HeaderHash
	// SlotDuration replaces the slot duration that the node reports. 0 means the node's value. A
	// negative value is an error.
	SlotDuration time.Duration
	// MaxGap is the maximum number of blocks that the feed fetches to connect
	// the node's head with the delivered blocks. If more are missing, Follow
	// returns ErrHistoryLost. 0 means 131,072 blocks, which are nine days of
	// slots of 6 s; a negative value is an error. The queue holds at most
	// 16,384 blocks that are not final, so no more of the missing blocks may
	// lack finality.
	MaxGap int
	// LostAfter is the number of slots for which the node's chain may
	// contradict the delivered blocks. After that, Follow returns
	// ErrHistoryLost. 0 means 16 slots; a negative value is an error.
	LostAfter int
	// Logger receives a message if the feed cannot follow the chain, at most
	// one per minute. It also receives a message if a package was sent without
	// its bundle because the node accepts no bundles. Nil discards these
	// messages.
	Logger *slog.Logger
}

const (
	defaultMaxGap = 131_072
	// defaultFinalEvery is after how many blocks the feed reports finality while
	// it closes a long gap. The queue can hold four times as many blocks that are
	// not final, so it does not fill up in between.
	defaultFinalEvery = 4096
)

// Validate returns an error that wraps [ErrInvalidConfig] and lists each field
// that is out of range, or nil.
func (c *FeedConfig) Validate() error {
	var wrong fields.Errors
	wrong.Want(c.Service.Key != nil, "Service.Key", "nil", "a function")
	wrong.Want(c.Service.Taken != nil, "Service.Taken", "nil", "a function")
	wrong.Want(c.MaxGap >= 0, "MaxGap", c.MaxGap, fmt.Sprintf("at least 1, or 0 for %d", defaultMaxGap))
	wrong.Want(c.LostAfter >= 0, "LostAfter", c.LostAfter, fmt.Sprintf("at least 1 slot, or 0 for %d", feed.LostAfter))
	wrong.Want(c.SlotDuration >= 0, "SlotDuration", c.SlotDuration, "positive, or 0 for the node's")
	return wrong.Wrap(ErrInvalidConfig)
}

// Feed follows a JAM chain through a node's RPC and delivers its blocks to a
// queue. The delivered blocks contain only the rollup's own packages. Feed also
// sends packages, because it must begin to watch each package before the
// package is sent. It implements submit.ChainFeed, and its methods are safe for
// concurrent use.
type Feed struct {
	cfg    FeedConfig
	client *Client
	log    *slog.Logger
	spec   jamq.ChainSpec
	clock  jamq.SlotClock

	finalEvery int          // defaultFinalEvery, lower in tests
	asked      atomic.Int64 // nanoseconds of the last answer about a package, see answerTime

	// Only the goroutine of Follow uses these fields. apart tells since when the node's chain
	// contradicts the delivered blocks, and oldest is the slot of the oldest block that the
	// node has on such a chain. fullAt is the block that the node called final when the sink
	// was last full.
	apart  feed.Contradiction
	oldest jamq.Slot
	fullAt jamq.HeaderHash

	loop feed.Loop

	mu sync.Mutex
	// learned has what the node has answered about blocks that were not delivered yet, so that
	// a second attempt need not ask again. named is the best block by the node's last answer.
	learned map[jamq.HeaderHash]*learned
	named   BlockDescriptor
	watched map[jamq.PackageHash]watched
	// settled has the packages whose fate is final, so that watching one of them
	// again has no effect.
	settled map[jamq.PackageHash]watched
	tree    *headers.Tree[fates]
}

// watched is a package that may have been sent, and whose status the feed
// therefore requests after each block.
type watched struct {
	context jamq.RefineContext
	anchor  *node // nil if the anchor is not in the feed's tree
}

// node is a delivered block, together with the fate of each watched package after it.
type (
	node  = headers.Block[fates]
	fates = map[jamq.PackageHash]fate
)

var _ submit.ChainFeed = (*Feed)(nil)

// OpenFeed returns a feed that uses the given client. It fetches the chain's
// constants and, if FeedConfig.Root is zero, the node's finalized block. It
// also checks that the node has the methods that a feed needs and tracks the
// status of packages. Errors are those of [Client.Call] or wrap one of these:
//
//   - ErrInvalidConfig: cfg is invalid.
//   - ErrUnsupported: the node lacks methods; the error names all of them.
//   - jamq.ErrInvalidSpec: the chain's constants are invalid.
//   - ErrMalformed: the finalized block is far ahead of the machine's clock, or
//     there is none.
//   - submit.ErrContradiction: the node gave two different answers to the same
//     request.
func OpenFeed(ctx context.Context, client *Client, cfg FeedConfig) (*Feed, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.MaxGap == 0 {
		cfg.MaxGap = defaultMaxGap
	}
	if cfg.LostAfter == 0 {
		cfg.LostAfter = feed.LostAfter
	}
	f := &Feed{
		cfg: cfg, client: client, log: cfg.Logger, finalEvery: defaultFinalEvery,
		watched: make(map[jamq.PackageHash]watched), settled: make(map[jamq.PackageHash]watched), learned: make(map[jamq.HeaderHash]*learned),
	}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	parameters, err := client.Parameters(ctx)
	if refused := new(Error); errors.As(err, &refused) {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	if err != nil {
		return nil, err
	}
	if f.spec, err = parameters.Spec("jip2"); err != nil {
		return nil, err
	}
	if cfg.SlotDuration > 0 {
		f.spec.SlotDuration = cfg.SlotDuration
		if err := f.spec.Validate(); err != nil {
			return nil, err
		}
	}
	f.clock = jamq.NewSlotClock(f.spec)
	if err := probe(ctx, client, f.spec.RecentHistory); err != nil {
		return nil, err
	}
	isNew := f.cfg.Root.Hash.IsZero()
	if isNew {
		if f.cfg.Root, err = client.Root(ctx); err != nil {
			return nil, err
		}
		if err := headers.CheckAhead(f.clock, time.Now(), f.cfg.Root.Slot); err != nil {
			return nil, fmt.Errorf("%w: final block %s: %w", ErrMalformed, f.cfg.Root.Hash, err)
		}
	}
	f.tree = headers.New(f.cfg.Root.Hash, cfg.Best, f.cfg.Root.Slot, f.spec.RecentHistory, fates{})
	if isNew {
		return f, nil // a new queue has no anchors before its root
	}
	return f, f.fetchAncestors(ctx)
}

// Root returns the newest block that the node considers final, for a queue that
// begins there. It asks the node until two answers agree, because a queue can
// never correct its root. The error wraps submit.ErrContradiction if no two of six
// answers do, and ErrMalformed if the node has no final block.
func (c *Client) Root(ctx context.Context) (jamq.Block, error) {
	head, err := agreed(ctx, func(error) {}, true, c.FinalizedBlock)
	if err == nil && head.HeaderHash == (Hash{}) {
		err = fmt.Errorf("%w: the final block is the block of zeros", ErrMalformed)
	}
	return jamq.Block{Hash: jamq.HeaderHash(head.HeaderHash), Slot: head.Slot}, err
}

// fetchAncestors fetches the blocks before the root that can still be anchors.
func (f *Feed) fetchAncestors(ctx context.Context) error {
	// A queue that was restarted may choose one of these blocks.
	for {
		oldest := f.tree.Oldest()
		parent, err := f.askParent(ctx, oldest.Hash)
		switch {
		// The node no longer has the block, or the chain begins at the root.
		case noParent(err):
			return nil
		case err != nil:
			return err
		case parent.Slot >= oldest.Slot, !f.tree.Precede(jamq.HeaderHash(parent.HeaderHash), parent.Slot, fates{}):
			return nil
		}
	}
}

// Spec returns the constants of the chain.
func (f *Feed) Spec() jamq.ChainSpec { return f.spec }

// Root returns the block after which the feed begins to deliver. The queue behind the sink must
// begin with the same block.
func (f *Feed) Root() jamq.Block { return f.cfg.Root }

// Heads returns the best block and the finalized block among the blocks that
// the feed has delivered.
func (f *Feed) Heads() (best, finalized BlockDescriptor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return BlockDescriptor{Hash(f.tree.Best().Hash), f.tree.Best().Slot}, BlockDescriptor{Hash(f.tree.Finalized().Hash), f.tree.Finalized().Slot}
}

// Context returns the refine context for a package with the given anchor, which
// must be a block that the feed has delivered. The lookup anchor is the
// finalized block. The error wraps ErrHistoryLost if the anchor is unknown or
// too old; other errors are those of [Client.Call].
func (f *Feed) Context(ctx context.Context, anchor jamq.HeaderHash, prerequisites []jamq.PackageHash) (jamq.RefineContext, error) {
	f.mu.Lock()
	at, lookup := f.tree.Get(anchor), f.tree.Finalized()
	f.mu.Unlock()
	if at == nil {
		return jamq.RefineContext{}, fmt.Errorf("%w: anchor %s was not delivered or is too old", ErrHistoryLost, anchor)
	}
	out := jamq.RefineContext{
		Anchor: anchor, AnchorSlot: at.Slot, LookupAnchor: lookup.Hash, LookupAnchorSlot: lookup.Slot,
		Prerequisites: ascending(prerequisites),
	}
	var asking errgroup.Group
	for _, root := range []struct {
		into  *common.Hash
		ask   func(context.Context, jamq.HeaderHash) (Hash, error)
		block jamq.HeaderHash
	}{
		{&out.StateRoot, f.client.StateRoot, anchor}, {&out.BeefyRoot, f.client.BeefyRoot, anchor}, {&out.LookupStateRoot, f.client.StateRoot, lookup.Hash},
	} {
		asking.Go(func() error {
			hash, err := root.ask(ctx, root.block)
			*root.into = common.Hash(hash)
			return err
		})
	}
	if err := asking.Wait(); err != nil {
		return jamq.RefineContext{}, err
	}
	return out, nil
}

// Submission is a package that [Feed.Submit] sends to the guarantors of a core.
type Submission struct {
	// Core is the core whose guarantors receive the package. Hash and Context are the package's
	// hash and refine context.
	Core    jamq.CoreIndex
	Hash    jamq.PackageHash
	Context jamq.RefineContext
	// Package is the encoded package, and Extrinsics is the data that
	// accompanies it.
	Package    []byte
	Extrinsics [][]byte
	// Bundle is the whole encoded bundle. If it is not nil and the node accepts bundles, the feed
	// sends it instead of Package and Extrinsics.
	Bundle []byte
}

// Submit begins to watch a package and then sends it once. Errors have a class
// that tells the caller how to continue: see submit.ClassOf.
func (f *Feed) Submit(ctx context.Context, s Submission) error {
	if int(s.Core) >= f.spec.Cores {
		return submit.WithClass(submit.Fatal, fmt.Errorf("%w: core %d, want below %d", ErrInvalidConfig, s.Core, f.spec.Cores))
	}
	f.Watch(s.Hash, s.Context)
	if s.Bundle != nil {
		if err := f.client.SubmitWorkPackageBundle(ctx, s.Core, s.Bundle); !errors.Is(err, ErrUnsupported) {
			return err
		}
		f.log.Warn("the node does not accept bundles, sending the package and its extrinsics", "package", s.Hash)
	}
	return f.client.SubmitWorkPackage(ctx, s.Core, s.Package, s.Extrinsics)
}

// Watch makes the feed request the status of a package after each block. Watch must
// be called before the package is sent, as [Feed.Submit] does. A host must call
// Watch itself, before Follow, if it sends packages in another way, or if it has
// restarted while packages were on their way.
//
// The feed ends the watch when the package's fate is final. Watching the package
// again then has no effect, because a block that seemed to report it again would
// contradict the earlier blocks.
func (f *Feed) Watch(pkg jamq.PackageHash, context jamq.RefineContext) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := watched{context: context, anchor: f.tree.Get(context.Anchor)}
	_, known := f.watched[pkg]
	_, settled := f.settled[pkg]
	// Until the finalized block has moved for the first time, even an expired
	// package is watched. It may have been reported before the root, and the
	// feed has not yet judged any package.
	expired := f.tree.Finalized().Hash != f.cfg.Root.Hash && f.expired(&w)
	if !known && !settled && !expired {
		f.watched[pkg] = w
	}
}

// Known is the state of a package that a queue remembers when the host
// restarts. The host passes it to [Feed.Restore], which continues from this
// state.
type Known struct {
	// Package and Context identify the package.
	Package jamq.PackageHash
	Context jamq.RefineContext
	// Core is the core on which the package was reported. It is ignored if Reported is 0.
	Core jamq.CoreIndex
	// Reported, Available and Accumulated are the slots of the blocks in which
	// the package was reported, became available and was accumulated, up to the
	// feed's root. 0 means that this has not happened.
	Reported, Available, Accumulated jamq.Slot
}

// Restore watches a package that the queue already knew before a restart. The
// feed continues from the known state instead of delivering it again. Restore
// must be called before Follow.
func (f *Feed) Restore(k Known) {
	f.Watch(k.Package, k.Context)
	at := fate{core: k.Core}
	switch {
	case k.Accumulated > 0:
		at.stage = taken
	case k.Available > 0:
		at.stage, at.since = available, k.Available
	case k.Reported > 0:
		at.stage, at.since = onCore, k.Reported
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tree.Finalized().Note[k.Package] = at
}
