package bundlequeue

import (
	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
)

// Event is something that happened outside the queue. The set is closed:
//
//   - bundles: [Reserve], [Enqueue], [Release], [Rekey], [GiveUp]; [TakenBack] answers [Failed];
//   - limits: [Resize], [Cores];
//   - packages: [Built] and [BuildFailed] answer [Build], [Sent] answers [Send]; [Retry];
//   - evidence: [Imported], [FinalizedBlock] and [Continue], or [Told];
//   - time: [Tick].
type Event interface{ isEvent() }

// Reserve takes the next number for a block that is still being executed. Enqueue must fill it, or
// Release give it up; the queue releases it after Config.ReservationTimeout. Until then the bundles
// after it wait.
type Reserve struct {
	// Number is the rollup block number: see [Queue.Next].
	Number uint64
}

// Enqueue adds an executed bundle. Its number must be reserved, or the next one: see [Queue.Next].
type Enqueue[B any] struct {
	// Number is the rollup block number.
	Number uint64
	// Commitment is a hash over number, pre-state, post-state and transactions. All versions share
	// it.
	Commitment common.Hash
	// Bundle is what the host builds packages from. The queue never changes it.
	Bundle B
}

// Release gives a reserved number up. All bundles after it fail, because they were executed on a
// block that will not exist.
type Release struct {
	// Number is the rollup block number.
	Number uint64
}

// Rekey gives a bundle another number, because consensus assigned it one, and shifts all bundles
// after it by as much.
type Rekey struct {
	// From is the number that the bundle has.
	From uint64
	// To is the number that it gets: greater than that of the bundle before it, and at most 2^60.
	To uint64
}

// GiveUp orders the queue to build no more packages for a bundle. Packages that were sent may still
// be accumulated; if one is, the order has no effect. Once none can be, on any chain to come, the
// bundle and all after it end as Failed.
type GiveUp struct {
	// Number is the rollup block number of a bundle that is neither reserved nor final.
	Number uint64
	// Reason explains the order in [Failed]; at most 1024 bytes.
	Reason string
}

// Resize sets how many bundles may wait in Queued: see [DepthFor]. Bundles that wait already stay.
// The depth lasts across restarts, until Resize sets it to Config.MaxQueueDepth again.
type Resize struct {
	// Depth is the new limit, 1 to 2^30.
	Depth int
}

// Cores replaces the set of cores that packages are sent to. A bundle on a core that is not in the
// new set keeps it until its package is reported or dead. The set lasts across restarts, until an
// event sets it to Config.Cores again.
type Cores struct {
	// Cores are distinct cores of the chain, at least one.
	Cores []jamq.CoreIndex
}

// Built answers [Build] with a package that is ready to be sent. If it is refused with
// ErrInadmissible, the request is still open and holds a core: answer it again, or with
// BuildFailed.
//
// A package that can no longer be accumulated is not refused, because the chain moved while it was
// built: a [Died] effect gives the reason, and the queue asks for another package.
type Built[B any] struct {
	// Ticket repeats the Build effect's.
	Ticket uint64
	// Package is the hash of the package's bytes. It must differ from that of every earlier
	// version.
	Package jamq.PackageHash
	// Context is the refine context in the bytes. Its prerequisites must contain those of the Build
	// effect. It may have more, of other services, up to the limit of the chain; the queue then
	// follows those packages, and the bundle's package dies with them (D4).
	Context jamq.RefineContext
	// Bundle is what [Send] effects of this version will carry.
	Bundle B
}

// BuildFailed answers [Build] if no package could be built. The bundle is as it was, and the queue
// asks again after a back-off, without limit.
type BuildFailed struct {
	// Ticket repeats the Build effect's.
	Ticket uint64
}

// Sent answers [Send] with the outcome.
type Sent struct {
	// Ticket repeats the Send effect's.
	Ticket uint64
	// OK says that a guarantor took the package. Otherwise the outcome is unknown: the package may
	// have arrived all the same.
	OK bool
	// Refused says that no guarantor will take these bytes. The queue does not send them again, and
	// builds another version once this one is dead. Refused is ignored if OK is set.
	Refused bool
}

// Imported reports a JAM block that the host imported, and which block is the best one now. Blocks
// come after their parents. If the block is known already, only Best counts.
//
// The queue derives from reports what a block accumulates, unless the block says it
// (jamq.Block.AccumulatedKnown). A host that sees the state should say it, because one thing is in
// no block: block gas can defer a report of the ready queue, and a report that is deferred for an
// epoch is dropped.
//
// The error wraps chainview.ErrOld for a block that finality has overtaken; the host may ignore it.
// It wraps chainview.ErrMissingParent if the block's parent must be imported first.
type Imported struct {
	// Block is the imported block.
	Block jamq.Block
	// Best is the head of the best chain after the import. It has been imported itself.
	Best jamq.HeaderHash
}

// FinalizedBlock reports that an imported JAM block is final. The error wraps chainview.ErrOld for
// an ancestor of a block that was reported before; the host may ignore it.
type FinalizedBlock struct {
	// Hash is the finalized block.
	Hash jamq.HeaderHash
}

// Continue moves the queue to a later final JAM block if the blocks in between cannot be had any
// more. The host reads from its service's state at Root which of the queue's packages were
// accumulated. All others must be dead there; if one may still be accumulated, the error wraps
// chainview.ErrUndecided and a later root decides. See chainview.View.Continue.
type Continue struct {
	// Root is the final block.
	Root jamq.Block
	// State is the state after Root: recent history, cores, ready queue and accumulated packages.
	State chainview.State
	// Accumulated are the packages of this queue that the chain up to Root has accumulated.
	Accumulated []jamq.PackageHash
}

// Told reports a package's state as the host has learned it, for evidence without blocks: see
// package told. A package of others is ignored.
type Told struct {
	// Package is the package.
	Package jamq.PackageHash
	// State is Guaranteed, Accumulated or Finalized; or Queued: the host gives the package up.
	State State
}

// Retry makes the next send of the same bytes due at once. It is an opinion, not evidence: nothing
// is given up by it.
type Retry struct {
	// Number is the rollup block number.
	Number uint64
}

// TakenBack answers [Failed]: the host has the bundle's transactions again, durably if they must
// survive a crash. Until then the queue keeps the bundle.
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
func (GiveUp) isEvent()         {}
func (Resize) isEvent()         {}
func (Cores) isEvent()          {}
func (Built[B]) isEvent()       {}
func (BuildFailed) isEvent()    {}
func (Sent) isEvent()           {}
func (Imported) isEvent()       {}
func (FinalizedBlock) isEvent() {}
func (Continue) isEvent()       {}
func (Told) isEvent()           {}
func (Retry) isEvent()          {}
func (TakenBack) isEvent()      {}
func (Tick) isEvent()           {}
