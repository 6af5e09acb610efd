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

// free removes the given traces from the view, except those that are watched or on which
// others depend. It then checks their prerequisites in the same way, because these may
// have become unnecessary too. If others depend on a trace but its outcome is final, free
// keeps the trace and drops only its prerequisites, because they can no longer change the
// outcome.
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
		case !v.fateIsFinal(t):
			seen[t] = true
			work = append(work, t.needs...)
			continue
		}
		needs := t.needs
		t.needs, t.prerequisites = nil, nil
		for _, p := range needs {
			p.dependents = slices.DeleteFunc(p.dependents, func(other *Trace) bool { return other == t })
			delete(seen, p)
		}
		work = append(work, needs...)
	}
}

// retire removes a trace from the agenda and from the list of changes, so that the
// view does not compute or report its outcome again.
func (v *View) retire(t *Trace) {
	v.agenda.turns.Remove(&t.turn)
	v.agenda.heights.Remove(&t.height)
	v.agenda.slots.Remove(&t.inSlot)
	if t.changed {
		v.agenda.changed = slices.DeleteFunc(v.agenda.changed, func(other *Trace) bool { return other == t })
	}
}
