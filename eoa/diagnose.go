package eoa

import (
	"context"
	"errors"
	"slices"

	"github.com/jamq/jamq/eoa/internal/account"
)

// findProblems returns the account's problems after a step that returned err.
func (e *Executor) findProblems(err error) []Problem {
	now := e.cfg.Now()
	with := func(kind ProblemKind, err error) Problem {
		return Problem{Account: e.account, Kind: kind, Err: err}
	}
	switch {
	case errors.Is(err, context.Canceled):
		return e.problems
	case errors.Is(err, ErrHeld):
		return account.Continued(e.problems, []Problem{with(ProblemLease, err)}, now)
	case err != nil && !errors.Is(err, ErrStopped):
		// The step has learned nothing about the account, so the other earlier
		// problems remain.
		rest := slices.DeleteFunc(slices.Clone(e.problems), func(p Problem) bool { return p.Kind == ProblemStore || p.Kind == ProblemLease })
		return account.Continued(e.problems, append(rest, with(ProblemStore, err)), now)
	case e.view == nil: // no work is left
		return nil
	}
	found := e.view.Problems(&e.rules, now)
	if err == nil && e.watch.failed > 0 {
		found = append(found, with(ProblemChain, e.watch.err))
	}
	if err == nil && e.signErr != nil {
		found = append(found, with(ProblemSigner, e.signErr))
	}
	return account.Continued(e.problems, found, now)
}

// setProblems remembers the problems after a step, and logs those that have just
// begun.
func (e *Executor) setProblems(found []Problem) {
	for _, p := range found {
		known := slices.ContainsFunc(e.problems, func(b Problem) bool { return b.Kind == p.Kind })
		switch p.Kind {
		// Stops and failed calls were already logged with their details.
		case ProblemFunds, ProblemRequest, ProblemGap, ProblemStalled:
			if !known {
				e.cfg.Logger.Warn("eoa: problem", "problem", p.String())
			}
		}
	}
	e.problems = found
}
