package bundlequeue

import (
	"cmp"
	"slices"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// plan files a bundle under what it waits for: for the time of its next send, or for its turn to get a core. It must be called
// whenever one of them may have changed.
func (q *Queue[B]) plan(it *item[B]) {
	if it.waiting {
		q.waiting.Remove(&it.turn)
	} else {
		q.due.Remove(&it.turn)
	}
	it.waiting = it.state < Guaranteed && !it.holdsCore
	if it.waiting {
		q.waiting.Set(&it.turn, int64(it.place))
	} else if v := it.live(); it.holdsCore && v != nil && v.ticket == 0 && q.maySend(v) {
		q.due.Set(&it.turn, int64(v.nextSend))
	}
}

// schedule sends what is due, and starts bundles in the order of rollup blocks as far as cores are free. Behind one that cannot start,
// none can: each needs the package of the one before it. Only one whose package is out already, and that a reorg took the report
// and the core from, lets others pass.
func (q *Queue[B]) schedule() {
	q.sendDue()
	var passed []*item[B]
	q.blocked = nil
	for e := q.waiting.Min(); e != nil && q.held < len(q.holders); e = q.waiting.Min() {
		it := e.Value
		v := it.live()
		if v != nil {
			q.send(it, v)
		} else if it.request == nil {
			q.build(it)
		}
		if it.holdsCore {
			continue
		}
		if v == nil || !v.sent {
			q.blocked = it
			break
		}
		q.waiting.Remove(e)
		passed = append(passed, it)
	}
	for _, it := range passed {
		q.plan(it)
	}
	q.sendDue() // of those that were waiting for a predecessor to leave
}

// sendDue sends what is due, in order. What may not leave yet stays due.
func (q *Queue[B]) sendDue() {
	var now []*item[B]
	for e := q.due.Min(); e != nil && e.Key() <= int64(q.now); e = q.due.Min() {
		q.due.Remove(e)
		now = append(now, e.Value)
	}
	slices.SortFunc(now, byPlace[B])
	for _, it := range now {
		v := it.live()
		if v.sent && !q.keeps(ruleAllDead) {
			q.build(it) // as builders do that go by the clock
		} else {
			q.send(it, v)
		}
		q.plan(it)
	}
}

func byPlace[B any](a, b *item[B]) int { return cmp.Compare(a.place, b.place) }

// maySend reports whether the same bytes may be sent once more.
func (q *Queue[B]) maySend(v *version[B]) bool { return v.attempts <= q.cfg.MaxSubmitRetries }

// send hands out the bytes of a version if it is time, and its predecessor is out.
func (q *Queue[B]) send(it *item[B], v *version[B]) {
	if v.ticket != 0 || !q.maySend(v) || q.now < v.nextSend {
		return
	}
	if p := q.predecessor(it); p != nil && !p.left() {
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
	q.plan(it)
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
func (q *Queue[B]) build(it *item[B]) {
	if !q.mayBuild(it) {
		return
	}
	needs, minAnchor, ok := q.admissible(it)
	if !ok {
		return
	}
	at, offset, ok := q.chooseAnchor(minAnchor, q.offset(it))
	if !ok || !q.acquireCore(it) {
		return
	}
	q.ticket++
	it.lastVersion++
	it.request = &request{ticket: q.ticket, version: it.lastVersion, minAnchor: minAnchor, prerequisites: needs}
	q.builds[q.ticket] = it
	q.plan(it)
	q.update(it)
	q.emit(Build[B]{
		Ticket: q.ticket, Number: it.number, Version: it.lastVersion, Bundle: it.bundle, Core: it.core,
		Offset: offset, Anchor: at, MinAnchor: minAnchor, Prerequisites: append([]jamq.PackageHash(nil), needs...),
	})
}

// admissible says whether a new version of a bundle may be built, what it must name as prerequisites, and the oldest
// block that it may be anchored to. These are the safety theorem and promise B3 in one place.
func (q *Queue[B]) admissible(it *item[B]) (needs []jamq.PackageHash, minAnchor anchor.Point, ok bool) {
	minAnchor, ok = q.evidence(it)
	if !ok {
		return nil, anchor.Point{}, false
	}
	p := q.predecessor(it)
	if p == nil {
		return nil, minAnchor, true
	}
	v := p.live()
	if v == nil {
		return nil, minAnchor, !q.keeps(rulePredecessorLive)
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
			minAnchor = later(minAnchor, done)
		}
		return nil, minAnchor, true
	}
	if anchor.PrerequisiteExpired(&q.cfg.Spec, v.status().Reported, best) {
		return nil, anchor.Point{}, false // nobody could report it: wait until the predecessor is accumulated
	}
	return []jamq.PackageHash{v.pkg}, minAnchor, true
}

// evidence returns the block by which every version of a bundle is dead on the best chain, zero if it has none, and whether there is
// such a block.
func (q *Queue[B]) evidence(it *item[B]) (since anchor.Point, ok bool) {
	for _, v := range it.versions {
		if !v.dead() && q.keeps(ruleAllDead) {
			return anchor.Point{}, false
		}
		if q.keeps(ruleAnchorAtEvidence) {
			since = later(since, v.status().DeadSince)
		}
	}
	return since, true
}

// later returns the higher of two blocks of one chain; zero is below all.
func later(a, b anchor.Point) anchor.Point {
	if a.IsZero() || b.Height > a.Height {
		return b
	}
	return a
}

// offset returns how many blocks behind the newest the policy wants the anchor of a bundle.
func (q *Queue[B]) offset(it *item[B]) int {
	ahead := 0
	for _, other := range q.holders {
		if other != nil && other.place < it.place {
			ahead++
		}
	}
	if q.cfg.Anchors == AdaptiveAnchor {
		return anchor.Best(&q.cfg.Spec, q.delays.Estimate(), ahead, len(q.cfg.Cores))
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
	if !q.keeps(ruleNeverNewest) {
		height = best
	} else if height >= best {
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
	if q.holders[found] == nil {
		q.held++
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
			q.held--
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
	for _, it := range q.holders { // not only the first that is due: it may wait for its predecessor
		if it != nil && it.turn.Queued() {
			consider(instant(it.turn.Key()))
		}
	}
	if e := q.timers.Min(); e != nil {
		consider(e.Key())
	}
	if e := q.waiting.Min(); e != nil {
		q.considerWaiting(e.Value, consider)
	}
	if q.blocked != nil { // those behind it wait for it
		q.considerWaiting(q.blocked, consider)
	}
	if wake == 0 {
		return time.Time{}, false
	}
	return time.Unix(0, int64(wake)).UTC(), true
}

// considerWaiting considers the times at which a bundle without a core may go on.
func (q *Queue[B]) considerWaiting(it *item[B], consider func(instant)) {
	consider(it.notBefore)
	if v := it.live(); v != nil && v.ticket == 0 && q.maySend(v) {
		consider(v.nextSend)
	}
	if q.view == nil {
		for _, v := range it.versions {
			consider(v.lastSend + instant(q.cfg.FailureHold))
		}
	}
}
