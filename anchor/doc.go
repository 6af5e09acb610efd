// Package anchor holds the rules that decide when a JAM work package lives: which block to anchor it to,
// how long it can be reported, and from which block on it is dead.
//
// Everything here is a pure function of its arguments. Heights count blocks along one chain, slots count
// time; the two are never mixed, because slots may be skipped.
//
// # Choosing an anchor
//
// A package names an anchor block. It can be reported only in the H blocks after it (GP 11.33), so an anchor
// o blocks behind the newest leaves H-o blocks to be reported in, and the package is provably dead right
// after them. [Offset] is the table that builders use: with the queue short it takes an old anchor, so that a
// lost package can be replaced soon; each round of bundles ahead takes one that is a block fresher.
//
// # Knowing that a package is dead
//
// [Dead] judges the facts of one package on one chain by the rules D1 to D6. A verdict of death is inherited by
// every descendant block. That is what makes a replacement safe: a new version anchored at a block where all
// earlier ones are dead can only be reported on chains that contain that block, and on those the earlier
// ones can never accumulate. No clock, no finality and no assumption about guarantors enter.
//
// Subpackage chainview collects the facts from imported blocks.
package anchor
