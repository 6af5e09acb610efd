package told

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/minheap"
)

// Block is the point that bundlequeue.Queue returns for events that the host
// reported, because their blocks are unknown.
var Block = anchor.Point{Hash: jamq.HeaderHash{'t', 'o', 'l', 'd'}}

// Evidence holds the host's reports about a queue's packages, and gives up
// packages by the clock. It implements bundlequeue.Evidence and belongs to one
// queue.
type Evidence struct {
	cfg     Config
	now     time.Time // time of the last Advance
	fates   map[jamq.PackageHash]*fate
	bundles map[uint64][]*fate // packages by bundle
	timers  minheap.Heap[int64, *fate]
	changed []*fate
	// buried are packages of failed bundles, oldest first. They may still be
	// accumulated.
	buried []jamq.PackageHash
	stats  Stats
}

// Stats counts reports that came too late or twice.
type Stats struct {
	// DuplicateGuarantees counts guarantees of a package when it, or another
	// package of its bundle, was guaranteed already.
	DuplicateGuarantees uint64
	// DuplicateAccumulations counts the same for accumulation.
	DuplicateAccumulations uint64
	// AccumulatedAfterFailed counts packages that were accumulated after their
	// bundle had been handed back.
	AccumulatedAfterFailed uint64
}

// fate holds the host's reports about one package. It implements
// bundlequeue.Fate.
type fate struct {
	owner         *Evidence
	pkg           jamq.PackageHash
	bundle        uint64
	prerequisites []jamq.PackageHash
	status        chainview.Status
	final         bool
	// orphaned is true if the package names one that was given up and then
	// forgotten.
	orphaned bool
	timeouts int // expired AccumulateTimeouts
	sent     bool
	lastSend time.Time
	timer    minheap.Entry[int64, *fate]
	changed  bool
}

// NewEvidence returns evidence for a new queue: see bundlequeue.NewWith. The
// error wraps [ErrInvalidConfig].
func NewEvidence(spec jamq.ChainSpec, cfg Config) (*Evidence, error) {
	if err := cfg.Validate(&spec); err != nil {
		return nil, err
	}
	return &Evidence{cfg: cfg, fates: make(map[jamq.PackageHash]*fate), bundles: make(map[uint64][]*fate)}, nil
}

// Stats returns the counts since the evidence was created. A snapshot keeps
// them.
func (e *Evidence) Stats() Stats { return e.stats }

// Observe implements bundlequeue.Evidence. It accepts bundlequeue.Told only.
// Reports about unknown packages have no effect, unless the package belongs to
// a failed bundle.
func (e *Evidence) Observe(now time.Time, ev bundlequeue.Event) ([]bundlequeue.Effect, error) {
	told, ok := ev.(bundlequeue.Told)
	if !ok {
		return nil, fmt.Errorf("%w: %T, want Told", bundlequeue.ErrWrongEvidence, ev)
	}
	if !slices.Contains([]bundlequeue.State{bundlequeue.Guaranteed, bundlequeue.Accumulated, bundlequeue.Finalized, bundlequeue.Queued}, told.State) {
		return nil, fmt.Errorf("%w: state %v, want guaranteed, accumulated, finalized or queued", bundlequeue.ErrUnknownEvent, told.State)
	}
	f := e.fates[told.Package]
	if f == nil {
		return e.tellOfBuried(told), nil // unknown or retired
	}
	switch told.State {
	case bundlequeue.Guaranteed:
		e.guaranteed(now, f)
	case bundlequeue.Accumulated, bundlequeue.Finalized:
		e.accumulated(f, told.State == bundlequeue.Finalized)
	default:
		if f.status.Accumulated.IsZero() {
			e.giveUp(f)
		}
	}
	return nil, nil
}

// guaranteed records that a package was guaranteed. The first guaranteed
// package of a bundle wins. If the package was given up before, it wins
// nevertheless, unless another one was faster: the chain is right and the clock
// was wrong.
func (e *Evidence) guaranteed(now time.Time, f *fate) {
	if w := e.winner(f.bundle); w != nil && (w != f || !f.status.Reported.IsZero()) {
		e.stats.DuplicateGuarantees++
		return
	}
	f.status.Reported, f.status.Dead = Block, anchor.Alive
	e.timers.Set(&f.timer, now.Add(e.cfg.AccumulateTimeout).UnixNano())
	e.noteChange(f)
	e.spread(f)
}

func (e *Evidence) accumulated(f *fate, final bool) {
	w := e.winner(f.bundle)
	if w != nil && w != f && !w.status.Accumulated.IsZero() || w == f && !f.status.Accumulated.IsZero() && (f.final || !final) {
		e.stats.DuplicateAccumulations++
		return
	}
	f.status.Reported, f.status.Accumulated, f.status.Dead = Block, Block, anchor.Alive
	f.final = f.final || final
	e.timers.Remove(&f.timer)
	e.noteChange(f)
	e.spread(f)
}

// winner returns the package of a bundle that was accumulated. If there is
// none, it returns one that is guaranteed and not given up, or nil.
func (e *Evidence) winner(bundle uint64) *fate {
	var reported *fate
	for _, f := range e.bundles[bundle] {
		if !f.status.Accumulated.IsZero() {
			return f
		}
		if reported == nil && !f.status.Reported.IsZero() && f.status.Dead == anchor.Alive {
			reported = f
		}
	}
	return reported
}

// giveUp marks a package as dead, and with it all packages that name it.
func (e *Evidence) giveUp(f *fate) {
	f.status.Dead = anchor.ClockExpired
	e.hold(f)
	e.noteChange(f)
	e.spread(f)
}

// hold sets the timer of a package that was given up to the end of
// Config.FailureHold.
func (e *Evidence) hold(f *fate) {
	e.timers.Remove(&f.timer)
	if f.sent {
		e.timers.Set(&f.timer, f.lastSend.Add(e.cfg.FailureHold).UnixNano())
	}
}

// spread updates the packages that name packages of f's bundle. A package that
// names another package than the winner can never be accumulated; it is live
// again if that changes. Bundles name the one before them, so one pass in their
// order is sufficient.
func (e *Evidence) spread(f *fate) {
	for bundle := f.bundle + 1; len(e.bundles[bundle]) > 0; bundle++ {
		changed := false
		for _, d := range e.bundles[bundle] {
			if !d.status.Accumulated.IsZero() {
				continue
			}
			lost := d.orphaned || slices.ContainsFunc(d.prerequisites, e.lost)
			switch {
			case lost && d.status.Dead == anchor.Alive:
				d.status.Dead = anchor.PrerequisiteGone
				e.hold(d)
			case !lost && d.status.Dead == anchor.PrerequisiteGone:
				d.status.Dead = anchor.Alive
				e.startTimer(d)
			default:
				continue
			}
			changed = true
			e.noteChange(d)
		}
		if !changed {
			return
		}
	}
}

// lost reports whether a package of the queue is given up, or another package
// of its bundle has won.
func (e *Evidence) lost(pkg jamq.PackageHash) bool {
	f := e.fates[pkg]
	if f == nil {
		return false
	}
	w := e.winner(f.bundle)
	return f.status.Dead != anchor.Alive || w != nil && w != f
}

// tellOfBuried returns a Resurrected effect if a package of a failed bundle is
// accumulated. This is the worst outcome of a guess by the clock.
func (e *Evidence) tellOfBuried(told bundlequeue.Told) []bundlequeue.Effect {
	i := slices.Index(e.buried, told.Package)
	if i < 0 || told.State != bundlequeue.Accumulated && told.State != bundlequeue.Finalized {
		return nil
	}
	e.buried = slices.Delete(e.buried, i, i+1)
	e.stats.AccumulatedAfterFailed++
	return []bundlequeue.Effect{bundlequeue.Resurrected{Package: told.Package}}
}

// Advance implements bundlequeue.Evidence. It gives up the packages whose
// timers have expired.
func (e *Evidence) Advance(now time.Time) {
	if now.Before(e.now) {
		e.clockWentBack(now)
	}
	e.now = now
	var due []*fate
	for t := e.timers.Min(); t != nil && t.Key() <= now.UnixNano(); t = e.timers.Min() {
		e.timers.Remove(t)
		due = append(due, t.Value)
	}
	slices.SortFunc(due, func(a, b *fate) int {
		return cmp.Or(cmp.Compare(a.bundle, b.bundle), a.pkg.Compare(b.pkg))
	})
	for _, f := range due {
		if !f.timer.Queued() { // set by an earlier expiry
			e.expire(f)
		}
	}
}

// NextWake implements bundlequeue.Evidence.
func (e *Evidence) NextWake() time.Time {
	if t := e.timers.Min(); t != nil {
		return time.Unix(0, t.Key()).UTC()
	}
	return time.Time{}
}

// expire processes the expired timer of a package.
func (e *Evidence) expire(f *fate) {
	if f.status.Dead != anchor.Alive {
		// After a restart Config.FailureHold may be longer.
		if f.Settled() == bundlequeue.Unsettled {
			e.hold(f)
		}
		e.noteChange(f)
		return
	}
	if !f.status.Reported.IsZero() {
		f.timeouts++
		if f.timeouts < e.cfg.AccumulateTries {
			e.timers.Set(&f.timer, e.now.Add(e.cfg.AccumulateTimeout).UnixNano())
			return
		}
	}
	e.giveUp(f)
}

// clockWentBack limits every timer to the longest wait that can begin now.
func (e *Evidence) clockWentBack(now time.Time) {
	longest := now.Add(max(e.cfg.GuaranteeTimeout, e.cfg.AccumulateTimeout, e.cfg.FailureHold)).UnixNano()
	// The loop may run in any order: Advance sorts the fates that are due.
	for _, f := range e.fates {
		if f.lastSend.After(now) {
			f.lastSend = now
		}
		if f.timer.Queued() && f.timer.Key() > longest {
			e.timers.Set(&f.timer, longest)
		}
	}
}

// startTimer starts the wait for a guarantee. Every send restarts it.
func (e *Evidence) startTimer(f *fate) {
	if f.sent && f.status.Reported.IsZero() && f.status.Dead == anchor.Alive {
		e.timers.Set(&f.timer, f.lastSend.Add(e.cfg.GuaranteeTimeout).UnixNano())
	}
}

// Watch implements bundlequeue.Evidence.
func (e *Evidence) Watch(p bundlequeue.Watched) (bundlequeue.Fate, error) {
	if f := e.fates[p.Package]; f != nil {
		return f, nil
	}
	f := &fate{owner: e, pkg: p.Package, bundle: p.Bundle, prerequisites: slices.Clone(p.Context.Prerequisites)}
	e.enter(f)
	return f, nil
}

// enter adds a package to the indices.
func (e *Evidence) enter(f *fate) {
	f.timer.Value = f
	e.fates[f.pkg] = f
	e.bundles[f.bundle] = append(e.bundles[f.bundle], f)
}

// Fate implements bundlequeue.Evidence.
func (e *Evidence) Fate(pkg jamq.PackageHash) (bundlequeue.Fate, bool) {
	f, ok := e.fates[pkg]
	return f, ok
}

// Forget implements bundlequeue.Evidence. Packages of a bundle that was never
// accumulated are remembered as buried.
func (e *Evidence) Forget(pkg jamq.PackageHash) {
	f, ok := e.fates[pkg]
	if !ok {
		return
	}
	if e.lost(pkg) {
		e.orphan(f)
	}
	done := slices.ContainsFunc(e.bundles[f.bundle], func(f *fate) bool { return !f.status.Accumulated.IsZero() })
	delete(e.fates, pkg)
	e.bundles[f.bundle] = slices.DeleteFunc(e.bundles[f.bundle], func(other *fate) bool { return other == f })
	if len(e.bundles[f.bundle]) == 0 {
		delete(e.bundles, f.bundle)
	}
	e.timers.Remove(&f.timer)
	e.changed = slices.DeleteFunc(e.changed, func(other *fate) bool { return other == f })
	if !f.sent || done || e.cfg.Remember == 0 {
		return
	}
	e.buried = append(e.buried, pkg)
	if over := len(e.buried) - e.cfg.Remember; over > 0 {
		e.buried = slices.Delete(e.buried, 0, over)
	}
}

// orphan marks the packages that name a package.
func (e *Evidence) orphan(f *fate) {
	for bundle := f.bundle + 1; len(e.bundles[bundle]) > 0; bundle++ {
		for _, d := range e.bundles[bundle] {
			d.orphaned = d.orphaned || slices.Contains(d.prerequisites, f.pkg)
		}
	}
}

func (e *Evidence) noteChange(f *fate) {
	if !f.changed {
		f.changed = true
		e.changed = append(e.changed, f)
	}
}

// Changes implements bundlequeue.Evidence.
func (e *Evidence) Changes(f func(jamq.PackageHash)) {
	for _, c := range e.changed {
		c.changed = false
		f(c.pkg)
	}
	e.changed = e.changed[:0]
}

// Status implements bundlequeue.Fate.
func (f *fate) Status() chainview.Status { return f.status }

// Standing implements bundlequeue.Fate.
func (f *fate) Standing() bundlequeue.Standing {
	return bundlequeue.Standing{Reported: !f.status.Reported.IsZero(), Accumulated: !f.status.Accumulated.IsZero(), Dead: f.status.Dead}
}

// Settled implements bundlequeue.Fate. SettledDead is a guess by the clock.
func (f *fate) Settled() bundlequeue.Settlement {
	switch {
	case f.final:
		return bundlequeue.SettledAccumulated
	case f.status.Dead != anchor.Alive && !f.owner.now.Before(f.lastSend.Add(f.owner.cfg.FailureHold)):
		return bundlequeue.SettledDead
	}
	return bundlequeue.Unsettled
}

// Prerequisites implements bundlequeue.Fate.
func (f *fate) Prerequisites() []jamq.PackageHash { return f.prerequisites }

// Anchor implements bundlequeue.Fate. It returns zeros, because the anchor is
// unknown.
func (f *fate) Anchor() (anchor.Point, jamq.Slot) { return anchor.Point{}, 0 }

// Sent implements bundlequeue.Fate.
func (f *fate) Sent(now time.Time) {
	f.sent, f.lastSend = true, now
	if f.status.Dead != anchor.Alive {
		f.owner.hold(f)
	} else {
		f.owner.startTimer(f)
	}
}
