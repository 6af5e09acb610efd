package codec

import (
	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// RecentHistory is the state chapter C(3) (GP 7.1): what refine contexts are checked against.
type RecentHistory struct {
	// Blocks are the last H blocks, oldest first.
	Blocks []RecentBlock
	// Log are the peaks of the accumulation-output log, a Merkle mountain range; nil where there is none of that size.
	Log []*common.Hash
}

// RecentBlock is a block in the recent history.
type RecentBlock struct {
	// Hash is its header's hash.
	Hash jamq.HeaderHash
	// BeefyRoot is the super-peak of the accumulation-output log after it.
	BeefyRoot common.Hash
	// StateRoot is the root after it; zero for the newest one, whose root nobody knows before its child.
	StateRoot common.Hash
	// Reported are the packages that it reports, with the roots of the segments that they export.
	Reported []SegmentLookup
}

func (x *RecentHistory) code(c *coder) {
	sequence(c, &x.Blocks, 3*hashSize+1, func(c *coder, b *RecentBlock) {
		hash(c, &b.Hash)
		hash(c, &b.BeefyRoot)
		hash(c, &b.StateRoot)
		sequence(c, &b.Reported, lookupSize, func(c *coder, l *SegmentLookup) {
			hash(c, &l.Package)
			hash(c, &l.SegmentRoot)
		})
	})
	sequence(c, &x.Log, 1, func(c *coder, peak **common.Hash) { optional(c, peak, "peak", hash[common.Hash]) })
}
