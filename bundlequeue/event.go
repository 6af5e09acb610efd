package bundlequeue

import (
	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// Event is something that happened outside. The set is closed: numbers are given by [Reserve], [Enqueue], [Release],
// [Rekey] and [Resize], packages by [Built], [BuildFailed] and [Sent], evidence by [Imported] and [FinalizedBlock] or else by
// [Told], time by [Tick], opinions by [Retry]; and [TakenBack] answers [Failed].
type Event interface{ isEvent() }

// Reserve takes the next number for a block that is still being executed. It must be filled by Enqueue, or given up by
// Release or by the time-out: until then all after it wait.
type Reserve struct {
	// Number is the rollup block number: see [Queue.Next].
	Number uint64
}

// Enqueue adds an executed bundle. Its number must be reserved, or the next one: see [Queue.Next].
type Enqueue[B any] struct {
	// Number is the rollup block number.
	Number uint64
	// Commitment is a hash over number, pre-state, post-state and transactions: the same for every version.
	Commitment common.Hash
	// Bundle is what the host builds packages from. The queue never changes it.
	Bundle B
}

// Release gives a reserved number up. All bundles after it fail, because they were executed on what will not exist.
type Release struct {
	// Number is the rollup block number.
	Number uint64
}

// Rekey gives a bundle another number, because consensus assigned it one, and shifts all after it by as much. The new number
// must be greater than that of the bundle before it, and at most 2^60.
type Rekey struct {
	// From is the number that the bundle has, To the one that it gets.
	From, To uint64
}

// Resize sets how many bundles may wait in Queued, from 1 to 2^30: see [DepthFor]. What waits already stays.
type Resize struct {
	// Depth is the new limit.
	Depth int
}

// Built reports that the package asked for by a [Build] effect is ready to be sent. If it is refused with ErrInadmissible the request is
// still open and holds a core: answer it again, or by [BuildFailed].
type Built[B any] struct {
	// Ticket repeats the Build effect's.
	Ticket uint64
	// Package is the hash of the package's bytes; it must differ from every earlier version's.
	Package jamq.PackageHash
	// Context is the refine context that went into the bytes.
	Context jamq.RefineContext
	// Bundle is what [Send] effects of this version will carry.
	Bundle B
}

// BuildFailed reports that no package could be built. The bundle is as it was, and the queue asks again after a back-off.
type BuildFailed struct {
	// Ticket repeats the Build effect's.
	Ticket uint64
}

// Sent reports the outcome of a [Send] effect.
type Sent struct {
	// Ticket repeats the Send effect's.
	Ticket uint64
	// OK says that a guarantor took the package. Otherwise nothing is known: it may have arrived all the same.
	OK bool
}

// Imported reports a JAM block that the host imported, and which block is now the best. Blocks come after their parents.
// A block that is known already is fine: then only Best counts.
//
// What a block accumulates is derived from reports, unless the block says it (jamq.Block.AccumulatedKnown). A host that sees the state
// should say it: the one thing that no block shows is that gas deferred a report of the ready queue, and one that is deferred for an
// epoch is dropped.
type Imported struct {
	// Block is the imported block.
	Block jamq.Block
	// Best is the head of the best chain after the import; it has been imported itself.
	Best jamq.HeaderHash
}

// FinalizedBlock reports that an imported JAM block is final.
type FinalizedBlock struct {
	// Hash is the finalized block.
	Hash jamq.HeaderHash
}

// Told reports what the host has heard of a package, where it feeds no blocks ([ToldEvidence]). A package that is not ours is
// ignored.
type Told struct {
	// Package is what was heard of.
	Package jamq.PackageHash
	// State is Guaranteed, Accumulated or Finalized; or Queued: the host gives the package up.
	State State
}

// Retry asks to send the same bytes at once, for what looks lost. It is an opinion, not evidence: nothing is given up by it.
type Retry struct {
	// Number is the rollup block number.
	Number uint64
}

// TakenBack says that the host has taken a failed bundle back, durably if it must survive a crash. Until then the queue keeps it:
// see [Failed].
type TakenBack struct {
	// Ticket repeats the Failed effect's.
	Ticket uint64
}

// Tick reports that time has passed: see [Queue.NextWake].
type Tick struct{}

func (Reserve) isEvent()        {}
func (Enqueue[B]) isEvent()     {}
func (Release) isEvent()        {}
func (Rekey) isEvent()          {}
func (Resize) isEvent()         {}
func (Built[B]) isEvent()       {}
func (BuildFailed) isEvent()    {}
func (Sent) isEvent()           {}
func (Imported) isEvent()       {}
func (FinalizedBlock) isEvent() {}
func (Told) isEvent()           {}
func (Retry) isEvent()          {}
func (TakenBack) isEvent()      {}
func (Tick) isEvent()           {}
