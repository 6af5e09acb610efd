// Package chainview derives the outcomes of work packages from imported JAM
// blocks. A [View] contains a bounded tree of blocks. For each package that the
// host watches, it returns the outcome on the best chain: unreported, reported,
// available, accumulated or dead.
//
//	v, err := chainview.New(&spec, genesis)
//	trace, err := v.Watch(pkg, chainview.Package{Anchor: a, LookupAnchorSlot: 3})
//	err = v.ImportBest(&block, block.Hash)
//	v.Changes(func(t *chainview.Trace) { fmt.Println(t.Package(), t.Status()) })
//
// The host imports each block after its parent, selects the best block, and
// marks blocks as final. The status of a package depends only on its hash and
// the head of a chain, so a reorg needs no undo. A View has no clock and is not
// safe for concurrent use. [View.AppendSnapshot] and [Restore] save and load it.
//
// # The derived state
//
// A View derives the recent history, the cores, the ready queue and the
// accumulated packages after each block: the parts C(3), C(10), C(14) and C(15)
// of the chain state in the Gray Paper. It needs only the headers, guarantees,
// assurances and verdicts. Package anchor decides whether a package is dead.
//
// The contents of a block do not show whether the block's gas limit has deferred
// reports of the ready queue. A host that can read the chain state therefore lists
// the accumulated packages and sets Block.AccumulatedKnown.
//
// # Heights
//
// A JAM header has no height. The view counts blocks from its first one, which
// has height 0. Therefore only differences between heights are meaningful.
//
// # Memory
//
// Finality prunes the tree. The view drops abandoned forks and keeps one epoch of
// the finalized chain, because accumulated packages are relevant for one epoch.
// Without finality the tree grows to [MaxUnfinalized] blocks, and Import then
// returns ErrFull. The view drops a forgotten package once no watched package
// depends on it.
package chainview
