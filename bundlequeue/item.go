package bundlequeue

import (
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

// item is one rollup block in the queue.
type item[B any] struct {
	number     uint64
	commitment common.Hash
	bundle     B
	state      State
	versions   []*version[B] // in the order of their making; all but the last are dead or were never alive together
	request    *request      // the outstanding build, if any
	// lastVersion is the highest version number built, also of packages that never left.
	lastVersion int

	core      jamq.CoreIndex // the core held, or the last one held
	holdsCore bool

	buildFailures int // in a row
	notBefore     time.Time
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
	number  int
	pkg     jamq.PackageHash
	context jamq.RefineContext
	bundle  B

	sent     bool   // a Send effect was returned: the bytes may be anywhere from now on
	accepted bool   // a send succeeded
	ticket   uint64 // of the outstanding send, or 0
	attempts int
	failures int // sends that failed, in a row
	nextSend time.Time

	status chainview.Status // on the best chain
}

func (v *version[B]) dead() bool { return v.status.Dead != anchor.Alive }

// winner returns the version that the best chain has accumulated, or else holds reported and alive, or nil.
func (it *item[B]) winner() *version[B] {
	for _, v := range it.versions {
		if !v.status.Accumulated.IsZero() {
			return v
		}
	}
	for _, v := range it.versions {
		if !v.status.Reported.IsZero() && !v.dead() {
			return v
		}
	}
	return nil
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
		if !w.status.Accumulated.IsZero() {
			return Accumulated, w, w.status.Accumulated
		}
		return Guaranteed, w, w.status.Reported
	}
	v := it.live()
	switch {
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
