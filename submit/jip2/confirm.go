package jip2

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit"
)

// facts are the parts of an answer about a package that decide its fate. They are
// comparable, so that two answers can be compared with ==.
type facts struct {
	reportable, ready, failed, taken bool
	report                           Reported
	readyIn                          BlockDescriptor
}

func (a *answer) facts() facts {
	out := facts{reportable: a.status.Reportable != nil, failed: a.status.Failed != nil, taken: a.taken}
	if r := a.status.report(); r != nil {
		out.report = *r
	}
	if r := a.status.Ready; r != nil {
		out.ready, out.readyIn = true, r.ReadyIn
	}
	return out
}

// doubtful names an answer that the node must repeat before it counts: it would change the
// fate of a package, and the node has given it only once. A single wrong answer could
// otherwise make a live package look dead.
type doubtful struct {
	step *step
	pkg  jamq.PackageHash
}

// confirm asks the node again for each answer that would change the fate of a package. It
// keeps the answer that the node has given twice, and returns an error if no two answers
// are equal. A corrected answer can make another one doubtful, so confirm repeats the
// search until it finds none.
func (f *Feed) confirm(ctx context.Context, steps []step, packages map[jamq.PackageHash]watched) error {
	for {
		var all []doubtful
		for i := range steps {
			for pkg, a := range steps[i].answers {
				if w := packages[pkg]; !a.confirmed && f.changesFate(steps, i, pkg, &w) {
					all = append(all, doubtful{&steps[i], pkg})
				}
			}
		}
		if len(all) == 0 {
			return nil
		}
		err := someAtOnce(len(all), f.packagesAtOnce, func(i int) error {
			return f.confirmOne(ctx, &all[i], packages[all[i].pkg])
		})
		if err != nil {
			return err
		}
	}
}

// changesFate reports whether it matters that the node's answer about a package after
// block i is true: the package changes its state by it, or another answer would have saved
// the package.
func (f *Feed) changesFate(steps []step, i int, pkg jamq.PackageHash, w *watched) bool {
	parent := f.tree.Get(steps[0].parent)
	if f.couldSave(steps, i, parent, pkg, w) {
		return true
	}
	a := steps[i].answers[pkg]
	if i > 0 {
		// infer derives the answers for older blocks from this one, if they are missing.
		before := steps[i-1].answers[pkg]
		return before == nil || before.facts() != a.facts()
	}
	before := parent.Note[pkg]
	after, _ := before.next(&f.spec, steps[0].Slot, false, a)
	return before != after
}

// couldSave reports whether block i is so late for the package that the package may be
// dead if the node's answer is true. A wrong answer would then kill a live package. parent
// is the parent of the first block in steps.
func (f *Feed) couldSave(steps []step, i int, parent *node, pkg jamq.PackageHash, w *watched) bool {
	a, slot := steps[i].answers[pkg], steps[i].Slot
	reported := f.reportedSince(steps[:i+1], parent, pkg)
	if reported > 0 {
		// A package leaves the ready queue an epoch after its report became available.
		return !a.taken && slot >= reported.Add(f.spec.EpochLength)
	}
	before := parent.Slot
	if i > 0 {
		before = steps[i-1].Slot
	}
	at := w.anchor
	if at == nil { // may have been delivered since
		at = f.tree.Get(w.context.Anchor)
	}
	expires := at != nil && parent.Height+uint64(i)+1 == at.Height+uint64(f.spec.RecentHistory)
	end := w.context.LookupAnchorSlot.Add(f.spec.MaxLookupAnchorAge)
	if expires || before < end && slot >= end {
		return true
	}
	// When the report of a prerequisite leaves the recent history, no block can report the
	// package any more. The history counts blocks, and there is at most one block for each
	// slot. The report of a settled prerequisite may be old.
	return slices.ContainsFunc(w.context.Prerequisites, func(needed jamq.PackageHash) bool {
		since := f.reportedSince(steps[:i+1], parent, needed)
		return since > 0 && slot >= since.Add(jamq.Slot(f.spec.RecentHistory)) || since == 0 && f.isSettled(needed)
	})
}

// reportedSince returns the slot in which a package was reported, or an earlier one if
// that slot is not known exactly. It is 0 if no block up to the last one in steps shows a
// report. The delivered blocks count more than the answers about it, which may be wrong.
func (f *Feed) reportedSince(steps []step, parent *node, pkg jamq.PackageHash) (since jamq.Slot) {
	switch at := parent.Note[pkg]; at.stage {
	case onCore:
		return at.since
	case available, taken: // it became available then, at most U slots after its report
		return max(1, at.since-min(at.since, f.spec.AvailabilityTimeout))
	}
	for i := range steps {
		a := steps[i].answers[pkg]
		if a == nil || a.status.report() == nil {
			continue
		}
		if in := max(1, a.status.report().ReportedIn.Slot); since == 0 || in < since {
			since = in
		}
	}
	return since
}

func (f *Feed) isSettled(pkg jamq.PackageHash) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, settled := f.settled[pkg]
	return settled
}

// confirmOne asks about one package after one block until two answers are equal.
func (f *Feed) confirmOne(ctx context.Context, d *doubtful, w watched) error {
	hash := jamq.HeaderHash(d.step.HeaderHash)
	answers := []*answer{d.step.answers[d.pkg]}
	for range 2*mostRounds - 1 {
		again, err := f.askOne(ctx, hash, d.pkg, w)
		if refused := new(Error); errors.As(err, &refused) {
			// The node has forgotten the state. The next attempt infers the answer.
			f.forget(d.step.BlockDescriptor)
			return fmt.Errorf("the node no longer has the state of block %s of slot %d: %w", hash, d.step.Slot, err)
		}
		if err != nil {
			return err
		}
		for _, earlier := range answers {
			if earlier.facts() != again.facts() {
				continue
			}
			for _, other := range answers {
				if other.facts() != again.facts() {
					f.loop.NoteContradiction(differ(d, other, again))
				}
			}
			again.confirmed = true
			*d.step.answers[d.pkg] = *again
			return nil
		}
		answers = append(answers, again)
	}
	return differ(d, answers[0], answers[1])
}

// differ returns the error of two different answers about a package.
func differ(d *doubtful, a, b *answer) error {
	return fmt.Errorf("%w: asked several times about package %s at block %s of slot %d, it answered %s (accumulated: %t) and %s (accumulated: %t)", submit.ErrContradiction,
		d.pkg, jamq.HeaderHash(d.step.HeaderHash), d.step.Slot, &a.status, a.taken, &b.status, b.taken)
}

// contradicts reports whether an answer about the next block contradicts the fate.
func (f *fate) contradicts(a *answer) bool {
	r := a.status.report()
	switch f.stage {
	case unseen:
		return false
	case lost:
		return r != nil || a.status.Reportable != nil || a.taken
	case taken:
		return a.status.Reportable != nil
	}
	return a.status.Reportable != nil || r != nil && (r.Core != f.core || f.report != (common.Hash{}) && common.Hash(r.ReportHash) != f.report)
}
