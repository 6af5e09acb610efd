package bundlequeue

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// Effect is an output of the queue: a request to the host, or news for it. It is one of:
//
//   - requests: [Build] and [Send]
//   - news about a bundle or a package: [Changed], [Died], [Failed] and [Resurrected]
type Effect interface {
	fmt.Stringer
	isEffect()
}

// Build requests a package for a bundle from the host. The host answers with [Built], or with
// [BuildFailed] if it cannot build one.
type Build struct {
	// Ticket identifies this request; the answer repeats it. A queue never uses a ticket twice.
	Ticket uint64
	// Number is the number of the rollup block. Version counts the packages of
	// the bundle from 1.
	Number  uint64
	Version int
	// Bundle is the bytes that the host has enqueued. The queue shares these bytes with the host,
	// so the host must copy them before it changes them. The host executes the bundle on the state
	// before its block, not on the newest state.
	Bundle []byte
	// Core is the core that the package will be sent to.
	Core jamq.CoreIndex
	// Offset is how many blocks the anchor lies behind the newest block. It is at least 1.
	Offset int
	// Anchor is the JAM block that the package should be anchored to. A host that sees no JAM
	// blocks, and uses package told, gets an artificial block here. It then takes the block
	// that is Offset blocks behind its newest one.
	Anchor anchor.Point
	// MinAnchor is the oldest block that the package may be anchored to, because all earlier
	// versions of the bundle are dead there. Zero means that any block will do.
	//
	// The host may choose a different block of the best chain, MinAnchor or a later one, because it
	// may know newer blocks than the queue. The chosen block must have a child; without a child its
	// state root is not public yet.
	MinAnchor anchor.Point
	// Prerequisites are the packages that the refine context must name.
	Prerequisites []jamq.PackageHash
}

// Send requests that the host sends a package to a guarantor. The host answers with [Sent].
type Send struct {
	// Ticket identifies this request; the answer repeats it. A queue never uses a ticket twice.
	Ticket uint64
	// Number, Version and Package identify the package.
	Number  uint64
	Version int
	Package jamq.PackageHash
	// Bundle is the Bundle of the [Built] event.
	Bundle []byte
	// Core is the core whose guarantors should receive the package.
	Core jamq.CoreIndex
	// Attempt counts the sends of the same package from 1. The host should choose a different
	// guarantor for each attempt, because a guarantor ignores a package that it has already
	// received.
	Attempt int
}

// Changed reports that a bundle has moved to a different state. A reorg can move a bundle back to
// an earlier state.
type Changed struct {
	// Number is the number of the rollup block.
	Number uint64
	// Commitment is the Commitment of the Enqueue event. After a failure a number is used again, so
	// only the commitment shows which of the two bundles has changed.
	Commitment common.Hash
	// From is the state before this step and To the state after it. The two always differ.
	From, To State
	// Version and Package identify the package that has brought the bundle into the new
	// state. Both are zero if there is no such package, for example if the bundle is
	// Queued for a new one. Version alone is 0 if the bundle was adopted: see [Adopt].
	Version int
	Package jamq.PackageHash
	// Core is the core that the bundle uses now or, if it uses none, the core that its
	// last package was sent to.
	Core jamq.CoreIndex
	// At is the JAM block that proves the states Guaranteed, Accumulated and Finalized. It is zero
	// for the other states.
	At anchor.Point
}

// Died reports that a package can never be accumulated on the best chain. A host need not act on
// it, because the queue requests another package by itself. Died is also the response to a [Built]
// event whose package died during the build; such a package is never sent.
type Died struct {
	// Number, Version and Package identify the version.
	Number  uint64
	Version int
	Package jamq.PackageHash
	// Reason is the rule by which the package is dead.
	Reason anchor.Reason
	// At is the block at which it died.
	At anchor.Point
	// Unsent is true if the package was never sent.
	Unsent bool
}

// Failed gives a bundle back to the host, because the finalized chain has accumulated
// none of its packages, and no chain ever can. The host does three things:
//
//   - It puts the transactions of the block back into its pool.
//   - It discards the state after the block.
//   - It does the same for the bundles after it, whose Failed effects follow in order.
//     They were executed on a state that will not exist, so their transactions must be
//     executed again, and their numbers will be used again.
//
// A bundle with a lower number may fail in a later step. Its transactions belong before
// those of the bundles that failed earlier.
//
// The queue does not remember a failed bundle. A driver that must survive a crash
// therefore takes the bundle back before it records the next event. After a restart it
// takes back the bundles that the last record returns: see [Replay].
type Failed struct {
	// Number, Commitment and Bundle are those of the Enqueue event. If Rekey events have
	// changed the number since, Number is the new one.
	Number     uint64
	Commitment common.Hash
	Bundle     []byte
	// Cause is the number of the bundle that has caused the failure: Number itself, or
	// the number of an earlier bundle that this one was executed on.
	Cause uint64
	// Lost is the number of lost packages of the bundle that has caused the failure. It is 0 if
	// the host gave that bundle up or released its number.
	Lost int
	// Reason describes the failure in words, for an operator.
	Reason string
}

// Resurrected reports that a chain has accumulated a package that the queue
// considered dead on this chain. This is impossible if the host passes complete
// blocks, so it has one of two causes: a block lacked something that the JAM block
// had, for example a report, or the clock of package told was wrong.
//
// If the queue has built another package for the bundle in the meantime, the
// transactions may be executed twice, unless the service ignores transactions that
// it has already executed. A host should stop and raise an alarm.
type Resurrected struct {
	// Package is the package that the queue considered dead.
	Package jamq.PackageHash
}

func (Build) isEffect()       {}
func (Send) isEffect()        {}
func (Changed) isEffect()     {}
func (Died) isEffect()        {}
func (Failed) isEffect()      {}
func (Resurrected) isEffect() {}

// String returns one line, such as "build 3v1 core=0 anchor=7/9:a1b2c3d4 min=none needs=1".
func (e Build) String() string {
	return fmt.Sprintf("build %dv%d core=%d anchor=%v min=%v needs=%d", e.Number, e.Version, e.Core, e.Anchor, e.MinAnchor, len(e.Prerequisites))
}

// String returns one line, such as "send 3v1 core=0 attempt=2".
func (e Send) String() string {
	return fmt.Sprintf("send %dv%d core=%d attempt=%d", e.Number, e.Version, e.Core, e.Attempt)
}

// String returns one line, such as "3v1 submitted → guaranteed at 9/12:a1b2c3d4".
func (e Changed) String() string {
	return fmt.Sprintf("%dv%d %v → %v at %v", e.Number, e.Version, e.From, e.To, e.At)
}

// String returns one line, such as "dead 3v1 since 11/14:a1b2c3d4 (D2: unreported, anchor
// expired)".
func (e Died) String() string {
	unsent := ""
	if e.Unsent {
		unsent = ", never sent"
	}
	return fmt.Sprintf("dead %dv%d since %v (%v%s)", e.Number, e.Version, e.At, e.Reason, unsent)
}

// String returns one line, such as "failed 3: block 3: 6 packages lost".
func (e Failed) String() string { return fmt.Sprintf("failed %d: %s", e.Number, e.Reason) }

// String returns one line, such as "resurrected a1b2c3d4: accumulated after its death".
func (e Resurrected) String() string {
	return fmt.Sprintf("resurrected %s: accumulated after its death", e.Package.Short())
}
