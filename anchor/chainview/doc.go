// Package chainview keeps a bounded tree of imported JAM blocks and says, for the work packages that its owner
// watches, what became of each on the best chain: unreported, reported, available, accumulated or dead.
//
// It reads blocks only. It holds no clock and calls nobody: the host imports each block after its parent,
// says which block is the best and which is finalized, and asks. The status of a package is a function of its
// hash and a chain's head, so a reorg needs no undoing: the answers are simply those of the new chain.
//
//	v, _ := chainview.New(&spec, genesis)
//	v.Watch(pkg, chainview.Package{Anchor: a, AnchorHeight: 7, LookupAnchorSlot: 3})
//	v.Import(block)
//	v.SetBest(block.Hash)
//	status, _ := v.Status(pkg)
//
// # Heights
//
// A JAM header has no height. The view numbers blocks from the one that it was made with, which has height 0;
// only differences between heights mean anything.
//
// # Memory
//
// Finality prunes: forks that lost are dropped, and of the finalized chain the view keeps what anchors can still
// refer to. Without finality the tree grows up to [MaxUnfinalized] blocks; then Import refuses.
package chainview
