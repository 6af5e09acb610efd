package jip2

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/headers"
	"github.com/jamq/jamq/submit"
)

// Service says how the rollup's service shows in its storage which packages it has taken. That is the only sign of accumulation that JIP-2
// gives, so a service must leave one.
type Service struct {
	// ID is the service.
	ID jamq.ServiceID
	// Key returns the storage key that tells of a package. One key for all packages is fine.
	Key func(pkg jamq.PackageHash) []byte
	// Taken judges the value under that key, nil if there is none: whether the service has taken the package. It must not become false again on
	// one chain while the package matters, that is for an epoch. An error is one of the value's form: it holds the feed up.
	Taken func(pkg jamq.PackageHash, value []byte) (bool, error)
}

// FeedConfig says what a feed follows.
type FeedConfig struct {
	// Service is the rollup's.
	Service Service
	// Root is the block from which on blocks are delivered: final, and known to the queue. Zero means the node's finalized block, for a queue
	// that begins now.
	Root jamq.Block
	// Best is the best block that the sink knows, where it restarts and knows more than Root: it stays the best until the feed has found out what
	// is now. Zero means Root.
	Best jamq.HeaderHash
	// SlotDuration, if positive, overrides what the node says.
	SlotDuration time.Duration
	// MaxGap is how many blocks are fetched at most to close a gap, at least 1; 131,072 by default, which is nine days of slots of 6 s. What of them is not
	// final must fit into a queue, which holds 16,384.
	MaxGap int
	// Logger gets what an operator should know. Nil is silent.
	Logger *slog.Logger
}

const (
	defaultMaxGap = 131_072
	// defaultFinalEvery is after how many blocks of a long way finality is passed on. A queue holds four times as many that are not final.
	defaultFinalEvery = 4096
)

// Validate names the first field that is out of range. The error wraps [ErrInvalidConfig].
func (c *FeedConfig) Validate() error {
	switch {
	case c.Service.Key == nil || c.Service.Taken == nil:
		return fmt.Errorf("%w: Service.Key and Service.Taken must be given", ErrInvalidConfig)
	case c.MaxGap < 0:
		return fmt.Errorf("%w: MaxGap is %d, want at least 1, or 0 for %d", ErrInvalidConfig, c.MaxGap, defaultMaxGap)
	case c.SlotDuration < 0:
		return fmt.Errorf("%w: SlotDuration is %v, want positive, or 0 for the node's", ErrInvalidConfig, c.SlotDuration)
	}
	return nil
}

// Feed follows a chain by a node's RPC and delivers it as blocks that speak of the rollup's own packages. It is a submit.ChainFeed, and sends
// packages, since it must know of each before it leaves. Its methods are safe for concurrent use.
type Feed struct {
	cfg    FeedConfig
	client *Client
	log    *slog.Logger
	spec   jamq.ChainSpec

	finalEvery int // defaultFinalEvery, less in tests

	learned map[jamq.HeaderHash]learned // only of the goroutine that follows

	mu        sync.Mutex
	watched   map[jamq.PackageHash]watched
	tree      *headers.Tree[fates]
	following bool
}

// watched is a package that may be out.
type watched struct {
	context jamq.RefineContext
	anchor  *node // nil where it was not delivered, or not yet
}

// node is a block that was delivered, with what was shown of packages up to it.
type (
	node  = headers.Block[fates]
	fates = map[jamq.PackageHash]fate
)

var _ submit.ChainFeed = (*Feed)(nil)

// OpenFeed asks the node for the chain's constants, for a root if none is given, and whether it has what a feed needs. Errors wrap
// ErrInvalidConfig, ErrUnsupported with the name of what is missing, jamq.ErrInvalidSpec, or are those of [Client.Call].
func OpenFeed(ctx context.Context, client *Client, cfg FeedConfig) (*Feed, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.MaxGap == 0 {
		cfg.MaxGap = defaultMaxGap
	}
	f := &Feed{
		cfg: cfg, client: client, log: cfg.Logger, finalEvery: defaultFinalEvery,
		watched: make(map[jamq.PackageHash]watched), learned: make(map[jamq.HeaderHash]learned),
	}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	parameters, err := client.Parameters(ctx)
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
	head, err := client.FinalizedBlock(ctx)
	if err != nil {
		return nil, err
	}
	if err := f.probe(ctx, jamq.HeaderHash(head.HeaderHash)); err != nil {
		return nil, err
	}
	if f.cfg.Root.Hash.IsZero() {
		f.cfg.Root = jamq.Block{Hash: jamq.HeaderHash(head.HeaderHash), Slot: head.Slot}
	}
	f.tree = headers.New(f.cfg.Root.Hash, cfg.Best, f.cfg.Root.Slot, f.spec.RecentHistory, fates{})
	return f, f.fetchAncestors(ctx)
}

// fetchAncestors fetches the blocks before the root that can still be anchors: a queue that has restarted knows them, and may choose one. A node
// that does not have them any more, or a chain that begins here, is no error.
func (f *Feed) fetchAncestors(ctx context.Context) error {
	for {
		oldest := f.tree.Oldest()
		parent, err := f.client.Parent(ctx, oldest.Hash)
		switch e := new(Error); {
		case errors.As(err, &e):
			return nil
		case err != nil:
			return err
		case parent.Slot >= oldest.Slot, !f.tree.Precede(jamq.HeaderHash(parent.HeaderHash), parent.Slot, fates{}):
			return nil
		}
	}
}

// probe asks for the status of a package that nobody knows: what matters is whether the node understands.
func (f *Feed) probe(ctx context.Context, at jamq.HeaderHash) error {
	_, err := f.client.WorkPackageStatus(ctx, at, jamq.PackageHash{}, at)
	if unknownMethod(err) {
		return fmt.Errorf("%w: workPackageStatus, without which nobody can tell whether a package is dead: %w", ErrUnsupported, err)
	}
	var e *Error
	if errors.As(err, &e) {
		return nil // it understands, and does not like the question
	}
	return err
}

// Spec returns the chain's constants.
func (f *Feed) Spec() jamq.ChainSpec { return f.spec }

// Root returns the block from which on blocks are delivered: what submit.NewRunner wants.
func (f *Feed) Root() jamq.Block { return f.cfg.Root }

// Heads returns the best and the finalized block among those delivered.
func (f *Feed) Heads() (best, finalized BlockDescriptor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return BlockDescriptor{Hash(f.tree.Best().Hash), f.tree.Best().Slot}, BlockDescriptor{Hash(f.tree.Finalized().Hash), f.tree.Finalized().Slot}
}

// Context returns a refine context for a package anchored at a block that was delivered, with the finalized block as lookup anchor.
// The error wraps ErrHistoryLost for a block that is not known, or is one of [Client.Call].
func (f *Feed) Context(ctx context.Context, anchor jamq.HeaderHash, prerequisites []jamq.PackageHash) (jamq.RefineContext, error) {
	f.mu.Lock()
	at, lookup := f.tree.Get(anchor), f.tree.Finalized()
	f.mu.Unlock()
	if at == nil {
		return jamq.RefineContext{}, fmt.Errorf("%w: anchor %s was not delivered, or too long ago", ErrHistoryLost, anchor)
	}
	out := jamq.RefineContext{
		Anchor: anchor, AnchorSlot: at.Slot, LookupAnchor: lookup.Hash, LookupAnchorSlot: lookup.Slot,
		Prerequisites: ascending(prerequisites),
	}
	for _, root := range []struct {
		into  *common.Hash
		ask   func(context.Context, jamq.HeaderHash) (Hash, error)
		block jamq.HeaderHash
	}{
		{&out.StateRoot, f.client.StateRoot, anchor}, {&out.BeefyRoot, f.client.BeefyRoot, anchor}, {&out.LookupStateRoot, f.client.StateRoot, lookup.Hash},
	} {
		hash, err := root.ask(ctx, root.block)
		if err != nil {
			return jamq.RefineContext{}, err
		}
		*root.into = common.Hash(hash)
	}
	return out, nil
}

// Submission is a package on its way.
type Submission struct {
	// Core is whose guarantors get it, Hash and Context are the package's.
	Core    jamq.CoreIndex
	Hash    jamq.PackageHash
	Context jamq.RefineContext
	// Package is the encoded package, Extrinsics the data beside it.
	Package    []byte
	Extrinsics [][]byte
	// Bundle, if not nil, is the whole encoded bundle. It is sent instead where the node can take it.
	Bundle []byte
}

// Submit watches a package and sends it once. Errors have a class: see submit.ClassOf.
func (f *Feed) Submit(ctx context.Context, s Submission) error {
	if int(s.Core) >= f.spec.Cores {
		return submit.WithClass(submit.Fatal, fmt.Errorf("%w: core %d, want below %d", ErrInvalidConfig, s.Core, f.spec.Cores))
	}
	f.Watch(s.Hash, s.Context)
	if s.Bundle != nil {
		if err := f.client.SubmitWorkPackageBundle(ctx, s.Core, s.Bundle); !errors.Is(err, ErrUnsupported) {
			return err
		}
		f.log.Warn("the node takes no bundles, sending the package alone", "package", s.Hash)
	}
	return f.client.SubmitWorkPackage(ctx, s.Core, s.Package, s.Extrinsics)
}

// Watch tells the feed of a package before its bytes leave, so that every block from then on is asked about it. [Feed.Submit] does it; a host that
// sends by other ways, or has restarted with packages out, must do it itself, before Follow. The feed lets go of it when its fate is final.
func (f *Feed) Watch(pkg jamq.PackageHash, context jamq.RefineContext) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.watched[pkg]; !known {
		f.watched[pkg] = watched{context: context, anchor: f.tree.Get(context.Anchor)}
	}
}

// Known is what a queue that has restarted knows of one of its packages.
type Known struct {
	Package jamq.PackageHash
	Context jamq.RefineContext
	// Core is the core that it was reported on, if it was.
	Core jamq.CoreIndex
	// Reported, Available and Accumulated are the slots of the blocks in which that happened; 0 where it has not, up to the feed's root.
	Reported, Available, Accumulated jamq.Slot
}

// Restore tells a feed that was opened, and does not follow yet, of a package that may be out. What is known of it is not told again. It watches the
// package: see [Feed.Watch].
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
