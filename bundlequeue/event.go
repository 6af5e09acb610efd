package bundlequeue

import (
	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// Event is an input of the queue, which the host passes to [Queue.Step]. It is one
// of:
//
//   - orders about bundles: [Reserve], [Enqueue], [Release], [Rekey], [GiveUp] and
//     [Adopt]
//   - the set of cores: [Cores]
//   - answers about packages: [Built] and [BuildFailed] answer [Build], and [Sent]
//     answers [Send]
//   - a request to send a package again: [Retry]
//   - news of the JAM chain: [Imported] and [FinalizedBlock]
//   - the time: [Tick]
type Event interface{ isEvent() }

// Reserve reserves the next block number for a block that the host is still executing, so that the
// host can enqueue later blocks before this one is ready. The bundles of later blocks wait until
// the host enqueues the reserved block. The reservation also ends with a Release event, or after
// Config.ReservationTimeout.
type Reserve struct {
	// Number is the rollup block number: see [Queue.Next].
	Number uint64
}

// Enqueue passes an executed block to the queue, which then builds and sends its packages until the
// block is final. Its number must be the next one (see [Queue.Next]) or one that was reserved.
type Enqueue struct {
	// Number is the number of the rollup block.
	Number uint64
	// Commitment identifies this execution of the block. All packages of the bundle share it, and
	// no other bundle may ever have it; the queue refuses a commitment that it has seen before.
	// Even two executions of the same transactions on the same state must have different
	// commitments, for example by a serial number in the header. Otherwise the host could not
	// distinguish the effects of a failed bundle from those of the bundle that replaces it. Zero
	// means that the bundle has no commitment.
	Commitment common.Hash
	// Parent is the commitment of the bundle on which this one was executed. For the
	// first bundle it is a hash that the host chooses, for example that of the genesis
	// block.
	//
	// Parent protects against a race: if the previous bundle fails while the host
	// executes this one, Parent differs from [Queue.Head]. The queue then refuses this
	// bundle, because the state that it was executed on no longer exists. Zero disables
	// this check.
	Parent common.Hash
	// Bundle is the data from which the host builds packages. The queue keeps the bytes without
	// reading or changing them, and returns them with each Build effect.
	Bundle []byte
}

// Release ends a reservation if the reserved block will never exist. All later
// bundles fail, because they were executed on that block.
type Release struct {
	// Number is the reserved rollup block number.
	Number uint64
}

// Rekey gives a bundle another number, for example because a consensus among several builders has
// assigned one. The numbers of all later bundles change by the same difference.
type Rekey struct {
	// From is the current number of the bundle.
	From uint64
	// To is the new number. It must be greater than the number of the bundle
	// before it, and at most 2^60.
	To uint64
}

// GiveUp orders the queue to build no more packages for a bundle, for example
// because they can never succeed. Packages that were already sent may still be
// accumulated, and the order has no effect if one of them is. As soon as no chain
// can accumulate any of them, the bundle fails together with all later bundles.
type GiveUp struct {
	// Number is the rollup block number of the bundle to give up. The bundle must be neither
	// reserved nor final.
	Number uint64
	// Reason is copied to [Failed], for an operator. It has at most 1024 bytes.
	Reason string
}

// Adopt tells the queue that a bundle is final although the queue does not know the
// package that JAM has accumulated for it. This happens if the record of that package was
// lost. The queue forgets the bundle at once, and builds the next bundle as if it were
// the first one.
//
// The queue cannot verify what Adopt claims. A host must therefore adopt a bundle only if
// the service has accepted its block on the finalized chain.
type Adopt struct {
	// Number is the rollup block number of the bundle to adopt. It must be the oldest bundle
	// that is not final, and the host must have enqueued it, not only reserved its number.
	Number uint64
	// Package is the hash of the accumulated package. It must not be the hash of a package that the
	// queue has built for any bundle.
	Package jamq.PackageHash
}

// Cores replaces the set of cores that packages are sent to. A bundle that uses a core
// outside the new set stays there until its package is reported or dead. The new set
// survives restarts. To return to the cores of the configuration, the host sends a Cores
// event with the value of Config.Cores.
type Cores struct {
	// Cores lists the new cores of the chain. There must be at least one,
	// without duplicates.
	Cores []jamq.CoreIndex
}

// Built answers [Build] with a package that is ready to be sent.
//
// If the queue returns ErrInadmissible, the host has made a mistake, for example with the
// prerequisites. The request then stays open and keeps its core, so the host must answer again,
// with another package or with BuildFailed. A package that died because the chain moved on during
// the build is no mistake. The queue accepts the event, returns a [Died] effect with the reason,
// and requests another package.
type Built struct {
	// Ticket is the Ticket of the Build effect.
	Ticket uint64
	// Package is the hash of the package's bytes. It must differ from the hashes of all earlier
	// packages.
	Package jamq.PackageHash
	// Context is the refine context in the bytes of the package. Its prerequisites must include
	// those of the Build effect. It may have more, for example packages of other services, up to
	// the limit of the chain. The queue then follows those packages too, because the package of the
	// bundle dies if one of them dies (rule D4).
	Context jamq.RefineContext
	// Bundle is returned to the host in the [Send] effects of this version. It is usually the
	// package itself.
	Bundle []byte
}

// BuildFailed answers [Build] if the host could not build a package. The state of the bundle does
// not change, and the queue requests a package again after a back-off, any number of times.
type BuildFailed struct {
	// Ticket is the Ticket of the Build effect.
	Ticket uint64
}

// Sent answers [Send] and reports whether a guarantor has accepted the package.
type Sent struct {
	// Ticket is the Ticket of the Send effect.
	Ticket uint64
	// OK is true if a guarantor accepted the package. If it is false, the outcome is unknown,
	// because the package may have arrived nevertheless.
	OK bool
	// Refused is true if no guarantor will ever accept these bytes. The queue then does not send
	// them again, and builds another package when this one is dead. Refused is ignored if OK is
	// true.
	Refused bool
}

// Imported reports that the host has imported a JAM block, and which block is the
// best one now. Parents must come before their children; if the parent is missing,
// the error wraps chainview.ErrMissingParent. If the queue already knows the block,
// only Best has an effect. A block that cannot descend from the finalized block
// changes nothing, and neither do its descendants.
//
// The queue computes which packages a block accumulated from the reports before it,
// unless the block lists them (jamq.Block.AccumulatedKnown). A host that sees the
// state should list them, because the reports do not show one case: the gas limit
// can defer a report in the ready queue, and the chain drops a report that has been
// deferred for an epoch.
type Imported struct {
	// Block is the imported block.
	Block jamq.Block
	// Best is the head of the best chain after the import. It must be imported
	// already, or be Block.
	Best jamq.HeaderHash
}

// FinalizedBlock reports that an imported JAM block is final. The error wraps chainview.ErrOld if a
// later block is final already; the host may ignore this error.
type FinalizedBlock struct {
	// Hash is the hash of the finalized block.
	Hash jamq.HeaderHash
}

// Retry makes the queue send the package of a bundle again immediately instead of
// after the usual interval. It never makes the queue give up the package.
type Retry struct {
	// Number is the rollup block number.
	Number uint64
}

// Tick reports that time has passed: see [Queue.NextWake].
type Tick struct{}

func (Reserve) isEvent()        {}
func (Enqueue) isEvent()        {}
func (Release) isEvent()        {}
func (Rekey) isEvent()          {}
func (GiveUp) isEvent()         {}
func (Adopt) isEvent()          {}
func (Cores) isEvent()          {}
func (Built) isEvent()          {}
func (BuildFailed) isEvent()    {}
func (Sent) isEvent()           {}
func (Imported) isEvent()       {}
func (FinalizedBlock) isEvent() {}
func (Retry) isEvent()          {}
func (Tick) isEvent()           {}
