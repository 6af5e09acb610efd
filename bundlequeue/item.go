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

// item is one bundle in the queue. It exists from the Reserve or Enqueue event
// until the bundle fails, or until the queue forgets it after it has become final.
type item struct {
	number     uint64
	place      uint64 // counts all items ever queued
	commitment common.Hash
	awaited    *common.Hash // in Reserved: the Parent of the bundle after it, or nil
	bundle     []byte
	state      State

	// versions are the packages of the bundle that the queue has not forgotten, oldest first.
	// All of them were sent, except perhaps the last one.
	versions []*version
	// deadSince is the latest block at which one of the versions that prune has removed
	// died, or nil if there are none. A new version must be anchored at this block or
	// later, so that no chain accumulates both.
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

	// notBefore is the earliest time of the next build. While the number is only
	// reserved, notBefore is instead the end of the reservation.
	notBefore instant
	// trouble counts failed builds, for the back-off and for Delay; nil for most bundles.
	trouble *trouble
	// queuedAt is when the bundle last began to wait for a package: when it was enqueued, or when
	// its last sent package died.
	queuedAt instant
}

// trouble counts the problems with the builds of a bundle since the queue last sent
// a new package of it. The counts determine the back-off, and operators see them in
// Delay.
type trouble struct {
	// failed counts the builds that the host could not carry out. useless counts the builds
	// whose package was already dead before it could be sent.
	failed, useless int
	// reason is the reason for which the last of the useless packages was dead.
	reason anchor.Reason
	// untilBest and untilFinal are the best and the finalized block of a build whose package was
	// useless. The next build waits until that block has changed, because the same block would give
	// the same package. Zero means no wait.
	untilBest, untilFinal jamq.HeaderHash
	// givenUp is the reason in a GiveUp event of the host, or empty if there was no such event.
	// After the event the queue sends no package of the bundle.
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

// hasBundle reports whether the queue still needs the bytes that the host has enqueued. A
// reserved number has no bytes yet, and a final bundle no longer needs them.
func (it *item) hasBundle() bool { return it.state != Reserved && it.state != Finalized }

// dropBundles frees the bytes that the host has enqueued and those of the packages. The
// queue calls it when the bundle is final, because the bytes may be large and have no
// further use.
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
	// reorged is true if minAnchor has left the best chain since the request, or if the
	// view has forgotten that block. Open may then have repeated the request with an
	// older anchor after a restart, so an older anchor in the answer is not a mistake of
	// the host.
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

	// sent is true as soon as Step has returned a Send effect for this package. From then
	// on the package may be on the network, whether or not the host has carried out the
	// effect.
	sent bool
	// accepted is true if a guarantor has accepted the package. refused is true if the host
	// has reported that no guarantor will ever accept it.
	accepted, refused bool
	// wasDead is true if the host has received a Died effect for the present death of the
	// package. lost is true if this death counts against the bundle: see isLoss.
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

// winner returns the package that makes the bundle guaranteed or accumulated on the best
// chain, or nil if there is none. An accumulated package takes precedence over a package
// that is only reported and not dead.
func (it *item) winner() *version {
	var reported *version
	for _, v := range it.versions {
		if v.accumulated() {
			return v
		}
		if reported == nil && v.reported() && !v.dead() {
			reported = v
		}
	}
	return reported
}

// live returns the package of the bundle that was accumulated or still may be, or nil
// if there is none. A valid chain has at most one such package, because each package is
// anchored at a block at which all earlier packages are dead.
func (it *item) live() *version {
	if w := it.winner(); w != nil {
		return w
	}
	for _, v := range slices.Backward(it.versions) {
		if !v.dead() {
			return v
		}
	}
	return nil
}

// left reports whether the bundle's live package, the one that may still be accumulated,
// has been sent. Only then may the next bundle's package be sent, because packages are
// sent in the order of their rollup blocks (promise B3).
func (it *item) left() bool {
	v := it.live()
	return v != nil && v.sent
}

// derive computes the state of the bundle on the best chain. It also returns the
// package that decides the state, and the JAM block that proves the state. The
// block is zero for states that no block proves.
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
