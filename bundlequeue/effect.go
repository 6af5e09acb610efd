package bundlequeue

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// Effect is something that the host should do or know: one of [Build], [Send], [Changed], [Died],
// [Failed] and [Resurrected].
type Effect interface {
	fmt.Stringer
	isEffect()
}

// Build asks for a package. The host answers with [Built] or [BuildFailed].
type Build[B any] struct {
	// Ticket names this request; the answer repeats it. No two requests of a queue share one.
	Ticket uint64
	// Number is the rollup block, Version counts from 1.
	Number  uint64
	Version int
	// Bundle is what was enqueued. The queue shares it with the host: a builder that changes it
	// copies it first. It must be executed on the block's own pre-state, not on any head.
	Bundle B
	// Core is where the package will be sent first.
	Core jamq.CoreIndex
	// Offset is how many blocks the anchor lies behind the newest block, at least 1.
	Offset int
	// Anchor is the block that the package should be anchored to. Zero with evidence that knows no
	// blocks; there the host finds it by Offset.
	Anchor anchor.Point
	// MinAnchor is the oldest admissible anchor: the block by which every earlier version is dead.
	// Zero means any. The host may take any block of the best chain from MinAnchor on that has a
	// child. An older block is inadmissible. The newest block has no public state root yet, and the
	// queue may hear of it later than the host.
	MinAnchor anchor.Point
	// Prerequisites must be in the refine context.
	Prerequisites []jamq.PackageHash
}

// Send asks for a package to be given to a guarantor. The host answers with [Sent].
type Send[B any] struct {
	// Ticket names this request; the answer repeats it. No two requests of a queue share one.
	Ticket uint64
	// Number, Version and Package name the package.
	Number  uint64
	Version int
	Package jamq.PackageHash
	// Bundle is what [Built] brought.
	Bundle B
	// Core is the core whose guarantors should get it.
	Core jamq.CoreIndex
	// Attempt counts from 1. Take another guarantor for each attempt: one that has seen a package
	// ignores it.
	Attempt int
}

// Changed says that a bundle moved to another state. A reorg may move it back.
type Changed struct {
	// Number is the rollup block.
	Number uint64
	// Commitment is that of Enqueue. It tells bundles apart whose numbers are used again after a
	// failure.
	Commitment common.Hash
	// From and To differ.
	From, To State
	// Version and Package name the version that decided; 0 and zero if none did.
	Version int
	Package jamq.PackageHash
	// Core is the core that the bundle holds or was last sent to.
	Core jamq.CoreIndex
	// At is the JAM block that is the evidence for Guaranteed, Accumulated and Finalized; otherwise
	// zero.
	At anchor.Point
}

// Died says that a version can never be accumulated on the best chain. It also answers a [Built]
// whose package can no longer be accumulated; that package is never sent.
type Died struct {
	// Number, Version and Package name the version.
	Number  uint64
	Version int
	Package jamq.PackageHash
	// Reason says by which rule.
	Reason anchor.Reason
	// At is the block since which the rule holds.
	At anchor.Point
	// Unsent says that the package never left.
	Unsent bool
}

// Failed hands a bundle back: no version of it was accumulated on the finalized chain, and none can
// be. The host does three things:
//   - it puts the transactions back into its pool;
//   - it discards the state after execution;
//   - it does the same for the bundles after it, whose Failed effects follow in order. Their
//     pre-state is gone, so they must be executed again. Their numbers will be used again.
//
// A bundle with a lower number may fail in a later step. It belongs before those that came back
// already.
//
// The host answers with [TakenBack] once the transactions are safe. Until then the queue keeps the
// bundle, so that a crash in between loses nothing (see [Queue.Open]), and counts it among those
// that wait.
type Failed[B any] struct {
	// Ticket names this effect; the answer repeats it.
	Ticket uint64
	// Number and Bundle are those of Enqueue.
	Number uint64
	Bundle B
	// Cause is the number of the bundle that failed first: Number itself, or an earlier one.
	Cause uint64
	// Reason explains the failure in words.
	Reason string
}

// Resurrected says, with told evidence only, that a package was accumulated after its bundle had
// been given up by the clock and handed back. If its transactions went into another bundle, they
// are executed twice, unless the service ignores what it has seen.
type Resurrected struct {
	// Package is a package of a bundle that ended as Failed.
	Package jamq.PackageHash
}

func (Build[B]) isEffect()    {}
func (Send[B]) isEffect()     {}
func (Changed) isEffect()     {}
func (Died) isEffect()        {}
func (Failed[B]) isEffect()   {}
func (Resurrected) isEffect() {}

// String returns one line, such as "build 3v1 core=0 anchor=7/9:a1b2c3d4 min=none needs=1".
func (e Build[B]) String() string {
	return fmt.Sprintf("build %dv%d core=%d anchor=%v min=%v needs=%d", e.Number, e.Version, e.Core, e.Anchor, e.MinAnchor, len(e.Prerequisites))
}

// String returns one line, such as "send 3v1 core=0 attempt=2".
func (e Send[B]) String() string {
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
func (e Failed[B]) String() string { return fmt.Sprintf("failed %d: %s", e.Number, e.Reason) }

// String returns one line, such as "resurrected a1b2c3d4: accumulated after the clock gave it up".
func (e Resurrected) String() string {
	return fmt.Sprintf("resurrected %s: accumulated after the clock gave it up", e.Package.Short())
}
