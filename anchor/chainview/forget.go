package chainview

import (
	"slices"

	"github.com/jamq/jamq"
)

// Forget ends Watch. A package that is not watched is ignored. The view follows
// a forgotten package as long as a watched one names it, because its death is
// evidence about the other. It then behaves like a prerequisite that was never
// watched.
func (v *View) Forget(pkg jamq.PackageHash) {
	t, ok := v.traces[pkg]
	if !ok || !t.watched() {
		return
	}
	t.forgotten = true
	v.free(t)
}

// free removes a trace that is not watched and that no other trace needs. From
// one that is needed and whose fate is final it removes the prerequisites,
// because a final verdict stands without them.
func (v *View) free(t *Trace) {
	switch {
	case t.watched():
	case len(t.dependents) == 0:
		delete(v.traces, t.pkg)
		v.retire(t)
		v.unlink(t)
	case v.fateIsFinal(t):
		v.unlink(t)
	default:
		for _, p := range t.needs {
			v.free(p)
		}
	}
}

// unlink removes the prerequisites of a trace that is not watched.
func (v *View) unlink(t *Trace) {
	needs := t.needs
	t.needs, t.prerequisites = nil, nil
	for _, p := range needs {
		p.dependents = slices.DeleteFunc(p.dependents, func(other *Trace) bool { return other == t })
		v.free(p)
	}
}

// retire removes a trace from the agenda.
func (v *View) retire(t *Trace) {
	v.agenda.turns.Remove(&t.turn)
	v.agenda.heights.Remove(&t.height)
	v.agenda.slots.Remove(&t.inSlot)
	if t.changed {
		v.agenda.changed = slices.DeleteFunc(v.agenda.changed, func(other *Trace) bool { return other == t })
	}
}
