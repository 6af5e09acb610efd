package drive

import (
	"context"
	"errors"
	"fmt"

	"github.com/jamq/jamq/bundlequeue"
)

// build calls the builder once and reports the outcome.
func (r *Runner) build(request bundlequeue.Build) {
	ctx, cancel := context.WithTimeout(r.ctx, r.cfg.BuildTimeout)
	defer cancel()
	began := r.noteBuild()
	pkg, err := r.builder.Build(ctx, request)
	r.noteBuilt(began)
	if err != nil {
		r.noteBuildOutcome(err)
		r.log.Warn("build failed", "block", request.Number, "version", request.Version, "err", err)
		r.report(request.Ticket, bundlequeue.BuildFailed{Ticket: request.Ticket}, err)
		return
	}
	r.report(request.Ticket, bundlequeue.Built{Ticket: request.Ticket, Package: pkg.Hash, Context: pkg.Context, Bundle: pkg.Bundle}, nil)
}

// take feeds the outcome of a build or a send to the queue. For a build, it
// also records whether the queue could use the package.
func (r *Runner) take(ev bundlequeue.Event) error {
	built, isBuilt := ev.(bundlequeue.Built)
	if !isBuilt {
		return r.step(ev)
	}
	err := r.step(ev)
	switch {
	case errors.Is(err, bundlequeue.ErrInadmissible):
		r.log.Error("builder made an inadmissible package", "package", built.Package, "err", err)
		r.noteBuildOutcome(err)
		return r.step(bundlequeue.BuildFailed{Ticket: built.Ticket})
	case err == nil && !r.queue.Holds(built.Package):
		r.noteBuildOutcome(fmt.Errorf("%w: %s, anchored at %s", ErrUseless, built.Package, built.Context.Anchor))
	default:
		r.noteBuildOutcome(nil)
	}
	return err
}
