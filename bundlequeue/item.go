package bundlequeue

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/internal/minheap"
)

// instant is a time in nanoseconds since 1970.
type instant int64

// item is one bundle in the queue. It exists from the Reserve or Enqueue event until
// the bundle fails, or until the queue forgets it after it has become final.
type item struct {
	number     uint64
	place      uint64 // counts all items ever queued
	commitment common.Hash
	awaited    *common.Hash // in Reserved: the Parent of the bundle after it, or nil
	bundle     []byte
	state      State

	// versions are the bundle's packages, oldest first. Only the last one may be
	// unsent.
	versions []*version
	// deadSince is the latest block at which a package of the bundle has died that the
	// queue no longer remembers. New packages are anchored at this block or later, so
	// that no chain can accumulate an old and a new package. It is nil if there is
	// none.
	deadSince *anchor.Point
	// request is the unanswered build request, or nil.
	request *request
	// lastVersion is the number of the newest package requested for this bundle, from 1.
	lastVersion int

	core      jamq.CoreIndex // current or last core
	holdsCore bool
	touched   bool // in Queue.touched

	turn    minheap.Entry[int64, *item] // in Queue.due or Queue.waiting
	waiting bool                        // turn is in Queue.waiting

	// notBefore is the earliest time of the next build, for the back-off after a failed
	// build. While the number is only reserved, it is the time at which the reservation
	// ends.
	notBefore instant
	// trouble counts failed builds, for the back-off and for Delay; nil for most bundles.
	trouble *trouble
	// queuedAt is when the bundle was enqueued, or when its last sent package died.
	queuedAt instant
}

// trouble counts the problems with the builds of a bundle since the queue last sent a
// new package for the bundle. The counts determine the back-off, and operators see them
// in Delay.
type trouble struct {
	// failed counts the builds that the host reported as failed. useless counts the packages
	// that were dead before they could be sent.
	failed, useless int
	// reason is the reason for which the last of the useless packages was dead.
	reason anchor.Reason
	// If a package was already dead when it was built, one of these is set: the best block or
	// the finalized block at the time of its request. No new build begins while that block is
	// still the newest, because it would give the same dead package.
	untilBest, untilFinal jamq.HeaderHash
	// givenUp is the reason in a GiveUp event. After that event the queue sends no
	// package.
	givenUp string
}

// troubles returns a copy of the bundle's trouble, or the zero value.
func (it *item) troubles() trouble {
	if it.trouble == nil {
		return trouble{}
	}
	return *it.trouble
}

// inTrouble returns the bundle's trouble for a change, and creates it if necessary.
func (it *item) inTrouble() *trouble {
	if it.trouble == nil {
		it.trouble = new(trouble)
	}
	return it.trouble
}

// hasBundle reports whether the queue has the encoded bundle. The host has not enqueued
// it yet while its number is only reserved, and the queue drops it when it is final.
func (it *item) hasBundle() bool { return it.state != Reserved && it.state != Finalized }

// dropBundles frees the bytes of a final bundle, because they may be large.
func (it *item) dropBundles() {
	it.bundle = nil
	for _, v := range it.versions {
		v.bundle = nil
	}
}

// request is a build request that the host has not answered yet.
type request struct {
	ticket    uint64
	version   int
	minAnchor anchor.Point
	// reorged is true if the block minAnchor has left the best chain since the request. Open
	// may then have asked again with an older anchor, so an older anchor is not refused as a
	// mistake of the host.
	reorged       bool
	prerequisites []jamq.PackageHash
	best          anchor.Point    // best block at the request
	final         jamq.HeaderHash // finalized block at the request
}

// version is one package of a bundle.
type version struct {
	item   *item
	number int
	pkg    jamq.PackageHash
	bundle []byte
	trace  *chainview.Trace

	// sent is true once Step has returned a Send effect for this package. The package
	// may then be on the network, whether or not the host has carried out the effect.
	sent bool
	// accepted means that a guarantor has accepted the package, refused that none ever
	// will.
	accepted, refused bool
	// wasDead means that the present death was reported, lost that it counts (see
	// isLoss).
	wasDead, lost bool
	rivalSeen     bool   // counted as a duplicate guarantee
	ticket        uint64 // of the open send, or 0
	attempts      int
	failures      int // consecutive failed sends
	firstSend     instant
	lastSend      instant
	nextSend      instant
	sentHeight    uint64 // best height at the first send
}

func (v *version) dead() bool        { return v.trace.Dead() != anchor.Alive }
func (v *version) reported() bool    { return v.trace.IsReported() }
func (v *version) accumulated() bool { return v.trace.IsAccumulated() }

// winner returns the package that makes the bundle guaranteed or accumulated, or nil.
func (it *item) winner() *version {
	var reported *version
	for _, v := range it.versions {
		if v.accumulated() {
			return v
		}
		// An accumulated package takes precedence, so look at the other packages first.
		if reported == nil && v.reported() && !v.dead() {
			reported = v
		}
	}
	return reported
}

// live returns the package that was accumulated or still may be, or nil.
func (it *item) live() *version {
	if w := it.winner(); w != nil {
		return w
	}
	// At most one package of a bundle is alive, because each one is anchored at a block that
	// proves all earlier ones dead.
	for _, v := range slices.Backward(it.versions) {
		if !v.dead() {
			return v
		}
	}
	return nil
}

// left reports whether the bundle's live package has been sent.
func (it *item) left() bool {
	// Packages are sent in the order of their blocks (promise B3), so the next bundle waits
	// until this is true.
	v := it.live()
	return v != nil && v.sent
}

// derive computes the state of a bundle from the status of its packages on the JAM chain.
// It also returns the package that decides the state, and the JAM block that proves it.
func (it *item) derive() (State, *version, anchor.Point) {
	if w := it.winner(); w != nil {
		s := w.trace.Status()
		if !s.Accumulated.IsZero() {
			return Accumulated, w, s.Accumulated
		}
		return Guaranteed, w, s.Reported
	}
	v := it.live()
	switch {
	case it.state == Reserved:
		return Reserved, nil, anchor.Point{}
	case !it.holdsCore:
		return Queued, v, anchor.Point{}
	case it.request != nil:
		return Building, nil, anchor.Point{}
	case v == nil:
		return Queued, nil, anchor.Point{}
	case v.accepted:
		return Submitted, v, anchor.Point{}
	}
	return Sending, v, anchor.Point{}
}
