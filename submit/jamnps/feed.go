package jamnps

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/feed"
	"github.com/jamq/jamq/internal/headers"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/codec"
)

// FeedConfig configures a [Feed]. Zero fields get their defaults.
type FeedConfig struct {
	// Root is the block after which delivery begins. It must be final and known
	// to the queue. Zero means the finalized block of the first peer that
	// answers, which suits a new queue; that peer alone is then trusted for it.
	Root jamq.Block
	// Best is the best block that the sink knows, if the sink restarts and
	// knows blocks after Root. It stays the best block until the feed has
	// delivered a longer chain. Zero means Root.
	Best jamq.HeaderHash
	// FollowPeers is the number of the client's peers whose announcements the
	// feed follows, from 1 to the number of peers. They are the first ones of
	// Config.Peers. The default is 3, or all peers if there are fewer.
	FollowPeers int
	// FinalPeers is the number of followed peers that must report a block as
	// final, from 1 to FollowPeers. The default is more than half of
	// FollowPeers. If that many lie, a queue can give up packages that are
	// alive: see the package documentation.
	FinalPeers int
	// CheckFinal, if not nil, is called before the feed reports a block as final that
	// FinalPeers peers call final. If it returns an error, the block does not become
	// final, and the feed tries again. A host that verifies a justification here does
	// not trust its peers for finality, also with a FinalPeers of 1: see
	// Client.Justification and proof.Justification. Follow calls it on its own
	// goroutine, and waits.
	CheckFinal func(ctx context.Context, block jamq.HeaderHash) error
	// RecentHistory is the chain's length of recent history H, in blocks, at
	// least 3. The default is 8.
	RecentHistory int
	// MaxGap is the maximum number of blocks that the feed fetches to close a
	// gap, at least 1. The default is 16,384, the capacity of a queue. The feed
	// holds 8 MiB of them for each followed peer, and fetches the others twice. If
	// the final blocks of FinalPeers peers are further away, history is lost.
	MaxGap int
	// LostAfter is the number of slots for which the final blocks of FinalPeers peers
	// may contradict the delivered ones, at least 1. If they do for longer, Follow
	// returns ErrHistoryLost. The default is 16.
	LostAfter int
	// Validators returns the number of active validators in the epoch of a slot, or
	// 0 if it is not known, in which case the feed waits. An epoch without blocks
	// has the number of the epoch before. It is needed from Gray Paper 0.8.0 on,
	// because the size of sets changes, and must be nil before. Follow calls it for
	// each fetched block. codec.SetSizes follows the number from header to header.
	Validators func(slot jamq.Slot) int
	// Logger receives failures to follow the chain, at most one per minute. Nil
	// discards them.
	Logger *slog.Logger
}

const (
	defaultFollow  = 3
	defaultHistory = 8
	defaultMaxGap  = 16_384
)

// setDefaults replaces zero fields by their defaults and checks the others.
func (c *FeedConfig) setDefaults(peers int) error {
	for _, d := range []struct {
		have  *int
		value int
	}{{&c.FollowPeers, min(peers, defaultFollow)}, {&c.RecentHistory, defaultHistory}, {&c.MaxGap, defaultMaxGap}, {&c.LostAfter, feed.LostAfter}} {
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
	case c.RecentHistory < 3 || c.MaxGap < 1 || c.LostAfter < 1:
		return fmt.Errorf("%w: RecentHistory is %d, MaxGap %d and LostAfter %d, want at least 3, 1 and 1", ErrInvalidConfig, c.RecentHistory, c.MaxGap, c.LostAfter)
	}
	return nil
}

// Feed follows a chain through the announcements of peers and delivers its
// blocks. It implements submit.ChainFeed. Its methods are safe for concurrent
// use.
type Feed struct {
	cfg    FeedConfig
	client *Client
	log    *slog.Logger
	clock  jamq.SlotClock

	// These fields belong to Follow's goroutine. rooted means that no more
	// blocks before the root can be fetched. backoffs has one entry per peer.
	// short has the heights of heads that were fetched but not delivered.
	// highest is the height of the longest chain that was delivered. beneath
	// has, by the index of a peer, an ancestor of the block that the peer
	// reports as final, if the sink was full. unfinished has, by the index of a
	// peer, the ways of deliveries that have failed. lost has the errors of peers, by
	// their index, whose final blocks are out of reach or exclude the finalized block,
	// and excluded is the time for which they were enough peers.
	rooted     bool
	backoffs   []peerBackoff
	short      map[jamq.HeaderHash]uint64
	highest    uint64
	beneath    map[int]*node
	backing    backing
	unfinished []ways
	lost       map[int]error
	excluded   feed.Contradiction

	maxHeld int // defaultMaxHeld, lower in tests

	loop feed.Loop

	mu   sync.Mutex
	tree *headers.Tree[common.Hash]
}

// node is a delivered block with the state root in its header, which is that of
// its parent.
type node = headers.Block[common.Hash]

var _ submit.ChainFeed = (*Feed)(nil)

// OpenFeed connects to the followed peers if FeedConfig.Root is zero, and waits
// until one of them has announced its finalized block or ctx ends. Errors wrap
// ErrInvalidConfig, ErrDisconnected, ErrClosed or the error of ctx.
func OpenFeed(ctx context.Context, client *Client, cfg FeedConfig) (*Feed, error) {
	if err := cfg.setDefaults(len(client.peers)); err != nil {
		return nil, err
	}
	if v := client.cfg.Codec.Version(); v >= codec.V080 != (cfg.Validators != nil) {
		return nil, fmt.Errorf("%w: Validators is given: %t, want it from Gray Paper 0.8.0 on; the codec is of %v", ErrInvalidConfig, cfg.Validators != nil, v)
	}
	f := &Feed{
		cfg: cfg, client: client, log: cfg.Logger, backoffs: make([]peerBackoff, len(client.peers)), short: make(map[jamq.HeaderHash]uint64),
		beneath: make(map[int]*node), backing: make(backing), unfinished: make([]ways, len(client.peers)), lost: make(map[int]error), maxHeld: defaultMaxHeld,
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
	client.own = f.handshake // for later connections
	client.mu.Unlock()
	return f, nil
}

// firstFinal waits for the first peer that announces its finalized block.
func (f *Feed) firstFinal(ctx context.Context) (leaf, error) {
	for {
		failed := f.connectAll(ctx)
		for _, p := range f.peers() {
			if final, _, known := p.announced(); known {
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

// peers returns the followed peers.
func (f *Feed) peers() []*peer { return f.client.peers[:f.cfg.FollowPeers] }

// handshake returns the feed's own heads for a peer.
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

// Root returns the block after which delivery begins: that with which the queue
// of the sink begins.
func (f *Feed) Root() jamq.Block { return f.cfg.Root }

// heads returns the best and the finalized block among those delivered. The
// state root of the finalized block is zero until it has a child on the best
// chain; that of the best block is always zero.
func (f *Feed) heads() (best, finalized jamq.AnchorBlock) {
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

// Context returns a refine context for a package with the given anchor, which
// must have been delivered and must have a child on the best chain. The lookup
// anchor is the newest finalized block that has such a child. State roots are
// taken from headers of the best chain. No header contains the super-peak of
// the accumulation-output log, so Context requests recent history from the
// state (CE 129) and verifies it against such a root. The error wraps
// ErrHistoryLost if the anchor is unknown, or ErrNoState if it has no child on
// the best chain or is not in the recent history before the best block. Other
// errors are those of Client.fetchState.
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
		return jamq.RefineContext{}, fmt.Errorf("%w: anchor %s was not delivered or is too old", ErrHistoryLost, anchor)
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

// historyChapter is the index of recent history in the state, C(3).
const historyChapter = 3

// history returns the recent history after a block, verified against the state
// root.
func (f *Feed) history(ctx context.Context, block jamq.HeaderHash, root common.Hash) (codec.RecentHistory, error) {
	raw, err := f.chapter(ctx, block, root, historyChapter, insisting)
	if err != nil {
		return codec.RecentHistory{}, err
	}
	history, err := codec.Decode[codec.RecentHistory](f.client.cfg.Codec, raw)
	if err != nil {
		return codec.RecentHistory{}, fmt.Errorf("%w: recent history: %w", ErrMalformed, err)
	}
	return history, nil
}
