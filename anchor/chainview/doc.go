// Package chainview derives the state of work packages from imported JAM
// blocks. A [View] keeps a bounded tree of blocks. For each package that the
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
// of the chain state in the Gray Paper. It needs headers, guarantees, assurances
// and verdicts only. The rules of cores and of accumulation are in state.go.
// Package anchor decides when a package is dead. Blocks do not show one case:
// the gas of a block may have deferred a report of the ready queue. A host that
// sees the chain state sets Block.AccumulatedKnown.
//
// # Heights
//
// A JAM header has no height. The view counts blocks from the one that it was
// created with. Only differences between heights are meaningful.
//
// # Memory
//
// Finality prunes the tree. The view drops abandoned forks and keeps one epoch
// of the finalized chain, because accumulated packages are relevant for one
// epoch. Without finality the tree grows to [MaxUnfinalized] blocks. Import then
// returns ErrFull. A forgotten package stays as long as a watched one needs it.
package chainview
