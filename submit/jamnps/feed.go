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
	// Root is the block after which the feed begins to deliver. It must be final, and the
	// queue must know it. A zero Root means the finalized block of the first peer that
	// answers, which is the right choice for a new queue. The feed then trusts that single
	// peer for the root.
	Root jamq.Block
	// Best is the best block that the sink knows. A host sets it after a restart if its
	// queue has blocks after Root, so that the restart does not look like a reorg. The feed
	// reports Best as the best block until it has delivered a longer chain. Zero means
	// Root.
	Best jamq.HeaderHash
	// FollowPeers is the number of peers whose announcements the feed follows: the first
	// peers in Config.Peers. It must be between 1 and the number of peers. The default is
	// 3, or all peers if there are fewer.
	FollowPeers int
	// FinalPeers is how many of the followed peers must call a block final before the feed
	// reports it as final. It must be between 1 and FollowPeers. The default is more than half
	// of FollowPeers. If FinalPeers peers lie together, a queue may take packages for dead that
	// are alive, and execute their transactions again: see the package documentation.
	//
	// If FinalPeers is 1 and CheckFinal is nil, every followed peer is trusted: it
	// can make invented blocks final, and fill the queue with such blocks.
	FinalPeers int
	// CheckFinal, if not nil, is called before the feed reports a block as final, after
	// FinalPeers peers have reported the block. If CheckFinal returns an error, the block
	// does not become final, and Health.LastError names the peers. The feed then checks the
	// next lower block that peers report, and tries again later.
	//
	// A host that verifies a justification here need not trust its peers for finality, even
	// if FinalPeers is 1: see Client.Justification and proof.Justification. Follow calls
	// CheckFinal on its own goroutine and waits for the result.
	CheckFinal func(ctx context.Context, block jamq.HeaderHash) error
	// RecentHistory is the length of the chain's recent history (H), in blocks. It must be at least
	// 3. The default is 8.
	RecentHistory int
	// MaxGap is the maximum number of blocks that the feed fetches in order to connect an
	// announced block with the delivered ones. It must be at least 1. The default is
	// 16,384, the capacity of a queue. If the final blocks of FinalPeers peers are more
	// than MaxGap blocks away, Follow returns ErrHistoryLost. For each followed peer, the
	// feed keeps up to 8 MiB of fetched blocks. It fetches further blocks a second time
	// when it delivers them.
	MaxGap int
	// LostAfter is how long, in slots, peers may contradict the delivered blocks before Follow
	// gives up and returns ErrHistoryLost. During all that time, FinalPeers peers must report
	// final blocks that do not fit the delivered ones, and fewer than FinalPeers peers blocks
	// that do. LostAfter must be at least 1. The default is 16.
	LostAfter int
	// Logger receives a message if the feed cannot follow the chain, at most one per
	// minute. If Logger is nil, nothing is logged.
	Logger *slog.Logger
}

const (
	defaultFollow  = 3
	defaultHistory = 8
	defaultMaxGap  = 16_384
)

// setDefaults replaces zero fields by their defaults, and checks the ranges. peers is
// the number of the client's peers.
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

// Feed follows a JAM chain through the announcements of peers. It fetches the announced
// blocks and delivers them to a queue. It implements submit.ChainFeed, and its methods
// are safe for concurrent use.
type Feed struct {
	cfg    FeedConfig
	client *Client
	log    *slog.Logger
	clock  jamq.SlotClock

	// Only the goroutine that runs Follow uses these fields:
	//
	//   - rooted is true if no more blocks before the root can be fetched.
	//   - backoffs has one entry for each peer: see peerBackoff.
	//   - short has the heights of heads that were fetched but not delivered,
	//     because their chains were too short.
	//   - highest is the height of the longest chain that was delivered.
	//   - beneath has an entry for a peer, by its index, if the sink had no
	//     room for the block that the peer reports as final. The entry is the
	//     newest delivered ancestor of that block.
	//   - backing records how many peers have announced a delivered block.
	//   - unfinished has, for each peer, the lists of blocks whose delivery has
	//     failed, so that the feed can continue them later.
	//   - lost has an entry for a peer, by its index, if its final block is out
	//     of reach or on a chain without the finalized block. The entry is the
	//     error.
	//   - furthest has, for each peer, the slot of the newest delivered block that
	//     the peer has ever called final.
	//   - excluded measures for how long enough peers have had an entry in
	//     lost.
	rooted     bool
	backoffs   []peerBackoff
	short      map[jamq.HeaderHash]uint64
	highest    uint64
	beneath    map[int]*node
	backing    backing
	unfinished []branches
	lost       map[int]error
	furthest   map[int]jamq.Slot
	excluded   feed.Contradiction

	maxHeld int // defaultMaxHeld, lower in tests

	loop feed.Loop

	mu   sync.Mutex
	tree *headers.Tree[note]
}

// node is a delivered block.
type node = headers.Block[note]

// note has the facts that the feed remembers about a delivered block.
type note struct {
	// root is the state root in the block's header. It is the root after the block's
	// parent.
	root common.Hash
	// sizes are the sizes of the validator sets after the block, or zero if they are
	// unknown: see sizesAfter.
	sizes codec.SetSizes
}

var _ submit.ChainFeed = (*Feed)(nil)

// OpenFeed returns a feed that follows a client's peers. If FeedConfig.Root is zero, it
// connects to these peers and waits until one of them has announced its finalized
// block, or until ctx ends. Errors wrap ErrInvalidConfig, ErrDisconnected, ErrClosed or
// the error of ctx.
func OpenFeed(ctx context.Context, client *Client, cfg FeedConfig) (*Feed, error) {
	if err := cfg.setDefaults(len(client.peers)); err != nil {
		return nil, err
	}
	f := &Feed{
		cfg: cfg, client: client, log: cfg.Logger, backoffs: make([]peerBackoff, len(client.peers)), short: make(map[jamq.HeaderHash]uint64),
		beneath: make(map[int]*node), backing: make(backing), unfinished: make([]branches, len(client.peers)), lost: make(map[int]error), furthest: make(map[int]jamq.Slot), maxHeld: defaultMaxHeld,
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
	f.tree = headers.New(root.hash, f.cfg.Best, root.slot, f.cfg.RecentHistory, note{})
	client.mu.Lock()
	client.own = f.handshake // for later connections
	client.mu.Unlock()
	return f, nil
}

// firstFinal connects to the followed peers, and returns the finalized block of the
// first peer that announces one.
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

// handshake returns the feed's own finalized block and best block. The client announces
// them to each peer to which it connects.
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

// Root returns the block after which the feed begins to deliver. The sink's queue must
// begin with the same block.
func (f *Feed) Root() jamq.Block { return f.cfg.Root }

// heads returns the best block and the finalized block that the feed has delivered.
func (f *Feed) heads() (best, finalized jamq.AnchorBlock) {
	f.mu.Lock()
	defer f.mu.Unlock()
	finalized = jamq.AnchorBlock{Hash: f.tree.Finalized().Hash, Slot: f.tree.Finalized().Slot}
	for n := f.tree.Best(); n.Parent != nil; n = n.Parent {
		// The state root after a block is in the header of its child. It stays zero for
		// a block without a child, such as the best block.
		if n.Parent == f.tree.Finalized() {
			finalized.StateRoot = n.Note.root
		}
	}
	return jamq.AnchorBlock{Hash: f.tree.Best().Hash, Slot: f.tree.Best().Slot}, finalized
}

// Context returns the refine context for a package with the given anchor. The feed must
// have delivered the anchor and a child of the anchor on the best chain. The lookup
// anchor is the newest finalized block that has such a child.
//
// The state roots come from headers of the best chain. The super-peak of the
// accumulation-output log is in no header. Context therefore requests the recent
// history from the state (CE 129), and verifies it against one of these state roots.
// The error is one of Client.fetchState or wraps one of these:
//
//   - ErrHistoryLost: the anchor was not delivered or is too old.
//   - ErrNoState: the anchor has no child on the best chain, or is not in the
//     recent history before the best block.
func (f *Feed) Context(ctx context.Context, anchor jamq.HeaderHash, prerequisites []jamq.PackageHash) (jamq.RefineContext, error) {
	out := jamq.RefineContext{Anchor: anchor, Prerequisites: slices.Clone(prerequisites)}
	slices.SortFunc(out.Prerequisites, jamq.PackageHash.Compare)
	out.Prerequisites = slices.Compact(out.Prerequisites)
	f.mu.Lock()
	known, newest := f.tree.Get(anchor), f.tree.Best()
	for n := f.tree.Best(); n.Parent != nil; n = n.Parent {
		at := n.Parent
		if at.Hash == anchor {
			out.AnchorSlot, out.StateRoot = at.Slot, n.Note.root
		}
		if at.Height <= f.tree.Finalized().Height && out.LookupAnchor.IsZero() {
			out.LookupAnchor, out.LookupAnchorSlot, out.LookupStateRoot = at.Hash, at.Slot, n.Note.root
		}
	}
	f.mu.Unlock()
	switch {
	case known == nil:
		return jamq.RefineContext{}, fmt.Errorf("%w: anchor %s was not delivered or is too old", ErrHistoryLost, anchor)
	case out.StateRoot == (common.Hash{}):
		return jamq.RefineContext{}, fmt.Errorf("%w: anchor %s has no child on the best chain", ErrNoState, anchor)
	}
	history, err := f.history(ctx, newest.Parent.Hash, newest.Note.root)
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

// historyChapter is the number of the recent history in the JAM state: C(3) in the Gray
// Paper.
const historyChapter = 3

// history returns the recent history after a block. It requests the history from peers,
// and verifies it against the state root.
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
