package submit

import (
	"log/slog"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
)

// Health is the condition of the part of a builder that drives the queue. See
// builder.Builder.Health.
type Health struct {
	// Running is true while Run of the builder runs.
	Running bool
	// Err is the error that made the builder stop by itself. It is nil if it
	// runs, or if the host stopped it.
	Err error
	// Held is true while the builder waits for newer blocks after a recovery:
	// see Config.HoldTimeout.
	Held bool
	// Paused is the fatal error after which the builder stopped packing and
	// sending, or nil: see [Fatal].
	Paused error
	// Waiting describes the first bundle without a submitted package. Its Since
	// is zero if there is none.
	Waiting bundlequeue.Delay
	// Delayed is true if Waiting has lasted for at least Config.DelayAlarm. The
	// queue never gives up such a bundle by itself. The host can do so with
	// bundlequeue.GiveUp.
	Delayed bool
	// Builds and Sends are the numbers of packages that are being made and sent.
	Builds, Sends int
	// BuildFailures and SendFailures count consecutive failures. A success sets
	// its counter to 0.
	BuildFailures, SendFailures int
	// LastError is the error of the last failed build or send.
	LastError error
	// Fatal counts builds and sends that failed with the class [Fatal].
	Fatal int
	// Behind estimates how far the host's clock lags the chain's, from blocks
	// that arrived before their slot began by the host's clock. The submission
	// window is shifted by it. Without new evidence it halves every eleven
	// blocks.
	Behind time.Duration
	// LastImport is when the last JAM block was imported, and LastSlot is the
	// slot of that block.
	LastImport time.Time
	LastSlot   jamq.Slot
	// LastSend is when Network.Send last returned without an error.
	LastSend time.Time
}

// Recovery is the state of the queue that a builder has restored from its log, for
// the feed that continues from there.
type Recovery struct {
	// Logger receives what a feed that continues from here has to tell operators,
	// unless the feed has another logger. Nil means none.
	Logger *slog.Logger
	// Found is false if the log was empty. The other fields then describe
	// the new queue.
	Found bool
	// Steps is the number of steps after the last snapshot. Next is the number
	// that the next bundle must have.
	Steps int
	Next  uint64
	// Bundles describes the bundles in the queue, sorted by number.
	Bundles []bundlequeue.Info
	// Finalized and Best are the last finalized block and the best block of the
	// JAM chain that the queue knows. A feed continues after Finalized. It may
	// deliver blocks again that the queue knows already.
	Finalized, Best anchor.Point
	// Head is the commitment of the last bundle in the queue, on which the host
	// executes the next one. See bundlequeue.Queue.Head.
	Head common.Hash
	// Out lists the packages that may be on the network. The host passes them
	// to a feed that follows packages, before the feed continues.
	Out []Out
}

// Out is a package that may be on the network: it was sent, and its bundle is
// not final.
type Out struct {
	// Number is the number of the bundle, Version the version of its package,
	// and Package the package's hash.
	Number  uint64
	Version int
	Package jamq.PackageHash
	// Core is the core that the package was last sent to.
	Core jamq.CoreIndex
	// Context holds the parts of its refine context that serve as evidence: the
	// anchor's hash and slot, the lookup anchor's slot, and the prerequisites.
	Context jamq.RefineContext
	// Reported, Available and Accumulated are the blocks of the best chain in
	// which the package was reported, became available and was accumulated. A
	// zero point means that this has not happened.
	Reported, Available, Accumulated anchor.Point
}
