package bundlequeue

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/internal/minheap"
)

// instant is a time as the queue keeps it: nanoseconds since 1970.
type instant int64

// item is one rollup block in the queue.
type item[B any] struct {
	number     uint64
	place      uint64 // counts all items ever queued
	commitment common.Hash
	bundle     B
	state      State

	// versions are the packages that may be out, and the one that is to be sent, oldest first.
	versions []*version[B]
	// deadSince is the latest block of death among the versions that were pruned; nil if none was.
	deadSince *anchor.Point
	// request is the outstanding build, or nil.
	request *request
	// lastVersion is the highest version number asked for.
	lastVersion int

	core      jamq.CoreIndex // held now, or the last one held
	holdsCore bool
	touched   bool // on the list of those to review

	turn    minheap.Entry[int64, *item[B]] // in Queue.due or in Queue.waiting: see Queue.plan
	waiting bool                           // in the latter

	// notBefore is when the next build may begin; while Reserved, when the reservation ends.
	notBefore instant
	// trouble is what went wrong with the last builds; nil if nothing did, which is the rule.
	trouble *trouble
	// queuedAt is when the bundle last began to wait for a package.
	queuedAt instant
}

// trouble is what keeps a bundle from having another package, since the last one that left.
type trouble struct {
	// failed counts builds that the host could not do, useless those whose package was dead on
	// arrival.
	failed, useless int
	// reason is why the last useless package was dead.
	reason anchor.Reason
	// untilBest and untilFinal delay the next build until the best or the finalized block is
	// another one than this. Zero delays nothing.
	untilBest, untilFinal jamq.HeaderHash
	// givenUp is the reason of a GiveUp event, or empty. No package is sent after it.
	givenUp string
}

// troubles returns what went wrong with the last builds, to be read.
func (it *item[B]) troubles() trouble {
	if it.trouble == nil {
		return trouble{}
	}
	return *it.trouble
}

// inTrouble returns the same, to be changed.
func (it *item[B]) inTrouble() *trouble {
	if it.trouble == nil {
		it.trouble = new(trouble)
	}
	return it.trouble
}

// hasBundle reports whether the host's bundle is there: from Enqueue on, until the block is final.
func (it *item[B]) hasBundle() bool { return it.state != Reserved && it.state != Finalized }

// dropBundles lets go of what the host put into a bundle that is final. It may be megabytes, and it
// is never needed again.
func (it *item[B]) dropBundles() {
	var none B
	it.bundle = none
	for _, v := range it.versions {
		v.bundle = none
	}
}

// request is an outstanding build.
type request struct {
	ticket        uint64
	version       int
	minAnchor     anchor.Point
	prerequisites []jamq.PackageHash
	best          anchor.Point    // the best block when it was asked for
	final         jamq.HeaderHash // the finalized block then
}

// version is one package of a rollup block.
type version[B any] struct {
	item   *item[B]
	number int
	pkg    jamq.PackageHash
	bundle B
	fate   Fate

	// sent says that a Send effect was returned: from then on the bytes may be anywhere.
	sent bool
	// accepted says that a guarantor took the package, refused that none will.
	accepted, refused bool
	// wasDead says that the host was told of its death, lost that the death counts against the
	// bundle.
	wasDead, lost bool
	rivalSeen     bool   // counted as a duplicate guarantee
	ticket        uint64 // of the outstanding send, or 0
	attempts      int
	failures      int // sends that failed, in a row
	firstSend     instant
	lastSend      instant
	nextSend      instant
	sentHeight    uint64 // of the best block when it was first sent
}

func (v *version[B]) dead() bool        { return v.fate.Standing().Dead != anchor.Alive }
func (v *version[B]) reported() bool    { return v.fate.Standing().Reported }
func (v *version[B]) accumulated() bool { return v.fate.Standing().Accumulated }

// winner returns the version that the best chain has accumulated, or else one that it has reported
// and that is alive, or nil.
func (it *item[B]) winner() *version[B] {
	var reported *version[B]
	for _, v := range it.versions {
		s := v.fate.Standing()
		if s.Accumulated {
			return v
		}
		if reported == nil && s.Reported && s.Dead == anchor.Alive {
			reported = v
		}
	}
	return reported
}

// live returns the version that may still be accumulated, or nil. On a chain that obeys the rules
// there is at most one: where the anchor of a version is on the chain, the earlier versions are
// dead.
func (it *item[B]) live() *version[B] {
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

// left reports whether the live version of a bundle is out, so that its successor may follow
// (promise B3: packages leave in order).
func (it *item[B]) left() bool {
	v := it.live()
	return v != nil && v.sent
}

// derive returns the state that the evidence on the best chain gives, the version that decides it,
// and the block that proves it.
func (it *item[B]) derive() (State, *version[B], anchor.Point) {
	if w := it.winner(); w != nil {
		s := w.fate.Status()
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
