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

// free removes the given traces, except those that are watched or on which others
// depend.
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
		// Others depend on the outcome, which may still change, so keep the trace with
		// its prerequisites.
		case !v.fateIsFinal(t):
			seen[t] = true
			work = append(work, t.needs...)
			continue
		}
		// The outcome can no longer change, or the trace is gone. Its prerequisites may
		// have become unnecessary too, so check them in the same way.
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
