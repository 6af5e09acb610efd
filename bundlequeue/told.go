package bundlequeue

import (
	"fmt"
	"slices"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// ToldBlock stands for the block of an event that a host without blocks told: it is not known.
var ToldBlock = anchor.Point{Hash: jamq.HeaderHash{'t', 'o', 'l', 'd'}}

// tell takes what a host without blocks says about a package.
func (q *Queue[B]) tell(now instant, ev Told) error {
	if q.view != nil {
		return fmt.Errorf("%w: told of package %s, but Config.Evidence is chain", ErrWrongEvidence, ev.Package)
	}
	v := q.versions[ev.Package]
	if v == nil {
		q.tellOfBuried(ev)
		return nil // another rollup's, or long final
	}
	switch ev.State {
	case Guaranteed:
		q.toldGuaranteed(now, v)
	case Accumulated, Finalized:
		q.toldAccumulated(v, ev.State == Finalized)
	case Queued:
		if s := &v.told.status; s.Accumulated.IsZero() {
			q.giveUp(v)
		}
	default:
		return fmt.Errorf("%w: told %v, want guaranteed, accumulated, finalized or queued", ErrUnknownEvent, ev.State)
	}
	q.touch(v.item)
	return nil
}

// toldGuaranteed lets the first guaranteed version win. A late one, of a package that was given up, wins as well, unless
// another was faster: the chain is right and the clock was wrong.
func (q *Queue[B]) toldGuaranteed(now instant, v *version[B]) {
	s := &v.told.status
	w := v.item.winner()
	if w != nil && (w != v || !s.Reported.IsZero()) {
		q.total.DuplicateGuaranteeRejected++
		return
	}
	s.Reported = ToldBlock
	s.Dead, v.told.spread = anchor.Alive, false
	q.timers.Set(&v.told.deadline, now+instant(q.cfg.AccumulateTimeout))
	q.spread(v.item)
}

func (q *Queue[B]) toldAccumulated(v *version[B], final bool) {
	s := &v.told.status
	w := v.item.winner()
	if w != nil && w != v && w.accumulated() || w == v && v.accumulated() && (v.told.final || !final) {
		q.total.DuplicateAccumulateRejected++
		return
	}
	if s.Reported.IsZero() {
		s.Reported = ToldBlock
	}
	s.Accumulated = ToldBlock
	s.Dead, v.told.spread = anchor.Alive, false
	v.told.final = v.told.final || final
	q.timers.Remove(&v.told.deadline)
	q.spread(v.item)
}

// startGuaranteeTimer begins the wait for a guarantee anew with each send: every send is another chance.
func (q *Queue[B]) startGuaranteeTimer(v *version[B]) {
	if v.told != nil && v.told.status.Reported.IsZero() && !v.dead() {
		q.timers.Set(&v.told.deadline, v.lastSend+instant(q.cfg.GuaranteeTimeout))
	}
}

// giveUpByClock gives up what is over its time.
func (q *Queue[B]) giveUpByClock() {
	for e := q.timers.Min(); e != nil && e.Key() <= q.now; e = q.timers.Min() {
		q.timers.Remove(e)
		v := e.Value
		if !v.told.status.Reported.IsZero() {
			v.told.timeouts++
			if v.told.timeouts < q.cfg.AccumulateTries {
				q.timers.Set(e, q.now+instant(q.cfg.AccumulateTimeout))
				continue
			}
		}
		q.giveUp(v)
		q.touch(v.item)
	}
}

// giveUp takes a version for dead, and with it all that need it.
func (q *Queue[B]) giveUp(v *version[B]) {
	v.told.status.Dead, v.told.spread = anchor.ClockExpired, false
	q.timers.Remove(&v.told.deadline)
	q.spread(v.item)
}

// spread carries death, and coming back to life, from the versions of a bundle to those of the bundles after it that name
// them as prerequisite.
func (q *Queue[B]) spread(it *item[B]) {
	for changed := true; changed; {
		changed = false
		it = q.at(it.place + 1)
		if it == nil {
			return
		}
		for _, v := range it.versions {
			t := v.told
			if len(t.prerequisites) == 0 || v.accumulated() {
				continue
			}
			p := q.versions[t.prerequisites[0]]
			lost := p != nil && (p.dead() || p.item.winner() != nil && p.item.winner() != p)
			switch {
			case lost && t.status.Dead == anchor.Alive:
				t.status.Dead, t.spread = anchor.ClockExpired, true
			case !lost && t.spread:
				t.status.Dead, t.spread = anchor.Alive, false
			default:
				continue
			}
			changed = true
			q.touch(it)
		}
	}
}

// tellOfBuried counts the worst that the clock can do: a bundle was handed back, and then its package was accumulated after all.
func (q *Queue[B]) tellOfBuried(ev Told) {
	if i := slices.Index(q.buried, ev.Package); i >= 0 && (ev.State == Accumulated || ev.State == Finalized) {
		q.buried = slices.Delete(q.buried, i, i+1)
		q.total.AccumulatedAfterFailed++
		q.emit(Resurrected{Package: ev.Package})
	}
}
