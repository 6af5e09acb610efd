package jamq

import "github.com/ethereum/go-ethereum/common"

// RefineContext is the part of a work package that ties the package to the chain: the
// block on which it was built, and the packages that must be accumulated before it
// (Gray Paper 11.4).
type RefineContext struct {
	// Anchor is a block of recent history. Only chains that contain this block can report the
	// package.
	Anchor HeaderHash
	// StateRoot is the state root after the anchor. The header of the next block is the
	// first that contains this root.
	StateRoot common.Hash
	// BeefyRoot is the peak of the anchor's accumulation-output log.
	BeefyRoot common.Hash
	// LookupAnchor is a block, normally a final one. Its state is used for preimage
	// lookups.
	LookupAnchor HeaderHash
	// LookupAnchorSlot is the slot of LookupAnchor.
	LookupAnchorSlot Slot
	// AnchorSlot is the slot of Anchor, and LookupStateRoot is the state root after
	// LookupAnchor. Both are part of the encoding from Gray Paper 0.8.0 on, and ignored in
	// older versions.
	AnchorSlot      Slot
	LookupStateRoot common.Hash
	// Prerequisites are packages that must be accumulated before this one,
	// ascending and without duplicates.
	Prerequisites []PackageHash
}

// AnchorBlock describes a block that may serve as an anchor.
type AnchorBlock struct {
	// Hash identifies the block.
	Hash HeaderHash
	// Slot is the slot of the block.
	Slot Slot
	// StateRoot is the posterior state root of the block.
	StateRoot common.Hash
	// BeefyRoot is the peak of the block's accumulation-output log.
	BeefyRoot common.Hash
}
