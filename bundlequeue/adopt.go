package bundlequeue

import "fmt"

// adopt processes an Adopt event: JAM has accumulated the oldest bundle that is not
// final, with a package that the queue does not know. adopt makes that bundle final and
// removes it at once, together with all bundles before it. If the bundle stayed, the next
// bundle would have to name one of the known packages as a prerequisite.
func (q *Queue) adopt(ev Adopt) error {
	it := q.at(q.active)
	if it == nil || it.number != ev.Number || it.state == Reserved {
		return fmt.Errorf("%w: bundle %d is adopted, want the oldest one that is not final", ErrWrongNumber, ev.Number)
	}
	if q.Holds(ev.Package) {
		return fmt.Errorf("%w: bundle %d is adopted with the package %s, which the queue has built itself", ErrInadmissible, ev.Number, ev.Package)
	}
	q.makeFinal(it, Changed{Package: ev.Package, At: q.view.Finalized()})
	q.plan(it)
	for q.firstPlace < q.active {
		q.retireFirst()
	}
	if next := q.at(q.active); next != nil {
		q.touch(next)
	}
	return nil
}
