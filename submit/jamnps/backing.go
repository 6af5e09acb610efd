package jamnps

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jamq/jamq"
)

// errUnbacked is returned if the feed does not deliver a chain because the
// delivered blocks that too few peers have announced would then exceed the
// limit: see maxUnbacked.
var errUnbacked = errors.New("jamnps: too many blocks that too few peers have announced")

// maxUnbacked is the maximum number of delivered blocks that are not final and
// that fewer than FinalPeers peers have announced. It is a quarter of the
// capacity of a queue, so that peers that invent blocks cannot fill the queue.
// The followed peers have equal shares of it.
const maxUnbacked = defaultMaxGap / 4

// backing records which peers have announced a delivered block or a descendant
// of it. It has an entry only for blocks that fewer than FinalPeers peers have
// announced. The first peer in an entry is the peer whose announcement caused
// the delivery.
//
// A peer that announces a block thereby also announces its ancestors. If a
// block has no entry because enough peers have announced it, its ancestors
// therefore have none either.
type backing map[jamq.HeaderHash][]int

// announce records that a peer has announced a delivered block, and thereby all
// its ancestors. When the number of peers that have announced a block reaches
// enough, announce deletes the entry of the block.
func (b backing) announce(n *node, peer, enough int) {
	for ; n != nil; n = n.Parent {
		by, alone := b[n.Hash]
		if !alone || slices.Contains(by, peer) {
			return
		}
		if by = append(by, peer); len(by) >= enough {
			delete(b, n.Hash)
			continue
		}
		b[n.Hash] = by
	}
}

// deliver adds the entry for a block that was just delivered because peer has
// announced it. If enough is 1, no entry is needed.
func (b backing) deliver(hash jamq.HeaderHash, peer, enough int) {
	if enough > 1 {
		b[hash] = []int{peer}
	}
}

// caused returns how many of the blocks with an entry were delivered because of
// this peer. This number may not exceed the peer's share of maxUnbacked.
func (b backing) caused(peer int) (n int) {
	for _, by := range b {
		if by[0] == peer {
			n++
		}
	}
	return n
}

// backed records that a peer has announced a delivered block.
func (f *Feed) backed(n *node, p *peer) { f.backing.announce(n, p.index, f.cfg.FinalPeers) }

// room returns an error that wraps errUnbacked if the blocks on a path (newest
// first) would exceed the peer's share of maxUnbacked. Only blocks that fewer
// than FinalPeers peers have announced count: see known.
func (f *Feed) room(path []mark, p *peer) error {
	if f.cfg.FinalPeers == 1 {
		return nil
	}
	alone := len(path) - f.known(path, p)
	share := maxUnbacked / f.cfg.FollowPeers
	if have := f.backing.caused(p.index); have+alone > share {
		return fmt.Errorf("%w: %s announces %d blocks besides %d, want at most %d together", errUnbacked, p.Addr, alone, have, share)
	}
	return nil
}

// known returns how many of the oldest blocks of a path were announced by at
// least FinalPeers peers, p included. path is in the order of the newest block
// first. A peer has announced a block if it reports the block, or a descendant
// on the path, as final or as a head.
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
		newest := slices.IndexFunc(path, func(at mark) bool { return heads[at.hash] })
		if newest < 0 {
			newest = len(path)
		}
		reach = append(reach, len(path)-newest)
	}
	if len(reach) < f.cfg.FinalPeers {
		return 0
	}
	slices.Sort(reach)
	return reach[len(reach)-f.cfg.FinalPeers]
}

// forgetBacking removes the entries of blocks that are final or on an abandoned
// fork, because such blocks no longer take room in the queue.
func (f *Feed) forgetBacking() {
	for hash := range f.backing {
		if n := f.tree.Get(hash); n == nil || n.Height <= f.tree.Finalized().Height {
			delete(f.backing, hash)
		}
	}
}
