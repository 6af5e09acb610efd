package bundlequeue

import (
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// schedule starts builds and sends in the order of rollup blocks, as far as cores are free.
//
// It visits the bundles that hold a core, and those before them, and then as many as can begin. Behind one that cannot begin, none
// can: each needs the package of the one before it.
func (q *Queue[B]) schedule() {
	first := q.advance()
	if first == nil {
		return
	}
	ahead, held := 0, q.held()
	for place := first.place; place < q.end(); place++ {
		it := q.at(place)
		if it.state >= Guaranteed {
			continue
		}
		had := it.holdsCore
		if v := it.live(); v != nil && (q.keeps(ruleAllDead) || !v.accepted || !q.mayBuild(it)) {
			q.send(it, v)
		} else if it.request == nil {
			q.build(it, ahead)
		}
		switch {
		case had:
			ahead, held = ahead+1, held-1
		case it.holdsCore:
			ahead++
		case held == 0:
			return
		}
	}
}

// held returns how many bundles hold a core.
func (q *Queue[B]) held() int {
	n := 0
	for _, it := range q.holders {
		if it != nil {
			n++
		}
	}
	return n
}

// maySend reports whether the same bytes may be sent once more.
func (q *Queue[B]) maySend(v *version[B]) bool { return v.attempts <= q.cfg.MaxSubmitRetries }

// send hands out the bytes of a version if it is time, and its predecessor is out.
func (q *Queue[B]) send(it *item[B], v *version[B]) {
	if v.ticket != 0 || !q.maySend(v) || q.now < v.nextSend {
		return
	}
	if p := q.predecessor(it); p != nil && !p.left() && q.keeps(rulePredecessorLeft) {
		return
	}
	if !q.acquireCore(it) {
		return
	}
	q.ticket++
	v.ticket = q.ticket
	q.sends[v.ticket] = v
	if !v.sent && q.view != nil {
		v.sentHeight = q.view.Best().Height
	}
	v.sent, v.lastSend = true, q.now
	v.attempts++
	q.total.Sends++
	q.update(it)
	q.emit(Send[B]{
		Ticket: v.ticket, Number: it.number, Version: v.number, Package: v.pkg, Bundle: v.bundle,
		Core: it.core, Attempt: v.attempts,
	})
}

// mayBuild reports whether a bundle may have another version, as far as tries go.
func (q *Queue[B]) mayBuild(it *item[B]) bool {
	return it.state != Reserved && q.now >= it.notBefore && len(it.versions) <= q.cfg.MaxVersionRetries && it.buildFailures <= q.cfg.MaxVersionRetries
}

// build asks for a new version if one is admissible.
func (q *Queue[B]) build(it *item[B], ahead int) {
	if !q.mayBuild(it) {
		return
	}
	needs, minAnchor, ok := q.admissible(it)
	if !ok {
		return
	}
	offset := q.offset(ahead)
	at, offset, ok := q.chooseAnchor(minAnchor, offset)
	if !ok || !q.acquireCore(it) {
		return
	}
	q.ticket++
	it.lastVersion++
	it.request = &request{ticket: q.ticket, version: it.lastVersion, minAnchor: minAnchor, prerequisites: needs}
	q.builds[q.ticket] = it
	q.update(it)
	q.emit(Build[B]{
		Ticket: q.ticket, Number: it.number, Version: it.lastVersion, Bundle: it.bundle, Core: it.core,
		Offset: offset, Anchor: at, MinAnchor: minAnchor, Prerequisites: append([]jamq.PackageHash(nil), needs...),
	})
}

// admissible says whether a new version of a bundle may be built, what it must name as prerequisites, and the oldest
// block that it may be anchored to. These are the safety theorem and promise B3 in one place.
func (q *Queue[B]) admissible(it *item[B]) (needs []jamq.PackageHash, minAnchor anchor.Point, ok bool) {
	minAnchor = q.floor
	raise := func(p anchor.Point) {
		if p.Height > minAnchor.Height || minAnchor.IsZero() {
			minAnchor = p
		}
	}
	for _, v := range it.versions {
		if !v.dead() && q.keeps(ruleAllDead) {
			return nil, anchor.Point{}, false
		}
		if q.keeps(ruleAnchorAtEvidence) {
			raise(v.status().DeadSince)
		}
	}
	p := q.predecessor(it)
	if p == nil {
		return nil, minAnchor, true
	}
	v := p.live()
	if v == nil {
		return nil, anchor.Point{}, false
	}
	if !q.keeps(ruleNamePredecessor) {
		return nil, minAnchor, true
	}
	done := v.status().Accumulated
	if q.view == nil {
		if !done.IsZero() {
			return nil, minAnchor, true
		}
		return []jamq.PackageHash{v.pkg}, minAnchor, true
	}
	best := q.view.Best().Height
	if !done.IsZero() && done.Height < best {
		// The prerequisite may be left out only where the predecessor is accumulated on the anchor's own chain.
		if q.keeps(ruleLeaveOutWhereDone) {
			raise(done)
		}
		return nil, minAnchor, true
	}
	if anchor.PrerequisiteExpired(&q.cfg.Spec, v.status().Reported, best) && q.keeps(ruleRecentPredecessor) {
		return nil, anchor.Point{}, false // nobody could report it: wait until the predecessor is accumulated
	}
	return []jamq.PackageHash{v.pkg}, minAnchor, true
}

// offset returns how many blocks behind the newest the policy wants the anchor.
func (q *Queue[B]) offset(ahead int) int {
	if q.cfg.Anchors == AdaptiveAnchor {
		return q.delays.Best(&q.cfg.Spec)
	}
	return anchor.Offset(&q.cfg.Spec, ahead, len(q.cfg.Cores))
}

// chooseAnchor picks the block at an offset behind the best one, or minAnchor if that is newer, and returns its real offset. The
// newest block never serves: its state root is not public before it has a child.
func (q *Queue[B]) chooseAnchor(minAnchor anchor.Point, offset int) (anchor.Point, int, bool) {
	if q.view == nil {
		return anchor.Point{}, offset, true
	}
	best := q.view.Best().Height
	height := best - min(uint64(offset), best)
	if !minAnchor.IsZero() {
		height = max(height, minAnchor.Height)
	}
	if height >= best {
		return anchor.Point{}, 0, false
	}
	at, ok := q.view.AtHeight(height)
	return at, int(best - height), ok
}

// acquireCore gives a bundle a core that no other bundle holds (promise B4), if it has none yet. A core that the chain
// will have free for the next block is preferred, then the order of Config.Cores.
func (q *Queue[B]) acquireCore(it *item[B]) bool {
	if it.holdsCore {
		return true
	}
	found := -1
	for i, core := range q.cfg.Cores {
		if q.holders[i] != nil && q.keeps(ruleOneCore) {
			continue
		}
		free := q.view == nil || q.view.CoreFree(core)
		if found < 0 || free {
			found = i
		}
		if free {
			break
		}
	}
	if found < 0 {
		return false
	}
	q.holders[found] = it
	it.core, it.holdsCore = q.cfg.Cores[found], true
	return true
}

// freeCore takes a bundle's core away, if it holds one.
func (q *Queue[B]) freeCore(it *item[B]) {
	if !it.holdsCore {
		return
	}
	it.holdsCore = false
	for i, other := range q.holders {
		if other == it {
			q.holders[i] = nil
		}
	}
}

// NextWake returns the earliest time after now at which a Tick would do something, and whether there is one.
func (q *Queue[B]) NextWake(now time.Time) (time.Time, bool) {
	after := max(instant(now.UnixNano()), q.now)
	wake := instant(0)
	consider := func(t instant) {
		if t > after && (wake == 0 || t < wake) {
			wake = t
		}
	}
	for _, it := range q.holders {
		if it == nil {
			continue
		}
		if v := it.live(); v != nil && v.ticket == 0 && q.maySend(v) {
			consider(v.nextSend)
		}
	}
	// The first that holds no core may wait for a back-off; those behind it wait for it.
	for it := q.at(q.frontier); it != nil; it = q.at(it.place + 1) {
		if it.state < Guaranteed && !it.holdsCore {
			consider(it.notBefore)
			if v := it.live(); v != nil && v.ticket == 0 && q.maySend(v) {
				consider(v.nextSend)
			}
			if q.view == nil {
				for _, v := range it.versions {
					consider(v.lastSend + instant(q.cfg.FailureHold))
				}
			}
			break
		}
	}
	if e := q.timers.Min(); e != nil {
		consider(e.Key())
	}
	if wake == 0 {
		return time.Time{}, false
	}
	return time.Unix(0, int64(wake)).UTC(), true
}
