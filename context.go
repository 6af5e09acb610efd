package jamq

import "github.com/ethereum/go-ethereum/common"

// RefineContext ties a work package to the chain (GP 11.4): the block that it was built on and what must come before it.
type RefineContext struct {
	// Anchor is a block of recent history; the package can be reported only on chains that contain it.
	Anchor HeaderHash
	// StateRoot is the anchor's posterior state root. The next block's header is the first to carry it.
	StateRoot common.Hash
	// BeefyRoot is the peak of the anchor's accumulation-output log.
	BeefyRoot common.Hash
	// LookupAnchor is a block, usually finalized, whose state serves preimage look-ups.
	LookupAnchor HeaderHash
	// LookupAnchorSlot is the slot of that block.
	LookupAnchorSlot Slot
	// AnchorSlot is the anchor's slot and LookupStateRoot the lookup anchor's posterior state root. From Gray Paper 0.8.0 on they are part
	// of the encoding; before, they are not read.
	AnchorSlot      Slot
	LookupStateRoot common.Hash
	// Prerequisites are packages that must be accumulated before this one, ascending and distinct.
	Prerequisites []PackageHash
}

// AnchorBlock is what a host knows about a block that may serve as an anchor.
type AnchorBlock struct {
	// Hash identifies the block.
	Hash HeaderHash
	// Slot is the block's own slot.
	Slot Slot
	// StateRoot is its posterior state root.
	StateRoot common.Hash
	// BeefyRoot is the peak of its accumulation-output log.
	BeefyRoot common.Hash
}
