package codec

import (
	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// RecentHistory is the part of the JAM state that contains the last H blocks, C(3)
// (GP 7.1). A package can be reported only if its refine context agrees with it.
type RecentHistory struct {
	// Blocks are the last H blocks, oldest first.
	Blocks []RecentBlock
	// Log contains the peaks of the accumulation-output log, which is a Merkle
	// mountain range. The entry at i is the root of a tree of 2^i leaves, or nil if
	// the log has no such tree.
	Log []*common.Hash
}

// RecentBlock is a block in recent history.
type RecentBlock struct {
	// Hash is the hash of the block's header.
	Hash jamq.HeaderHash
	// BeefyRoot is the BEEFY root after the block: the super-peak of the accumulation-output log.
	BeefyRoot common.Hash
	// StateRoot is the root of the state after the block. It is zero for the newest
	// block, because only the header of the next block contains that root.
	StateRoot common.Hash
	// Slot is the slot of the block. The encoding contains it only from Gray Paper 0.8.0 on.
	Slot jamq.Slot
	// Reported lists the packages that the block reports. Each entry also has the
	// root of the segments that the package exports.
	Reported []SegmentLookup
}

func (x *RecentHistory) code(c *coder) {
	sequence(c, &x.Blocks, 3*hashSize+1, func(c *coder, b *RecentBlock) {
		hash(c, &b.Hash)
		hash(c, &b.BeefyRoot)
		hash(c, &b.StateRoot)
		if c.codec.version >= V080 {
			u32(c, &b.Slot)
		}
		sequence(c, &b.Reported, lookupSize, func(c *coder, l *SegmentLookup) {
			hash(c, &l.Package)
			hash(c, &l.SegmentRoot)
		})
	})
	sequence(c, &x.Log, 1, func(c *coder, peak **common.Hash) { optional(c, peak, "peak", hash[common.Hash]) })
}
