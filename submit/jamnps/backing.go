package jamnps

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jamq/jamq"
)

// errUnbacked is returned if the feed has delivered too many blocks that only few peers
// have announced, and therefore does not deliver a chain: see maxUnbacked.
var errUnbacked = errors.New("jamnps: too many blocks that too few peers have announced")

// maxUnbacked is the maximum number of delivered blocks that are not final and that
// fewer than enoughPeers peers have announced. Each followed peer may cause an equal
// share of them. The limit is a quarter of a queue's capacity, so that peers that
// invent blocks cannot fill the queue.
const maxUnbacked = defaultMaxGap / 4

// backing limits how many blocks the feed delivers on the word of a few peers, which may
// have invented them. For each such block it records which peers have announced the block or
// a descendant of it, beginning with the peer that caused the delivery. When enoughPeers
// peers have announced a block, its entry is removed.
//
// A peer that announces a block thereby also announces the block's ancestors. So if a
// block has no entry because enough peers have announced it, none of its ancestors has
// one.
type backing map[jamq.HeaderHash][]int

// announce records that a peer has announced a block and its ancestors.
func (b backing) announce(n *node, peer, enough int) {
	for ; n != nil; n = n.Parent {
		by, alone := b[n.Hash]
		// Enough peers have announced this block, or this peer has announced it before. In both
		// cases the same holds for its ancestors, so the walk ends here.
		if !alone || slices.Contains(by, peer) {
			return
		}
		if by = append(by, peer); len(by) >= enough {
			// Enough peers have announced the block now.
			delete(b, n.Hash)
			continue
		}
		b[n.Hash] = by
	}
}

// deliver records which peer has caused the delivery of a block.
func (b backing) deliver(hash jamq.HeaderHash, peer, enough int) {
	if enough > 1 {
		b[hash] = []int{peer}
	}
}

// caused returns how many blocks count against a peer's share of maxUnbacked.
func (b backing) caused(peer int) (n int) {
	for _, by := range b {
		if by[0] == peer {
			n++
		}
	}
	return n
}

// enoughPeers returns how many peers must announce a block that counts against no
// share.
func (f *Feed) enoughPeers() int {
	// The host verifies finality itself, so a single peer may be enough to make a block final.
	// A single peer must not, however, be able to fill the queue with invented blocks.
	if f.cfg.CheckFinal != nil && f.cfg.FollowPeers > 1 {
		return max(f.cfg.FinalPeers, 2)
	}
	return f.cfg.FinalPeers
}

// isProved reports whether the block that a peer calls final needs no second peer,
// because FeedConfig.CheckFinal accepts it.
func (f *Feed) isProved(ctx context.Context, final jamq.HeaderHash) bool {
	return f.enoughPeers() > f.cfg.FinalPeers && f.cfg.CheckFinal(ctx, final) == nil
}

// backed records that a peer has announced a delivered block.
func (f *Feed) backed(n *node, p *peer) { f.backing.announce(n, p.index, f.enoughPeers()) }

// room returns an error if delivering a branch would exceed the share of this peer in the
// blocks that too few peers have announced.
func (f *Feed) room(path []mark, p *peer) error {
	if f.enoughPeers() == 1 {
		return nil
	}
	// Only blocks that too few peers have announced count.
	alone := len(path) - f.known(path, p)
	share := maxUnbacked / f.cfg.FollowPeers
	if have := f.backing.caused(p.index); have+alone > share {
		return fmt.Errorf("%w: %s announces %d blocks besides %d, want at most %d together", errUnbacked, p.Addr, alone, have, share)
	}
	return nil
}

// known returns how many of the oldest blocks in path enough peers have announced.
func (f *Feed) known(path []mark, p *peer) int {
	reach := []int{len(path)} // for each peer, the number of blocks that it has announced
	for _, other := range f.peers() {
		final, leaves, known := other.announced()
		if other == p || !known {
			continue
		}
		heads := map[jamq.HeaderHash]bool{final.hash: true}
		for _, l := range leaves {
			heads[l.hash] = true
		}
		// path begins with the newest block. The first block in it that is one of the other
		// peer's heads was announced by that peer, and so were all older ones.
		newest := slices.IndexFunc(path, func(at mark) bool { return heads[at.hash] })
		if newest < 0 {
			newest = len(path)
		}
		reach = append(reach, len(path)-newest)
	}
	enough := f.enoughPeers()
	if len(reach) < enough {
		return 0
	}
	slices.Sort(reach)
	return reach[len(reach)-enough]
}

// forgetBacking drops what is known about blocks that are final or on an abandoned fork,
// because the queue no longer holds them.
func (f *Feed) forgetBacking() {
	for hash := range f.backing {
		// The block is final, or on a fork that was abandoned.
		if n := f.tree.Get(hash); n == nil || n.Height <= f.tree.Finalized().Height {
			delete(f.backing, hash)
		}
	}
}
