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

// item is one bundle in the queue.
type item struct {
	number     uint64
	place      uint64 // counts all items ever queued
	commitment common.Hash
	awaited    *common.Hash // in Reserved: the Parent of the bundle after it, or nil
	bundle     []byte
	state      State

	// versions are the packages that were sent and the one to be sent, oldest
	// first.
	versions []*version
	// deadSince is the latest block of death among the pruned versions, or nil
	// if there are none.
	deadSince *anchor.Point
	// request is the open build, or nil.
	request *request
	// lastVersion is the highest version number that was requested.
	lastVersion int

	core      jamq.CoreIndex // current or last core
	holdsCore bool
	touched   bool // in Queue.touched

	turn    minheap.Entry[int64, *item] // in Queue.due or Queue.waiting
	waiting bool                        // turn is in Queue.waiting

	// notBefore is when the next build may begin. In Reserved, it is when the
	// reservation ends.
	notBefore instant
	// trouble holds the problems with the last builds. It is nil in most cases.
	trouble *trouble
	// queuedAt is when the bundle last began to wait for a package.
	queuedAt instant
}

// trouble holds the problems with builds since the last package was sent.
type trouble struct {
	// failed counts failed builds, and useless counts builds whose package was
	// dead before it was sent.
	failed, useless int
	// reason is the reason why the last useless package was dead.
	reason anchor.Reason
	// untilBest and untilFinal delay the next build until the best or the
	// finalized block differs from this hash. Zero means no delay.
	untilBest, untilFinal jamq.HeaderHash
	// givenUp is the reason of a GiveUp event, or empty. No package is sent
	// after such an event.
	givenUp string
}

// troubles returns a copy of the bundle's trouble.
func (it *item) troubles() trouble {
	if it.trouble == nil {
		return trouble{}
	}
	return *it.trouble
}

// inTrouble returns the bundle's trouble for modification.
func (it *item) inTrouble() *trouble {
	if it.trouble == nil {
		it.trouble = new(trouble)
	}
	return it.trouble
}

// hasBundle reports whether the item holds the host's bundle: from Enqueue
// until the block is final.
func (it *item) hasBundle() bool { return it.state != Reserved && it.state != Finalized }

// dropBundles releases the host's data of a final bundle, which may be large
// and is not needed any more.
func (it *item) dropBundles() {
	it.bundle = nil
	for _, v := range it.versions {
		v.bundle = nil
	}
}

// request is an open build.
type request struct {
	ticket    uint64
	version   int
	minAnchor anchor.Point
	// reorged is true if minAnchor has left the best chain since the request, or
	// was pruned. Open may then have returned the request with an older anchor.
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

	// sent is true once a Send effect was returned. The package may be on the
	// network from then on.
	sent bool
	// accepted is true if a guarantor accepted the package. refused is true if
	// no guarantor will.
	accepted, refused bool
	// wasDead is true if the host received a Died effect for the current death.
	// lost is true if that death counts against the bundle.
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

// winner returns the version that the best chain has accumulated. If there is
// none, it returns a reported version that is not dead, or nil.
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

// live returns the version that may still be accumulated, or nil. On a valid
// chain there is at most one: if the anchor of a version is on the chain, all
// earlier versions are dead.
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

// left reports whether the live version of a bundle was sent. Its successor may
// be sent then (promise B3: packages are sent in order).
func (it *item) left() bool {
	v := it.live()
	return v != nil && v.sent
}

// derive returns the state of the bundle on the best chain, the version that
// determines it, and the block that proves it.
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
