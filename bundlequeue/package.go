package bundlequeue

import (
	"fmt"
	"slices"

	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

// built accepts a package, or refuses what must not be sent. One that was overtaken by a reorg while it was being built
// is dropped without an error: the host did nothing wrong.
func (q *Queue[B]) built(now instant, ev Built[B]) error {
	it := q.builds[ev.Ticket]
	if it == nil {
		return fmt.Errorf("%w: no build has ticket %d", ErrNotExpected, ev.Ticket)
	}
	r := it.request
	if !slices.Equal(ev.Context.Prerequisites, r.prerequisites) {
		return fmt.Errorf("%w: bundle %d names %d prerequisites, want exactly the %d asked for", ErrInadmissible, it.number, len(ev.Context.Prerequisites), len(r.prerequisites))
	}
	if ev.Package.IsZero() {
		return fmt.Errorf("%w: bundle %d: the package hash is zero", ErrInadmissible, it.number)
	}
	if other := q.versions[ev.Package]; other != nil && (q.keeps(ruleNewHash) || other.item != it) {
		return fmt.Errorf("%w: bundle %d: package %s was built before; its anchor or content must differ", ErrInadmissible, it.number, ev.Package)
	}
	v := &version[B]{item: it, number: r.version, pkg: ev.Package, bundle: ev.Bundle, nextSend: now}
	took, err := q.take(v, ev, r)
	if err != nil {
		return err
	}
	q.touch(it)
	q.closeRequest(it)
	switch took {
	case overtaken:
		it.notBefore = now + instant(q.cfg.BackoffBase)
	case stillborn:
		q.countFailure(now, it)
	default:
		it.buildFailures = 0
		it.versions = append(it.versions, v)
		q.versions[v.pkg] = v
		q.total.Built++
	}
	return nil
}

// taking is what became of a package that was built.
type taking uint8

const (
	taken     taking = iota
	overtaken        // by a reorg, through no fault of the host
	stillborn        // dead before it could leave, or anchored to a block that nobody knows: a failed build
)

// take puts a package under watch, unless it must not or need not be sent.
func (q *Queue[B]) take(v *version[B], ev Built[B], r *request) (taking, error) {
	if q.view == nil {
		v.told = &told[B]{prerequisites: slices.Clone(ev.Context.Prerequisites)}
		v.told.deadline.Value = v
		return taken, nil
	}
	at, onChain := q.view.Locate(ev.Context.Anchor)
	switch {
	case !onChain && q.view.Holds(ev.Context.Anchor):
		return overtaken, nil
	case !onChain:
		return stillborn, nil
	case at.Height < r.minAnchor.Height && q.view.OnBest(r.minAnchor) && q.keeps(ruleCheckBuilt):
		return 0, fmt.Errorf("%w: bundle %d is anchored at height %d, want at least %d, where its earlier versions are dead", ErrInadmissible, v.item.number, at.Height, r.minAnchor.Height)
	case !q.fits(v.item, at, r) && q.keeps(ruleCheckBuilt):
		return overtaken, nil
	}
	v.trace, _ = q.view.Watch(v.pkg, chainview.Package{ // the anchor was located above
		Anchor:           ev.Context.Anchor,
		LookupAnchorSlot: ev.Context.LookupAnchorSlot,
		Prerequisites:    ev.Context.Prerequisites,
	})
	if s, _ := q.view.Status(v.pkg); s.Dead != anchor.Alive {
		q.view.Forget(v.pkg)
		return stillborn, nil
	}
	return taken, nil
}

// fits reports whether a package anchored at a block of the best chain still serves: all earlier versions are dead there, as the chain
// is by now, and it follows its predecessor's live version.
func (q *Queue[B]) fits(it *item[B], at anchor.Point, r *request) bool {
	if evidence, ok := q.evidence(it); !ok || at.Height < evidence.Height {
		return false
	}
	p := q.predecessor(it)
	if p == nil {
		return true
	}
	v := p.live()
	if v == nil {
		return !q.keeps(rulePredecessorLive)
	}
	if len(r.prerequisites) > 0 {
		return r.prerequisites[0] == v.pkg
	}
	done := v.status().Accumulated
	return !done.IsZero() && done.Height <= at.Height || !q.keeps(ruleLeaveOutWhereDone) || !q.keeps(ruleNamePredecessor) || !q.keeps(rulePredecessorLive)
}

// closeRequest ends an open build request, if there is one.
func (q *Queue[B]) closeRequest(it *item[B]) {
	if it.request != nil {
		delete(q.builds, it.request.ticket)
		it.request = nil
	}
}

func (q *Queue[B]) buildFailed(now instant, ev BuildFailed) error {
	it := q.builds[ev.Ticket]
	if it == nil {
		return fmt.Errorf("%w: no build has ticket %d", ErrNotExpected, ev.Ticket)
	}
	q.touch(it)
	q.closeRequest(it)
	q.countFailure(now, it)
	return nil
}

// countFailure puts the next build off, longer after each failure in a row.
func (q *Queue[B]) countFailure(now instant, it *item[B]) {
	it.buildFailures++
	it.notBefore = now + q.cfg.backoff(it.buildFailures, it.number)
	q.total.BuildsFailed++
}

func (q *Queue[B]) sent(now instant, ev Sent) error {
	v := q.sends[ev.Ticket]
	if v == nil {
		return fmt.Errorf("%w: no send has ticket %d", ErrNotExpected, ev.Ticket)
	}
	delete(q.sends, ev.Ticket)
	q.touch(v.item)
	v.ticket = 0
	v.lastSend = now
	q.startGuaranteeTimer(v)
	if ev.OK {
		v.accepted, v.failures = true, 0
		v.nextSend = now + instant(q.cfg.SubmitRetryInterval)
		return nil
	}
	v.failures++
	v.nextSend = now + q.cfg.backoff(v.failures, v.item.number)
	q.total.SendsFailed++
	return nil
}

// retry makes the next send of the same bytes due at once.
func (q *Queue[B]) retry(now instant, ev Retry) error {
	it := q.find(ev.Number)
	if it == nil || it.state == Reserved || it.state >= Guaranteed {
		return fmt.Errorf("%w: no bundle %d that waits for a guarantee", ErrWrongNumber, ev.Number)
	}
	if v := it.live(); v != nil {
		v.nextSend = min(v.nextSend, now)
		q.plan(it)
	}
	return nil
}
