package codec

import (
	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// RecentHistory is the part C(3) of the state (GP 7.1), which refine contexts
// are checked against.
type RecentHistory struct {
	// Blocks are the last H blocks, oldest first.
	Blocks []RecentBlock
	// Log has the peaks of the accumulation-output log, a Merkle mountain
	// range. An entry is nil if the range has no peak of that size.
	Log []*common.Hash
}

// RecentBlock is a block in recent history.
type RecentBlock struct {
	// Hash is the hash of the block's header.
	Hash jamq.HeaderHash
	// BeefyRoot is the super-peak of the accumulation-output log after the
	// block.
	BeefyRoot common.Hash
	// StateRoot is the state root after the block. It is zero for the newest
	// block, because only the next header contains its root.
	StateRoot common.Hash
	// Slot is the slot of the block. It is part of the encoding from Gray Paper
	// 0.8.0 on.
	Slot jamq.Slot
	// Reported are the packages that the block reports, with the roots of the
	// segments that they export.
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
