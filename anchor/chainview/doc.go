// Package chainview keeps a bounded tree of imported JAM blocks, derives the state of every one of
// them as far as it concerns work packages, and says for the packages that its owner watches what
// became of each on the best chain: unreported, reported, available, accumulated or dead.
//
// It reads blocks only: headers, guarantees, assurances and verdicts. It holds no clock and calls
// nobody: the host imports each block after its parent, says which block is the best and which is
// finalized, and asks. The status of a package is a function of its hash and a chain's head, so a
// reorg needs no undoing: the answers are simply those of the new chain.
//
//	v, _ := chainview.New(&spec, genesis)
//	trace, _ := v.Watch(pkg, chainview.Package{Anchor: a, LookupAnchorSlot: 3})
//	v.ImportBest(&block, block.Hash)
//	v.Changes(func(t *chainview.Trace) { fmt.Println(t.Package(), t.Status()) })
//
// # What it derives
//
// [View.State] is the recent history, the cores, the ready queue and the accumulated packages after
// the best block: the state chapters C(3), C(10), C(14) and C(15). state.go holds the rules of
// cores, ready.go those of accumulation, reportable.go what a block may report (R1 to R5); package
// anchor says when a package is dead. One thing no block shows: that the gas of a block deferred a
// report of the ready queue. A host that sees the state sets Block.AccumulatedKnown.
//
// # Heights
//
// A JAM header has no height. The view numbers blocks from the one that it was made with; only
// differences between heights mean anything.
//
// # Memory
//
// Finality prunes: forks that lost are dropped, and of the finalized chain the view keeps an epoch,
// since accumulated packages are remembered as long. Without finality the tree grows up to
// [MaxUnfinalized] blocks; then Import refuses.
package chainview
