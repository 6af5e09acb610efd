// Package anchor holds the rules that decide when a JAM work package lives: which block to anchor it to,
// how long it can be reported, and from which block on it is dead.
//
// Everything here is a pure function of its arguments: no clock is read, nothing is remembered, nothing but jamq is
// imported. Heights count blocks along one chain, slots count time; the two are never mixed, because slots may be
// skipped. H is the length of recent history, 8 blocks on all known chains.
//
// # The window
//
// A package names an anchor block. It can be reported only in the H blocks after it, on chains that contain it
// (GP 11.33): [WindowOf]. An anchor o blocks behind the newest therefore leaves H-o blocks, and right after them the
// package is provably dead:
//
//	height   a    a+1  ...  a+o      a+o+1  ...  a+H      a+H+1
//	         |               |         |          |          |
//	       anchor         newest,    first      last      a new version can be sent,
//	                      package   chance     chance,    anchored at a+H or later
//	                       sent               or death
//
// The rotation of guarantors bounds nothing of this, see [GuaranteeSlots]. The lookup anchor has an age of its own, in
// slots: [LookupExpires].
//
// # Choosing an anchor
//
// An old anchor makes a lost package replaceable soon and gives it few chances; a fresh one does the reverse. [Offset]
// is the table that builders use: with the queue short it leaves two blocks, and each round of bundles ahead leaves one
// more. On the tiny chain with two cores:
//
//	bundles ahead   0-1  2-3  4-5  6-7  8-9  10 and more
//	offset            6    5    4    3    2    1
//
// [Best] derives the choice from what is observed. The host counts the delays of its packages in a [Delays]:
//
//	delays := anchor.NewDelays(&spec)
//	...
//	delays.Observe(int(reported.Height - sentAt.Height)) // for each package reported
//	delays.Lost(int(dead.Height - sentAt.Height))        // for each package dead unreported
//	...
//	offset := anchor.Best(&spec, delays.Estimate(), ahead, cores)
//	context, err := anchor.PickOffset(recent, offset, lookup, prerequisites)
//
// [Pick] and [PickOffset] make the refine context, [CheckContext] holds it against the limits of the chain.
//
// # Knowing that a package is dead
//
// [Dead] judges the facts of one package on one chain by the rules D1 to D6. A verdict of death is inherited by
// every descendant block. That is what makes a replacement safe: a new version anchored at a block where all
// earlier ones are dead can only be reported on chains that contain that block, and on those the earlier
// ones can never accumulate. No clock, no finality and no assumption about guarantors enter.
// [EarliestDeath] says when it is worth looking.
//
// A host that cannot show blocks has only [WallClock], which may be wrong; [ReportableChance] says how often.
//
// Subpackage chainview collects the facts from imported blocks.
package anchor
