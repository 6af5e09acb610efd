package bundlequeue

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// Effect is a request to the host, or a notification: one of [Build], [Send],
// [Changed], [Died], [Failed] and [Resurrected].
type Effect interface {
	fmt.Stringer
	isEffect()
}

// Build requests a package. The host answers with [Built] or [BuildFailed].
type Build struct {
	// Ticket identifies this request. The answer repeats it. It is unique
	// within a queue.
	Ticket uint64
	// Number is the number of the rollup block. Version counts the packages of
	// the bundle from 1.
	Number  uint64
	Version int
	// Bundle is the bundle as it was enqueued. The queue shares it with the
	// host, so the host must copy it before changing it. Execute it on the
	// block's pre-state, not on the current head.
	Bundle []byte
	// Core is the core that the package will be sent to.
	Core jamq.CoreIndex
	// Offset is how many blocks the anchor lies behind the newest block, at
	// least 1.
	Offset int
	// Anchor is the block that the package should be anchored to. With package
	// told it is a block that told has made up: the host then finds the JAM
	// block by Offset.
	Anchor anchor.Point
	// MinAnchor is the oldest admissible anchor: at this block all earlier
	// versions are dead. Zero means no limit. The host may choose any block of
	// the best chain from MinAnchor on that has a child; a block without
	// children has no public state root yet. The queue may know the newest
	// blocks later than the host.
	MinAnchor anchor.Point
	// Prerequisites are the packages that the refine context must name.
	Prerequisites []jamq.PackageHash
}

// Send requests that a package is sent to a guarantor. The host answers with
// [Sent].
type Send struct {
	// Ticket identifies this request. The answer repeats it. It is unique
	// within a queue.
	Ticket uint64
	// Number, Version and Package identify the package.
	Number  uint64
	Version int
	Package jamq.PackageHash
	// Bundle is the Bundle of the [Built] event.
	Bundle []byte
	// Core is the core whose guarantors should receive the package.
	Core jamq.CoreIndex
	// Attempt counts from 1. Choose another guarantor for each attempt, because
	// a guarantor ignores a package that it has seen.
	Attempt int
}

// Changed reports that a bundle moved to another state. A reorg may move it
// back.
type Changed struct {
	// Number is the number of the rollup block.
	Number uint64
	// Commitment is the one of Enqueue. It distinguishes bundles whose numbers
	// are used again after a failure.
	Commitment common.Hash
	// From is the old state and To is the new one. They differ.
	From, To State
	// Version and Package identify the version that determines the state. They
	// are zero if no version does.
	Version int
	Package jamq.PackageHash
	// Core is the core that the bundle holds or was last sent to.
	Core jamq.CoreIndex
	// At is the JAM block that proves Guaranteed, Accumulated or Finalized. It
	// is zero for other states.
	At anchor.Point
}

// Died reports that a version can never be accumulated on the best chain. It is
// also the response to a [Built] event whose package can no longer be
// accumulated. Such a package is never sent.
type Died struct {
	// Number, Version and Package identify the version.
	Number  uint64
	Version int
	Package jamq.PackageHash
	// Reason is the rule that makes it dead.
	Reason anchor.Reason
	// At is the block at which it died.
	At anchor.Point
	// Unsent is true if the package was never sent.
	Unsent bool
}

// Failed hands a bundle back: no version of it was accumulated on the finalized
// chain, and none ever can be. The host does three things:
//
//   - It puts the transactions back into its pool.
//   - It discards the state after execution.
//   - It does the same for the bundles after it, whose Failed effects follow in
//     order. Their pre-state does not exist, so they must be executed again.
//     Their numbers will be used again.
//
// A bundle with a lower number may fail in a later step. It belongs before the
// bundles that failed earlier.
//
// The queue has forgotten the bundle. A driver that must survive a crash takes the
// bundle back before it records the next event, and after a restart it takes back
// what the last record returns: see [Replay].
type Failed struct {
	// Number, Commitment and Bundle are those of Enqueue. After a Rekey event,
	// Number is the present one.
	Number     uint64
	Commitment common.Hash
	Bundle     []byte
	// Cause is the number of the bundle that failed first: Number itself, or a
	// lower one.
	Cause uint64
	// Lost is the number of lost packages of the bundle that failed first. It is 0
	// if the host gave that bundle up.
	Lost int
	// Reason describes the failure in words.
	Reason string
}

// Resurrected reports that a package was accumulated on a chain on which it had
// been dead, so that its death was a mistake: a block lacked something that the
// JAM block had, for example a report, or the clock of package told was wrong. If the
// transactions are in another package by now, they are executed twice, unless
// the service ignores transactions that it has seen.
type Resurrected struct {
	// Package is the package that was declared dead.
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
