package bundlequeue

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/internal/minheap"
)

// instant is a time as the queue keeps it: nanoseconds since 1970.
type instant int64

// item is one rollup block in the queue.
type item[B any] struct {
	number     uint64
	place      uint64 // counts all items ever queued, without gaps, so it finds the item whatever its number is
	commitment common.Hash
	bundle     B
	state      State
	versions   []*version[B] // in the order of their making
	request    *request      // the outstanding build, if any
	// lastVersion is the highest version number asked for, also of packages that never left.
	lastVersion int

	core      jamq.CoreIndex // the core held, or the last one held
	holdsCore bool
	touched   bool // is on the list of those to review

	buildFailures int                            // in a row
	turn          minheap.Entry[int64, *item[B]] // in Queue.due or in Queue.waiting: see Queue.plan
	waiting       bool                           // in the latter

	// notBefore is when the next build may begin; while Reserved, when the reservation ends.
	notBefore instant
}

// hasBundle reports whether the host's bundle is there, and its versions' too: not before it is enqueued, nor once it is final.
func (it *item[B]) hasBundle() bool { return it.state != Reserved && it.state != Finalized }

// dropBundles lets go of what the host put into a bundle that is final: nobody will ask for it, and it may be megabytes.
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
}

// version is one package of a rollup block.
type version[B any] struct {
	item   *item[B]
	number int
	pkg    jamq.PackageHash
	bundle B

	// trace is the evidence; told stands for it where the host feeds no blocks.
	trace *chainview.Trace
	told  *told[B]

	// sent says that a Send effect was returned: the bytes may be anywhere from now on.
	sent       bool
	accepted   bool   // a send succeeded
	wasDead    bool   // as the host was told
	rivalSeen  bool   // counted as a duplicate guarantee
	ticket     uint64 // of the outstanding send, or 0
	attempts   int
	failures   int // sends that failed, in a row
	lastSend   instant
	nextSend   instant
	sentHeight uint64 // of the best block when it was first sent
}

// told is what a host without blocks has said about a version.
type told[B any] struct {
	status        chainview.Status
	prerequisites []jamq.PackageHash
	spread        bool // dead only because its prerequisite is
	final         bool
	timeouts      int // without accumulation
	deadline      minheap.Entry[instant, *version[B]]
}

func (v *version[B]) status() chainview.Status {
	if v.trace != nil {
		return v.trace.Status()
	}
	return v.told.status
}

func (v *version[B]) prerequisites() []jamq.PackageHash {
	if v.trace != nil {
		return v.trace.Prerequisites()
	}
	return v.told.prerequisites
}

func (v *version[B]) dead() bool {
	if v.trace != nil {
		return v.trace.Dead() != anchor.Alive
	}
	return v.told.status.Dead != anchor.Alive
}

func (v *version[B]) reported() bool {
	if v.trace != nil {
		return v.trace.IsReported()
	}
	return !v.told.status.Reported.IsZero()
}

func (v *version[B]) accumulated() bool {
	if v.trace != nil {
		return v.trace.IsAccumulated()
	}
	return !v.told.status.Accumulated.IsZero()
}

// winner returns the version that the best chain has accumulated, or else holds reported and alive, or nil.
func (it *item[B]) winner() *version[B] {
	var reported *version[B]
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

// live returns the version that may still make it, or nil. The safety theorem leaves at most one: where a version's
// anchor is on the chain, the earlier ones are dead.
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

// left reports whether the live version of a bundle is out, so that its successor may follow (promise B3).
func (it *item[B]) left() bool {
	v := it.live()
	return v != nil && v.sent
}

// derive returns the state that the evidence on the best chain gives, the version that decides it, and the block that
// proves it.
func (it *item[B]) derive() (State, *version[B], anchor.Point) {
	if w := it.winner(); w != nil {
		if s := w.status(); !s.Accumulated.IsZero() {
			return Accumulated, w, s.Accumulated
		}
		return Guaranteed, w, w.status().Reported
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
