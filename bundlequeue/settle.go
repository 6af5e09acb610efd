package bundlequeue

import (
	"fmt"
	"slices"
	"time"

	"github.com/jamq/jamq/anchor"
)

// settle derives the state of every bundle that is not final from the best chain.
func (q *Queue[B]) settle(now time.Time, out *[]Effect) {
	for _, it := range q.items[q.active:] {
		q.observe(now, it, out)
		w := it.winner()
		if it.request != nil && it.live() != nil {
			it.request = nil // a reorg brought an earlier version back to life: no other may be built
		}
		if w != nil || (it.live() == nil && it.request == nil) {
			it.holdsCore = false
		}
		q.update(it, out)
	}
}

// observe reads the status of each version of a bundle. A version that died before it ever left is forgotten; the next one waits a
// little, because what killed it, an old lookup anchor for example, may kill that one at once.
func (q *Queue[B]) observe(now time.Time, it *item[B], out *[]Effect) {
	for _, v := range it.versions {
		wasDead := v.dead()
		v.status = q.status(v)
		if v.dead() && !wasDead {
			q.total.Died++
			*out = append(*out, Died{Number: it.number, Version: v.number, Package: v.pkg, Reason: v.status.Dead, At: v.status.DeadSince})
		}
	}
	it.versions = slices.DeleteFunc(it.versions, func(v *version[B]) bool {
		unborn := v.dead() && !v.sent
		if unborn {
			q.view.Forget(v.pkg)
			it.notBefore = now.Add(q.cfg.BackoffBase)
		}
		return unborn
	})
}

// update tells the host if the state of a bundle is another one than before.
func (q *Queue[B]) update(it *item[B], out *[]Effect) {
	to, v, at := it.derive()
	if to == Accumulated && at.Height <= q.view.Finalized().Height && q.parentFinal(it) {
		to = Finalized
	}
	if to == it.state {
		return
	}
	c := Changed{Number: it.number, From: it.state, To: to, Core: it.core, At: at}
	if v != nil {
		c.Version, c.Package = v.number, v.pkg
	}
	it.state = to
	q.total.Transitions[to]++
	*out = append(*out, c)
}

// parentFinal reports whether the bundle before one is final: bundles become final in their order, even on a chain that accumulates them
// in another.
func (q *Queue[B]) parentFinal(it *item[B]) bool {
	p := q.parent(int(it.number - q.base))
	return p == nil || p.state == Finalized
}

// fail gives up the first bundle that has used its tries, and all after it, once no chain can carry any of them.
func (q *Queue[B]) fail(out *[]Effect) {
	first := slices.IndexFunc(q.items, q.exhausted)
	if first < 0 {
		return
	}
	lost := q.items[first:]
	for _, it := range lost {
		for _, v := range it.versions {
			s, err := q.view.FinalStatus(v.pkg)
			if err != nil || s.Dead == anchor.Alive {
				return
			}
		}
	}
	reason := fmt.Sprintf("block %d: %d versions dead, %d builds failed in a row", lost[0].number, len(lost[0].versions), lost[0].buildFailures)
	for _, it := range lost {
		for _, v := range it.versions {
			s, _ := q.view.FinalStatus(v.pkg)
			if s.DeadSince.Height >= q.floor.Height {
				q.floor = s.DeadSince
			}
			q.view.Forget(v.pkg)
		}
		q.total.Transitions[FailedState]++
		*out = append(*out,
			Changed{Number: it.number, From: it.state, To: FailedState, Core: it.core},
			Failed[B]{Number: it.number, Bundle: it.bundle, Reason: reason})
	}
	clear(lost)
	q.items = q.items[:first]
}

// exhausted reports whether a bundle has no version left that could make it and may not have another.
func (q *Queue[B]) exhausted(it *item[B]) bool {
	if it.state == Finalized || it.request != nil || it.live() != nil {
		return false
	}
	return len(it.versions) > q.cfg.MaxVersionRetries || it.buildFailures > q.cfg.MaxVersionRetries
}

// retire forgets finalized bundles beyond the retention window.
func (q *Queue[B]) retire() {
	for q.active < len(q.items) && q.items[q.active].state == Finalized {
		q.active++
	}
	for q.active > q.cfg.RetentionWindow {
		for _, v := range q.items[0].versions {
			q.view.Forget(v.pkg)
		}
		q.items[0] = nil
		q.items = q.items[1:]
		q.base++
		q.active--
	}
}
