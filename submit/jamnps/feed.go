package jamnps

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/internal/headers"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/codec"
)

// FeedConfig says what a feed follows.
type FeedConfig struct {
	// Root is the block from which on blocks are delivered: final, and known to the queue. Zero means the finalized block of the first peer that
	// answers, for a queue that begins now: it alone is believed with that.
	Root jamq.Block
	// Best is the best block that the sink knows, where it restarts and knows more than Root: it stays the best until the feed has delivered a chain.
	// Zero means Root.
	Best jamq.HeaderHash
	// FollowPeers is how many of the client's peers are kept connected for their announcements, at least 1; all up to 3 by default.
	FollowPeers int
	// FinalPeers is how many of them must hold a block for final, from 1 to FollowPeers; more than half of FollowPeers by default. With as many liars
	// among them a queue can be made to give up what is alive: see the package's doc.
	FinalPeers int
	// RecentHistory is the chain's H, at least 3; 8 by default.
	RecentHistory int
	// MaxGap is how many blocks are fetched at most to close a gap, at least 1; 16,384 by default, which is what a queue holds.
	MaxGap int
	// Logger gets what an operator should know. Nil is silent.
	Logger *slog.Logger
}

const (
	defaultFollow  = 3
	defaultHistory = 8
	defaultMaxGap  = 16_384
)

// setDefaults fills in what is zero and checks the rest.
func (c *FeedConfig) setDefaults(peers int) error {
	for _, d := range []struct {
		have  *int
		value int
	}{{&c.FollowPeers, min(peers, defaultFollow)}, {&c.RecentHistory, defaultHistory}, {&c.MaxGap, defaultMaxGap}} {
		if *d.have == 0 {
			*d.have = d.value
		}
	}
	if c.FinalPeers == 0 {
		c.FinalPeers = c.FollowPeers/2 + 1
	}
	switch {
	case c.FollowPeers < 1 || c.FollowPeers > peers:
		return fmt.Errorf("%w: FollowPeers is %d, want 1 to %d", ErrInvalidConfig, c.FollowPeers, peers)
	case c.FinalPeers < 1 || c.FinalPeers > c.FollowPeers:
		return fmt.Errorf("%w: FinalPeers is %d, want 1 to FollowPeers %d", ErrInvalidConfig, c.FinalPeers, c.FollowPeers)
	case c.RecentHistory < 3 || c.MaxGap < 1:
		return fmt.Errorf("%w: RecentHistory is %d and MaxGap %d, want at least 3 and 1", ErrInvalidConfig, c.RecentHistory, c.MaxGap)
	}
	return nil
}

// Feed follows a chain by what peers announce, and delivers its blocks. It is a submit.ChainFeed. Its methods are safe for concurrent use.
type Feed struct {
	cfg    FeedConfig
	client *Client
	log    *slog.Logger
	clock  jamq.SlotClock

	// Only of the goroutine that follows. rooted says that nothing more is to be had from before the root; doubts are by peer; short are the heights of heads
	// that were fetched and not delivered.
	rooted bool
	doubts []doubt
	short  map[jamq.HeaderHash]uint64

	mu        sync.Mutex
	tree      *headers.Tree[common.Hash]
	following bool
}

// node is a block that was delivered, with the state root before it, as its header says.
type node = headers.Block[common.Hash]

var _ submit.ChainFeed = (*Feed)(nil)

// OpenFeed connects to the first of the client's peers, and takes the finalized block of one of them for root if none is given. It waits for that until
// ctx ends. Errors wrap ErrInvalidConfig, ErrDisconnected, ErrClosed or ctx's error.
func OpenFeed(ctx context.Context, client *Client, cfg FeedConfig) (*Feed, error) {
	if err := cfg.setDefaults(len(client.peers)); err != nil {
		return nil, err
	}
	f := &Feed{
		cfg: cfg, client: client, log: cfg.Logger, doubts: make([]doubt, len(client.peers)), short: make(map[jamq.HeaderHash]uint64),
		clock: jamq.NewSlotClock(client.cfg.Codec.Spec()),
	}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	root := leaf{f.cfg.Root.Hash, f.cfg.Root.Slot}
	if root.hash.IsZero() {
		var err error
		if root, err = f.firstFinal(ctx); err != nil {
			return nil, err
		}
		f.cfg.Root = jamq.Block{Hash: root.hash, Slot: root.slot}
	}
	f.tree = headers.New(root.hash, f.cfg.Best, root.slot, f.cfg.RecentHistory, common.Hash{})
	client.mu.Lock()
	client.own = f.handshake // for the connections to come
	client.mu.Unlock()
	return f, nil
}

// firstFinal waits for the first peer that says what is final.
func (f *Feed) firstFinal(ctx context.Context) (leaf, error) {
	for {
		failed := f.connectAll(ctx)
		for _, p := range f.peers() {
			if final, _, known := p.announcedBy(); known {
				return final, nil
			}
		}
		if ctx.Err() != nil {
			return leaf{}, fmt.Errorf("%w: no peer has announced anything: %w", ErrDisconnected, ctx.Err())
		}
		if !f.sleep(ctx, failed) && ctx.Err() == nil {
			return leaf{}, ErrClosed
		}
	}
}

// peers are those whose announcements count.
func (f *Feed) peers() []*peer { return f.client.peers[:f.cfg.FollowPeers] }

// handshake tells a peer what we have.
func (f *Feed) handshake() handshake {
	f.mu.Lock()
	defer f.mu.Unlock()
	best, final := f.tree.Best(), f.tree.Finalized()
	h := handshake{final: leaf{final.Hash, final.Slot}}
	if best != final {
		h.leaves = []leaf{{best.Hash, best.Slot}}
	}
	return h
}

// Root returns the block from which on blocks are delivered: what submit.NewRunner wants.
func (f *Feed) Root() jamq.Block { return f.cfg.Root }

// Heads returns the best and the finalized block among those delivered. Their state roots are known, and not zero, once they have children on the best chain.
func (f *Feed) Heads() (best, finalized jamq.AnchorBlock) {
	f.mu.Lock()
	defer f.mu.Unlock()
	finalized = jamq.AnchorBlock{Hash: f.tree.Finalized().Hash, Slot: f.tree.Finalized().Slot}
	for n := f.tree.Best(); n.Parent != nil; n = n.Parent {
		if n.Parent == f.tree.Finalized() {
			finalized.StateRoot = n.Note
		}
	}
	return jamq.AnchorBlock{Hash: f.tree.Best().Hash, Slot: f.tree.Best().Slot}, finalized
}

// Context returns a refine context for a package anchored at a block of the best chain that was delivered and has a child on it, with the newest finalized one
// that has a child as lookup anchor. State roots are those that headers of the best chain carry. The peak of the accumulation-output log stands in no block,
// so it asks peers for the recent history in the state (CE 129), and takes none that is not proved by such a root. Errors wrap ErrHistoryLost for an anchor that
// is not known, ErrNoState for one that the recent history before the best block does not hold, or are those of [Client.State].
func (f *Feed) Context(ctx context.Context, anchor jamq.HeaderHash, prerequisites []jamq.PackageHash) (jamq.RefineContext, error) {
	out := jamq.RefineContext{Anchor: anchor, Prerequisites: slices.Clone(prerequisites)}
	slices.SortFunc(out.Prerequisites, jamq.PackageHash.Compare)
	out.Prerequisites = slices.Compact(out.Prerequisites)
	f.mu.Lock()
	known, newest := f.tree.Get(anchor), f.tree.Best()
	for n := f.tree.Best(); n.Parent != nil; n = n.Parent {
		at := n.Parent
		if at.Hash == anchor {
			out.AnchorSlot, out.StateRoot = at.Slot, n.Note
		}
		if at.Height <= f.tree.Finalized().Height && out.LookupAnchor.IsZero() {
			out.LookupAnchor, out.LookupAnchorSlot, out.LookupStateRoot = at.Hash, at.Slot, n.Note
		}
	}
	f.mu.Unlock()
	switch {
	case known == nil:
		return jamq.RefineContext{}, fmt.Errorf("%w: anchor %s was not delivered, or too long ago", ErrHistoryLost, anchor)
	case out.StateRoot == (common.Hash{}):
		return jamq.RefineContext{}, fmt.Errorf("%w: anchor %s has no child on the best chain", ErrNoState, anchor)
	}
	history, err := f.history(ctx, newest.Parent.Hash, newest.Note)
	if err != nil {
		return jamq.RefineContext{}, err
	}
	i := slices.IndexFunc(history.Blocks, func(b codec.RecentBlock) bool { return b.Hash == anchor })
	if i < 0 {
		return jamq.RefineContext{}, fmt.Errorf("%w: anchor %s is none of the %d blocks before %s", ErrNoState, anchor, len(history.Blocks), newest.Hash)
	}
	out.BeefyRoot = history.Blocks[i].BeefyRoot
	return out, nil
}

// historyChapter is the recent history, C(3), and maxHistory how many bytes of it are asked for: H blocks with a report on each core take less.
const (
	historyChapter = 3
	maxHistory     = 1 << 20
)

// history returns the recent history after a block, proved by the state root.
func (f *Feed) history(ctx context.Context, block jamq.HeaderHash, root common.Hash) (codec.RecentHistory, error) {
	key := proof.ChapterKey(historyChapter)
	return anyPeer(f.client, nil, func(peer int) (codec.RecentHistory, error) {
		state, err := f.client.State(ctx, peer, block, key, key, maxHistory)
		if err == nil {
			err = state.Verify(root, key, key)
		}
		if err != nil {
			return codec.RecentHistory{}, err
		}
		if len(state.Entries) != 1 {
			return codec.RecentHistory{}, fmt.Errorf("%w: no recent history after %s", ErrNoState, block)
		}
		history, err := codec.Decode[codec.RecentHistory](f.client.cfg.Codec, state.Entries[0].Value)
		if err != nil {
			return codec.RecentHistory{}, fmt.Errorf("%w: recent history: %w", ErrMalformed, err)
		}
		return history, nil
	})
}
