package bundlequeue

import (
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

// Evidence gives a queue the fate of its packages. New makes a queue with chain evidence, which is
// derived from imported blocks and makes promise B1 hold. Package told has another implementation,
// for hosts that see no blocks.
//
// An Evidence is deterministic and belongs to one queue.
type Evidence interface {
	// Observe takes an event about packages: [Imported], [FinalizedBlock] and [Continue], or
	// [Told]. The error wraps ErrWrongEvidence for an event of the other kind; a refused event
	// changes nothing.
	Observe(now time.Time, ev Event) ([]Effect, error)
	// Advance sets the time. If the time went back, waits that end too late are shortened.
	Advance(now time.Time)
	// NextWake returns when Advance does something next; zero means never.
	NextWake() time.Time
	// Watch begins to follow a package, before its bytes first leave.
	Watch(p Watched) (Fate, error)
	// Fate returns the fate of a package that is watched.
	Fate(pkg jamq.PackageHash) (Fate, bool)
	// Forget ends Watch.
	Forget(pkg jamq.PackageHash)
	// Changes calls f for each watched package whose status changed since the last call.
	Changes(f func(pkg jamq.PackageHash))
	// Blocks returns the chain as far as the evidence knows it.
	Blocks() Blocks
	// AppendSnapshot appends everything that the evidence knows.
	AppendSnapshot(b []byte) []byte
}

// Watched is a package to be followed.
type Watched struct {
	// Package is its hash.
	Package jamq.PackageHash
	// Bundle tells the bundles of a queue apart: the versions of one bundle share it.
	Bundle uint64
	// Context is its refine context.
	Context jamq.RefineContext
}

// Fate is the fate of one package.
type Fate interface {
	// Status returns what became of it on the best chain, and in which blocks.
	Status() chainview.Status
	// Standing returns the same without the blocks. It costs less, and the queue asks for it
	// several times in each step.
	Standing() Standing
	// Settled returns what became of it for good.
	Settled() Settlement
	// Prerequisites returns the packages that it names. The slice must not be written to.
	Prerequisites() []jamq.PackageHash
	// Anchor returns its anchor and the slot of its lookup anchor, as far as they are known.
	Anchor() (anchor.Point, jamq.Slot)
	// Sent notes that its bytes are being sent, or that the attempt has ended.
	Sent(now time.Time)
}

// Standing is what became of a package on the best chain.
type Standing struct {
	// Reported and Accumulated say that a block did so.
	Reported, Accumulated bool
	// Dead is why the package can never be accumulated on this chain, or anchor.Alive.
	Dead anchor.Reason
}

// Settlement is the final outcome of a package, on the finalized chain and so on every chain to
// come.
type Settlement uint8

// The final outcomes of a package.
const (
	// Unsettled: finality has not decided it.
	Unsettled Settlement = iota
	// SettledAccumulated: the finalized chain has accumulated it.
	SettledAccumulated
	// SettledDead: no chain can accumulate it any more.
	SettledDead
)

// Blocks is what an evidence knows of the JAM chain. Evidence without blocks answers with zero
// points.
type Blocks interface {
	// Best and Finalized return the heads of the best and of the finalized chain.
	Best() anchor.Point
	Finalized() anchor.Point
	// Anchor returns the block of the best chain that lies offset blocks behind the newest one, or
	// least if that is newer, and its real offset. It reports false if no block serves yet.
	Anchor(least anchor.Point, offset int) (at anchor.Point, real int, ok bool)
	// Locate returns the block with a hash if it is on the best chain.
	Locate(hash jamq.HeaderHash) (at anchor.Point, onBest bool)
	// Knows reports whether the block with a hash is or was part of the chain or of a fork, as far
	// as the evidence remembers.
	Knows(hash jamq.HeaderHash) bool
	// Follow says how a package that leaves after the given number of blocks can follow another
	// one.
	Follow(f Fate, blocks int) Following
	// CoreFree reports whether the next block can put a report on a core.
	CoreFree(core jamq.CoreIndex) bool
}

// Following says how a new package can follow the live package of the bundle before it.
type Following struct {
	// Possible is false if nothing can follow it at present.
	Possible bool
	// Name says that the new package must name the other one as prerequisite. Otherwise it must
	// leave it out, and must be anchored at LeastAnchor or later.
	Name bool
	// LeastAnchor is the block that has accumulated the other package, if Name is false.
	LeastAnchor anchor.Point
}
