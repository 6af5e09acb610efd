package bundlequeue

import (
	"fmt"
	"slices"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

// mayBuild reports whether the bundle is ready for a new package.
func (q *Queue) mayBuild(it *item) bool {
	t := it.troubles()
	// If the last package was already dead when it was built, the next build waits until the
	// best or the final block has changed, because the same block would give the same dead
	// package.
	return it.state != Reserved && !q.ended(it) && q.now >= it.notBefore &&
		(t.untilBest.IsZero() || t.untilBest != q.view.Best().Hash) &&
		(t.untilFinal.IsZero() || t.untilFinal != q.view.Finalized().Hash)
}

// build emits a request for a new package of a bundle. It does nothing if that is not safe
// or not possible now, for example because no core is free.
func (q *Queue) build(it *item) {
	if !q.mayBuild(it) {
		return
	}
	q.prune(it)
	if len(it.versions) >= q.cfg.maxVersions() {
		return // until finality settles some
	}
	admission := q.admissible(it)
	if !admission.ok {
		return
	}
	at, offset, ok := q.anchorAt(admission.minAnchor, q.offset(it))
	if !ok || !q.cores.acquire(it, q.view.CoreFree) {
		return
	}
	q.ticket++
	it.lastVersion++
	it.request = &request{
		ticket: q.ticket, version: it.lastVersion, minAnchor: admission.minAnchor,
		prerequisites: admission.prerequisites, best: q.view.Best(), final: q.view.Finalized().Hash,
	}
	q.builds[q.ticket] = it
	q.plan(it)
	q.update(it)
	q.emit(q.buildEffect(it, at, admission.minAnchor, offset))
}

func (q *Queue) buildEffect(it *item, at, minAnchor anchor.Point, offset int) Build {
	r := it.request
	return Build{
		Ticket: r.ticket, Number: it.number, Version: r.version, Bundle: it.bundle, Core: it.core,
		Offset: offset, Anchor: at, MinAnchor: minAnchor, Prerequisites: slices.Clone(r.prerequisites),
	}
}

// anchorAgain chooses the anchor when a build request is repeated, for example after a
// restart.
func (q *Queue) anchorAgain(it *item) (at, least anchor.Point, offset int) {
	// A reorganization may have removed the anchor of the original request, so choose again
	// from the present chain. The finished package is checked once more.
	least, _ = q.allDead(it)
	if r := it.request; !r.minAnchor.IsZero() {
		if _, onBest := q.view.Locate(r.minAnchor.Hash); onBest {
			least = later(least, r.minAnchor)
		}
	}
	at, offset, ok := q.anchorAt(least, q.offset(it))
	if !ok {
		// No block can be an anchor yet. The host waits for the next block, or answers
		// with BuildFailed.
		return later(least, q.view.Best()), least, 1
	}
	return at, least, offset
}

// offset returns how many blocks behind the newest block a package's anchor should be.
func (q *Queue) offset(it *item) int {
	ahead, inUse := 0, q.cores.inUse()
	for i := range q.cores.list {
		if other := q.cores.list[i].holder; other != nil && other.place < it.place {
			ahead++
		}
	}
	// Each block that passes during the build delays the report by one block, just as inUse
	// more bundles before this one would.
	ahead += q.buildBlocks() * inUse
	// The anchor is a compromise. With an old anchor the package may expire before it is
	// reported; with a new one it may be lost in a reorganization.
	return anchor.Best(&q.cfg.Spec, q.delays.Estimate(), ahead, inUse)
}

// buildMemory is the number of builds that buildBlocks considers.
const buildMemory = 8

// buildBlocks returns how many JAM blocks a build is expected to take. It is the maximum
// of the last builds.
func (q *Queue) buildBlocks() int {
	blocks := 0
	for _, b := range q.buildTimes {
		blocks = max(blocks, b)
	}
	return blocks
}

// noteReorgs marks the open build requests whose minAnchor has left the best chain.
func (q *Queue) noteReorgs() {
	// The loop may run in any order: each request is changed by itself.
	for _, it := range q.builds {
		if r := it.request; !r.reorged && !r.minAnchor.IsZero() {
			_, onBest := q.view.Locate(r.minAnchor.Hash)
			// The required anchor has left the best chain, so the host cannot use it. An older
			// anchor is then not refused as a mistake of the host.
			r.reorged = !onBest
		}
	}
}

// learnBuild records how many blocks a build took, for the anchors of later packages.
func (q *Queue) learnBuild(r *request, failed bool) {
	best := q.view.Best().Height
	took := int(min(best-min(best, r.best.Height), uint64(q.cfg.Spec.RecentHistory)))
	// A failed build teaches nothing, unless it took longer than the builds before: it may
	// have failed exactly because its anchor was too old at the end.
	if failed && took <= q.buildBlocks() {
		return
	}
	if len(q.buildTimes) == buildMemory {
		q.buildTimes = slices.Delete(q.buildTimes, 0, 1)
	}
	q.buildTimes = append(q.buildTimes, took)
}

// built processes the package in the host's answer to a build request.
func (q *Queue) built(now instant, ev Built) error {
	it := q.builds[ev.Ticket]
	if it == nil {
		return fmt.Errorf("%w: no build has ticket %d", ErrNotExpected, ev.Ticket)
	}
	r := it.request
	at, onBest := q.view.Locate(ev.Context.Anchor)
	// The host has made a mistake in this package. The request remains open, so that the host
	// can answer it again.
	if err := q.checkBuilt(it, at, onBest, &ev); err != nil {
		return err
	}
	fits := onBest && q.fits(it, at, r)
	var trace *chainview.Trace
	if fits {
		var err error
		if trace, err = q.watch(ev.Package, &ev.Context); err != nil {
			return fmt.Errorf("bundle %d: %w", it.number, err)
		}
	}
	q.learnBuild(r, false)
	q.touch(it)
	q.closeRequest(it)
	// The chain may have moved on during the build, so that the package can no longer
	// be accumulated. That is no mistake: discard it, and build another one.
	switch {
	case !onBest:
		q.discard(it, r, ev.Package, anchor.OtherFork, q.view.Best())
		return nil
	case !fits:
		q.discard(it, r, ev.Package, anchor.Overtaken, q.view.Best())
		return nil
	}
	if s := trace.Status(); s.Dead != anchor.Alive {
		q.view.Forget(ev.Package)
		q.discard(it, r, ev.Package, s.Dead, s.DeadSince)
		return nil
	}
	v := &version{item: it, number: r.version, pkg: ev.Package, bundle: ev.Bundle, trace: trace, nextSend: now}
	it.versions = append(it.versions, v)
	q.versions[v.pkg] = v
	q.total.Built++
	return nil
}

// checkBuilt returns an error if the package has a fault that the host could have
// avoided.
func (q *Queue) checkBuilt(it *item, at anchor.Point, onBest bool, ev *Built) error {
	r := it.request
	for _, need := range r.prerequisites {
		if !slices.Contains(ev.Context.Prerequisites, need) {
			return fmt.Errorf("%w: bundle %d names prerequisites %v, want %s among them", ErrInadmissible, it.number, ev.Context.Prerequisites, need)
		}
	}
	if have, most := len(ev.Context.Prerequisites), q.cfg.Spec.MaxDependencies; have > max(most, len(r.prerequisites)) {
		return fmt.Errorf("%w: bundle %d names %d prerequisites, want at most %d", ErrInadmissible, it.number, have, most)
	}
	if ev.Package.IsZero() || slices.Contains(ev.Context.Prerequisites, ev.Package) {
		return fmt.Errorf("%w: bundle %d: package hash %s, want one that is neither zero nor a prerequisite", ErrInadmissible, it.number, ev.Package)
	}
	if q.versions[ev.Package] != nil {
		return fmt.Errorf("%w: bundle %d: package %s was built before; its anchor or content must differ", ErrInadmissible, it.number, ev.Package)
	}
	// An unknown anchor can have two causes. The view forgets blocks only when finality moves,
	// and finality has not moved since the request, so the host has named a wrong block.
	if !onBest && r.final == q.view.Finalized().Hash && !q.view.Knows(ev.Context.Anchor) {
		return fmt.Errorf("%w: %w: bundle %d is anchored at %s, want a block that was imported; the best is %s of slot %d",
			ErrInadmissible, ErrUnknownAnchor, it.number, ev.Context.Anchor, q.view.Best().Hash, q.view.Best().Slot)
	}
	if r.minAnchor.IsZero() || !onBest || r.reorged || at.Height >= r.minAnchor.Height {
		return nil // see fits
	}
	return fmt.Errorf("%w: bundle %d is anchored at height %d, want at least %d, at which its earlier versions are dead", ErrInadmissible, it.number, at.Height, r.minAnchor.Height)
}

// discard drops a package that was already dead when it was built.
func (q *Queue) discard(it *item, r *request, pkg jamq.PackageHash, reason anchor.Reason, at anchor.Point) {
	q.noteUseless(it, reason)
	// Another build makes sense only when its package can be different. Lookup anchors are
	// final blocks, so if the lookup anchor was too old (rule D3), the next build waits for a
	// new final block. In all other cases it waits for a new best block.
	if reason == anchor.LookupExpired {
		it.inTrouble().untilFinal = r.final
	} else {
		it.inTrouble().untilBest = r.best.Hash
	}
	q.emit(Died{Number: it.number, Version: r.version, Package: pkg, Reason: reason, At: at, Unsent: true})
}

// noteUseless counts a package that was dead before it could be sent. Operators see the
// count and the last reason in Delay.
func (q *Queue) noteUseless(it *item, reason anchor.Reason) {
	t := it.inTrouble()
	t.useless++
	t.reason = reason
	q.total.Useless++
}

// buildFailed processes a BuildFailed event.
func (q *Queue) buildFailed(now instant, ev BuildFailed) error {
	it := q.builds[ev.Ticket]
	if it == nil {
		return fmt.Errorf("%w: no build has ticket %d", ErrNotExpected, ev.Ticket)
	}
	q.learnBuild(it.request, true)
	q.touch(it)
	q.closeRequest(it)
	t := it.inTrouble()
	t.failed++
	// The wait doubles with each consecutive failure.
	it.notBefore = now + q.cfg.backoff(t.failed, it.number)
	q.total.BuildsFailed++
	return nil
}

// closeRequest ends the open build request, if there is one.
func (q *Queue) closeRequest(it *item) {
	if it.request != nil {
		delete(q.builds, it.request.ticket)
		it.request = nil
	}
}

// prune forgets packages that no chain can accumulate, except losses.
func (q *Queue) prune(it *item) {
	it.versions = slices.DeleteFunc(it.versions, func(v *version) bool {
		if v.lost || !q.finallyDead(v) {
			return false
		}
		// The queue forgets this dead package, but must remember at which block it died: a new
		// package that is anchored earlier could be accumulated in addition to it.
		if since := v.trace.Status().DeadSince; it.deadSince == nil || since.Height > it.deadSince.Height {
			it.deadSince = &since
		}
		q.forget(v)
		return true
	})
}
