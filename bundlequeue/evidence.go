package bundlequeue

import (
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

// Evidence tracks the fate of a queue's packages. [New] creates a queue with
// evidence from imported blocks, which guarantees promise B1 (no block is
// accumulated twice). Package told implements Evidence for hosts that see no
// blocks.
//
// An Evidence is deterministic and belongs to one queue.
type Evidence interface {
	// Observe processes an event about packages: [Imported], [FinalizedBlock]
	// and [Continue], or [Told]. It returns ErrWrongEvidence if the
	// implementation does not use this kind of event. A refused event changes
	// nothing.
	Observe(now time.Time, ev Event) ([]Effect, error)
	// Advance sets the time. If the time went back, waits that end too late are
	// shortened.
	Advance(now time.Time)
	// NextWake returns the next time at which Advance has an effect. Zero means
	// never.
	NextWake() time.Time
	// Watch begins to follow a package. It is called before the package is
	// first sent.
	Watch(p Watched) (Fate, error)
	// Fate returns the fate of a watched package, and false if it is not
	// watched.
	Fate(pkg jamq.PackageHash) (Fate, bool)
	// Forget ends Watch. The package remains evidence about watched ones: one
	// that is dead because it names this package does not live again.
	Forget(pkg jamq.PackageHash)
	// Changes calls f for each watched package whose status changed since the
	// last call.
	Changes(f func(pkg jamq.PackageHash))
	// Blocks returns the part of the chain that the evidence knows.
	Blocks() Blocks
	// AppendSnapshot appends the whole state of the evidence.
	AppendSnapshot(b []byte) []byte
}

// Watched is a package to follow.
type Watched struct {
	// Package is the hash of the package.
	Package jamq.PackageHash
	// Bundle identifies the bundle within the queue. All versions of a bundle
	// share it.
	Bundle uint64
	// Context is the refine context of the package.
	Context jamq.RefineContext
}

// Fate describes one package and its outcome.
type Fate interface {
	// Status returns the outcome on the best chain, with the blocks that prove
	// it.
	Status() chainview.Status
	// Standing returns the same outcome without the blocks. It is cheaper than
	// Status. The queue calls it several times in each step.
	Standing() Standing
	// Settled returns the outcome on the finalized chain.
	Settled() Settlement
	// Prerequisites returns the packages that this package names. The caller
	// must not modify the slice.
	Prerequisites() []jamq.PackageHash
	// Anchor returns the package's anchor and the slot of its lookup anchor.
	// Unknown values are zero.
	Anchor() (anchor.Point, jamq.Slot)
	// Sent records that a send of the package begins or ends at now.
	Sent(now time.Time)
}

// Standing is the outcome of a package on the best chain.
type Standing struct {
	// Reported and Accumulated are true if a block of the chain reported or
	// accumulated the package.
	Reported, Accumulated bool
	// Dead is the reason why the package can never be accumulated on this
	// chain, or anchor.Alive.
	Dead anchor.Reason
}

// Settlement is the final outcome of a package: its outcome on the finalized
// chain, and therefore on every future chain.
type Settlement uint8

// The final outcomes of a package.
const (
	// Unsettled means that finality has not decided the package.
	Unsettled Settlement = iota
	// SettledAccumulated means that the finalized chain has accumulated the
	// package.
	SettledAccumulated
	// SettledDead means that no chain can accumulate the package any more.
	SettledDead
)

// Blocks is the part of the JAM chain that an Evidence knows. Evidence without
// blocks returns zero points.
type Blocks interface {
	// Best and Finalized return the heads of the best and of the finalized
	// chain.
	Best() anchor.Point
	Finalized() anchor.Point
	// Anchor returns the block of the best chain that lies offset blocks behind
	// the newest one, or least if least is newer. It also returns the actual
	// offset. ok is false if no block is suitable yet.
	Anchor(least anchor.Point, offset int) (at anchor.Point, real int, ok bool)
	// Locate returns the block with the given hash if it is on the best chain.
	Locate(hash jamq.HeaderHash) (at anchor.Point, onBest bool)
	// Knows reports whether the block with the given hash is part of the chain
	// or of a fork. Blocks that the evidence has forgotten are unknown.
	Knows(hash jamq.HeaderHash) bool
	// Follow returns how a package that is sent after the given number of
	// blocks can follow the package of f.
	Follow(f Fate, blocks int) Following
	// CoreFree reports whether the next block can put a report on a core.
	CoreFree(core jamq.CoreIndex) bool
}

// Following describes how a new package can follow the live package of the
// bundle before it.
type Following struct {
	// Possible is false if no package can follow it at present.
	Possible bool
	// Name is true if the new package must name the other one as a
	// prerequisite. If it is false, the new package must not name it, and must
	// be anchored at LeastAnchor or later.
	Name bool
	// LeastAnchor is the block that accumulated the other package. It is zero
	// if Name is true.
	LeastAnchor anchor.Point
}
