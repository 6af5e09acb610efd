// Package anchor contains the rules for the life of a JAM work package. The
// rules determine the block at which to anchor the package, the last block that
// can report it, and the block from which on it is dead, so that a builder can
// safely replace it.
//
// All functions are pure: they read no clock and keep no state. Heights count
// blocks along one chain, and slots count time. The two are never mixed, because
// a slot may have no block. H is the length of recent history, 8 blocks on
// all known chains.
//
// # The window
//
// A package names an anchor block. It can be reported only in the H blocks
// after its anchor, on chains that contain the anchor (Gray Paper 11.33): see
// [LastReportable]. If the anchor is o blocks older than the newest block, H-o
// blocks are left. The last of them either reports the package or proves that the
// package is dead:
//
//	height   a    a+1  ...  a+o      a+o+1  ...  a+H      a+H+1
//	         |               |         |          |          |
//	       anchor         newest,    first      last      a new version can be sent,
//	                      package   chance     chance,    anchored at a+H or later
//	                       sent               or death
//
// The rotation of guarantors does not limit this window: the slot of a guarantee
// is not signed together with the report, so guarantors may sign the same report
// again in every rotation, as long as its anchor is recent. The age of the lookup
// anchor is limited separately, to L slots.
//
// # Choosing an anchor
//
// With an old anchor, a lost package can be replaced soon, but only a few blocks
// can report it. A new anchor has the opposite effects. Builders use the table of
// [Offset]. It leaves two blocks for the report if the queue is short, and one more
// for each round of bundles ahead. On the tiny chain with two cores, it is:
//
//	bundles ahead   0-1  2-3  4-5  6-7  8-9  10 and more
//	offset            6    5    4    3    2    1
//
// [Best] chooses an anchor by the delays of earlier packages, which the host counts
// in a [Delays]:
//
//	delays := anchor.NewDelays(&spec)
//	...
//	delays.Observe(int(reported.Height - sentAt.Height)) // for each reported package
//	delays.Lost(int(dead.Height - sentAt.Height))        // for each unreported dead package
//	...
//	offset := anchor.Best(&spec, delays.Estimate(), ahead, cores)
//
// [Pick] creates the refine context, the part of a package that names the anchor.
//
// # Proof of death
//
// [Dead] applies the rules D1 to D6 to the facts of one package on one chain. A
// package that is dead at a block is dead at every descendant of that block.
// This makes replacement safe. If all earlier versions are dead at a block, a
// new version that is anchored at this block can only be reported on chains that
// contain it, and on those chains the earlier versions can never accumulate.
// The proof needs no clock, no finality and no assumption about guarantors.
// [NextDeath] returns when to call Dead again.
//
// Package chainview collects the facts from imported blocks.
package anchor
