package bundlequeue

import (
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

// schedule starts builds and sends in the order of rollup blocks, as far as cores are free.
func (q *Queue[B]) schedule(now time.Time, out *[]Effect) {
	ahead := 0
	for i := q.active; i < len(q.items); i++ {
		it := q.items[i]
		if it.state >= Guaranteed {
			continue
		}
		if v := it.live(); v != nil {
			q.send(now, i, v, out)
		} else if it.request == nil {
			q.build(now, i, ahead, out)
		}
		if it.holdsCore {
			ahead++
		}
	}
}

// parent returns the bundle before items[i], or nil if there is none or it was retired as final.
func (q *Queue[B]) parent(i int) *item[B] {
	if i == 0 {
		return nil
	}
	return q.items[i-1]
}

// maySend reports whether the same bytes may be sent once more.
func (q *Queue[B]) maySend(v *version[B]) bool { return v.attempts <= q.cfg.MaxSubmitRetries }

// send hands out the bytes of a version if it is time, and its predecessor is out.
func (q *Queue[B]) send(now time.Time, i int, v *version[B], out *[]Effect) {
	it := q.items[i]
	if v.ticket != 0 || !q.maySend(v) || now.Before(v.nextSend) {
		return
	}
	if p := q.parent(i); p != nil && !p.left() {
		return
	}
	if !q.acquireCore(it) {
		return
	}
	q.ticket++
	v.ticket, v.sent = q.ticket, true
	v.attempts++
	q.total.Sends++
	q.update(it, out)
	*out = append(*out, Send[B]{
		Ticket: v.ticket, Number: it.number, Version: v.number, Package: v.pkg, Bundle: v.bundle,
		Core: it.core, Attempt: v.attempts,
	})
}

// build asks for a new version if one is admissible.
func (q *Queue[B]) build(now time.Time, i, ahead int, out *[]Effect) {
	it := q.items[i]
	if now.Before(it.notBefore) || len(it.versions) > q.cfg.MaxVersionRetries || it.buildFailures > q.cfg.MaxVersionRetries {
		return
	}
	needs, minAnchor, ok := q.admissible(i)
	if !ok {
		return
	}
	at, ok := q.chooseAnchor(minAnchor, ahead)
	if !ok || !q.acquireCore(it) {
		return
	}
	q.ticket++
	r := &request{ticket: q.ticket, version: it.lastVersion + 1, minAnchor: minAnchor, prerequisites: needs}
	it.request = r
	q.update(it, out)
	*out = append(*out, Build[B]{
		Ticket: r.ticket, Number: it.number, Version: r.version, Bundle: it.bundle, Core: it.core,
		Anchor: at, MinAnchor: minAnchor, Prerequisites: append([]jamq.PackageHash(nil), needs...),
	})
}

// admissible says whether a new version of items[i] may be built, what it must name as prerequisites, and the oldest
// block that it may be anchored to. These are the safety theorem and promise B3 in one place.
func (q *Queue[B]) admissible(i int) (needs []jamq.PackageHash, minAnchor anchor.Point, ok bool) {
	minAnchor = q.floor
	raise := func(p anchor.Point) {
		if p.Height > minAnchor.Height || minAnchor.IsZero() {
			minAnchor = p
		}
	}
	for _, v := range q.items[i].versions {
		if !v.dead() {
			return nil, anchor.Point{}, false
		}
		raise(v.status.DeadSince)
	}
	p := q.parent(i)
	if p == nil {
		return nil, minAnchor, true
	}
	v := p.live()
	if v == nil {
		return nil, anchor.Point{}, false
	}
	best := q.view.Best().Height
	if done := v.status.Accumulated; !done.IsZero() && done.Height < best {
		// The prerequisite may be left out only where the parent is accumulated on the anchor's own chain.
		raise(done)
		return nil, minAnchor, true
	}
	if anchor.PrerequisiteExpired(&q.cfg.Spec, v.status.Reported, best) {
		return nil, anchor.Point{}, false // nobody could report it: wait until the parent is accumulated
	}
	return []jamq.PackageHash{v.pkg}, minAnchor, true
}

// chooseAnchor picks the block at the table's offset behind the best one, or minAnchor if that is newer. The newest block
// never serves: its state root is not public before it has a child.
func (q *Queue[B]) chooseAnchor(minAnchor anchor.Point, ahead int) (anchor.Point, bool) {
	best := q.view.Best().Height
	offset := uint64(anchor.Offset(&q.cfg.Spec, ahead, len(q.cfg.Cores)))
	height := best - min(offset, best)
	if !minAnchor.IsZero() {
		height = max(height, minAnchor.Height)
	}
	if height >= best {
		return anchor.Point{}, false
	}
	return q.view.AtHeight(height)
}

// acquireCore gives a bundle a core that no other bundle holds (promise B4), if it has none yet. A core that the chain
// will have free for the next block is preferred, then the order of Config.Cores.
func (q *Queue[B]) acquireCore(it *item[B]) bool {
	if it.holdsCore {
		return true
	}
	taken := make(map[jamq.CoreIndex]bool, len(q.cfg.Cores))
	for _, other := range q.items[q.active:] {
		if other.holdsCore {
			taken[other.core] = true
		}
	}
	found := false
	for _, core := range q.cfg.Cores {
		if taken[core] {
			continue
		}
		free := q.view.CoreFree(core)
		if !found || free {
			it.core, found = core, true
		}
		if free {
			break
		}
	}
	it.holdsCore = found
	return found
}

// status reads what became of a version. Every version of a bundle in the queue is watched.
func (q *Queue[B]) status(v *version[B]) chainview.Status {
	s, err := q.view.Status(v.pkg)
	if err != nil {
		return v.status
	}
	return s
}
