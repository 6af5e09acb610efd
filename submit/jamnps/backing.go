package jamnps

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jamq/jamq"
)

// errUnbacked is returned for a chain that would exceed maxUnbacked.
var errUnbacked = errors.New("jamnps: too many blocks that too few peers have announced")

// maxUnbacked is the number of delivered blocks after the finalized one that
// fewer than FinalPeers peers have announced, all peers together. It is a
// quarter of the capacity of a queue, so that peers that invent blocks cannot
// fill the queue. Each followed peer has an equal share.
const maxUnbacked = defaultMaxGap / 4

// backing records which peers have announced a delivered block or a descendant
// of it. It has an entry for each block that fewer than enough peers have
// announced. The first peer of an entry is the one whose announcement caused
// the delivery.
//
// A peer that announces a block announces its ancestors. The ancestors of a
// block without an entry therefore have no entry either.
type backing map[jamq.HeaderHash][]int

// announce records that a peer has announced a delivered block.
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

// deliver adds an entry for a block that was delivered because of a peer's
// announcement.
func (b backing) deliver(hash jamq.HeaderHash, peer, enough int) {
	if enough > 1 {
		b[hash] = []int{peer}
	}
}

// caused returns the number of blocks with an entry that a peer has caused.
func (b backing) caused(peer int) (n int) {
	for _, by := range b {
		if by[0] == peer {
			n++
		}
	}
	return n
}

// backed notes that a peer announced a delivered block.
func (f *Feed) backed(n *node, p *peer) { f.backing.announce(n, p.index, f.cfg.FinalPeers) }

// room returns an error that wraps errUnbacked if a peer's share of the queue
// has no room for the blocks on a path, newest first. Blocks up to the newest one
// that enough peers report as final or as a head need no room.
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

// known returns the number of blocks on a path, counted from the oldest one, that
// enough peers including p have announced.
func (f *Feed) known(path []mark, p *peer) int {
	reach := []int{len(path)} // of each peer
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
// fork.
func (f *Feed) forgetBacking() {
	for hash := range f.backing {
		if n := f.tree.Get(hash); n == nil || n.Height <= f.tree.Finalized().Height {
			delete(f.backing, hash)
		}
	}
}
