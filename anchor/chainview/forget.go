package chainview

import (
	"slices"

	"github.com/jamq/jamq"
)

// Forget ends the effect of Watch, because the host is no longer interested in the
// package.
//
// The view still follows a forgotten package if the outcome of a watched package
// depends on it, directly or through other packages. During that time Trace returns
// the package, but Status and Changes do not.
func (v *View) Forget(pkg jamq.PackageHash) {
	t, ok := v.traces[pkg]
	if !ok || !t.watched() {
		return
	}
	t.forgotten = true
	v.bury(t)
	v.free(t)
}

// free removes the traces that the view no longer needs. It keeps a trace if the host
// watches the package, or if the outcome of another package still depends on this one.
func (v *View) free(work ...*Trace) {
	seen := make(map[*Trace]bool) // kept for their present dependents
	for len(work) > 0 {
		t := work[len(work)-1]
		work = work[:len(work)-1]
		switch {
		case t.watched() || seen[t] || v.traces[t.pkg] != t:
			continue
		case len(t.dependents) == 0:
			delete(v.traces, t.pkg)
			v.retire(t)
		// Other packages need this one as a prerequisite, and its outcome may still change. The
		// view must follow it, and its own prerequisites, for them.
		case !v.fateIsFinal(t):
			seen[t] = true
			work = append(work, t.needs...)
			continue
		}
		// The outcome can no longer change, or the trace was removed. In both cases it no
		// longer needs its own prerequisites, so check whether these can be removed too.
		needs := t.needs
		t.needs, t.prerequisites = nil, nil
		for _, p := range needs {
			p.dependents = slices.DeleteFunc(p.dependents, func(other *Trace) bool { return other == t })
			delete(seen, p)
		}
		work = append(work, needs...)
	}
}

// retire removes a trace from the agenda, so that its outcome is not computed again.
func (v *View) retire(t *Trace) {
	v.agenda.turns.Remove(&t.turn)
	v.agenda.heights.Remove(&t.height)
	v.agenda.slots.Remove(&t.inSlot)
	if t.changed {
		v.agenda.changed = slices.DeleteFunc(v.agenda.changed, func(other *Trace) bool { return other == t })
	}
}
