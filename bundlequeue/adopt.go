package bundlequeue

import "fmt"

// adopt makes a bundle final that JAM has accumulated with an unknown package.
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
	// If the queue kept the adopted bundle, the next bundle would need a prerequisite among
	// the packages that the queue knows, and the accumulated one is not among them. So the
	// bundle and all earlier ones are forgotten.
	for q.firstPlace < q.active {
		q.retireFirst()
	}
	if next := q.at(q.active); next != nil {
		q.touch(next)
	}
	return nil
}
