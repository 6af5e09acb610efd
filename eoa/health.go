package eoa

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holiman/uint256"
)

// ProblemKind is the kind of a problem. The values never change, so that alerts and
// metrics can name them.
type ProblemKind string

const (
	// ProblemStopped means that the account is stopped until an operator calls
	// [Client.Resume]. Err wraps ErrStopped and the cause.
	ProblemStopped ProblemKind = "stopped"
	// ProblemFunds means that the account cannot pay: Need and Have are set.
	ProblemFunds ProblemKind = "funds"
	// ProblemRequest means that a request has no nonce because of its terms: its
	// price limit is below the base fee, the price of its blobs is unknown, or its
	// gas could not be estimated. Err has its key and the reason. Requests behind it
	// go on.
	ProblemRequest ProblemKind = "request"
	// ProblemGap means that no known transaction has Nonce, and that those above it
	// wait. The executor fills the gap with a noop as soon as it can.
	ProblemGap ProblemKind = "gap"
	// ProblemStalled means that no transaction of the account was mined for
	// FeePolicy.StallTimeout although some are in flight. Nonce is the lowest of
	// theirs. The executor raises the price, unless a limit is reached.
	ProblemStalled ProblemKind = "stalled"
	// ProblemChain means that the chain cannot be read, or that the node is behind
	// or contradicts what is known. Err is why. Nothing new is sent.
	ProblemChain ProblemKind = "chain"
	// ProblemEndpoints means that nodes of a joined chain contradict each other
	// about the account. Err names them and their answers. The executor goes on
	// with the one that agrees best with the account's transactions.
	ProblemEndpoints ProblemKind = "endpoints"
	// ProblemSigner means that the last signature failed. Err is why.
	ProblemSigner ProblemKind = "signer"
	// ProblemStore means that the store failed or refused a step. Err is its error. If
	// Account is zero, a fleet could not find out which accounts have work.
	ProblemStore ProblemKind = "store"
	// ProblemLease means that another worker holds the account, as is usual if
	// several processes share a store. Err wraps ErrHeld.
	ProblemLease ProblemKind = "lease"
	// ProblemOpener means that the [Opener] of a fleet failed, or has not returned
	// for Config.Timeout. Err is its error.
	ProblemOpener ProblemKind = "opener"
)

// Problem is a reason for which an account makes no progress, or less than it could.
// Many problems pass without help, so an alert should depend on the time since
// Since.
type Problem struct {
	// Account is the account; zero for a problem of a whole fleet.
	Account Account
	// Kind is the kind of the problem.
	Kind ProblemKind
	// Since is when this process first met the problem, by the executor's clock.
	// It has been there at the end of each step since then.
	Since time.Time
	// Err is the error; nil for ProblemFunds, ProblemGap and ProblemStalled.
	Err error
	// Nonce is the nonce that is missing or that does not become mined, for
	// ProblemGap and ProblemStalled.
	Nonce uint64
	// Need is the balance that pays for all transactions in flight and for the first
	// one that could not be paid, and Have is the balance, both in wei, for
	// ProblemFunds. If the gas of that one is not estimated yet, Need counts the
	// 21,000 of a transfer. Other requests that wait may need more.
	Need, Have uint256.Int
}

// String describes the problem for an operator.
func (p Problem) String() string {
	text := fmt.Sprintf("%v: %s since %s", p.Account, p.Kind, p.Since.UTC().Format(time.RFC3339))
	switch p.Kind {
	case ProblemFunds:
		return fmt.Sprintf("%s: needs %s wei, has %s", text, p.Need.Dec(), p.Have.Dec())
	case ProblemGap, ProblemStalled:
		return fmt.Sprintf("%s: nonce %d", text, p.Nonce)
	}
	return fmt.Sprintf("%s: %v", text, p.Err)
}

// findProblems returns the problems that the view shows, without Since.
func (v *view) findProblems(c *Config, now time.Time) []Problem {
	if err := v.Head.Stop.Err(); err != nil {
		return []Problem{{Account: v.Account, Kind: ProblemStopped, Err: err}}
	}
	var all []Problem
	if need, short := v.shortOf(); short {
		all = append(all, Problem{Account: v.Account, Kind: ProblemFunds, Need: need, Have: *v.look.Balance})
	}
	if w := &v.waiting; w.Record.ID != 0 {
		all = append(all, Problem{Account: v.Account, Kind: ProblemRequest, Err: fmt.Errorf("eoa: request %q: %s", w.Record.Key, w.Reason)})
	}
	if n, _ := v.inFlight(); len(v.Head.Holes) > 0 {
		all = append(all, Problem{Account: v.Account, Kind: ProblemGap, Nonce: v.Head.Holes[0]})
	} else if n > 0 && v.stalled(c, now) {
		first := slices.IndexFunc(v.Open, func(r Record) bool { return r.inFlight() })
		all = append(all, Problem{Account: v.Account, Kind: ProblemStalled, Nonce: v.Open[first].Nonce})
	}
	return all
}

// unpaid is a transaction that the balance did not cover when it was last considered.
type unpaid struct {
	id   uint64      // of its record; 0 for none
	more uint256.Int // cost beyond all transactions in flight
}

// considered notes whether the balance covers what the record's next transaction
// costs beyond all transactions in flight. The first one that is not covered is
// kept.
func (u *unpaid) considered(id uint64, more *uint256.Int, covered bool) {
	switch {
	case covered && u.id == id:
		*u = unpaid{}
	case !covered && (u.id == 0 || u.id == id):
		*u = unpaid{id, *more}
	}
}

// shortOf returns the balance that the account needs, if it has less: a
// transaction was not signed because of it, or nodes refuse one that is in flight.
func (v *view) shortOf() (need uint256.Int, short bool) {
	if v.look == nil || v.look.Balance == nil {
		return need, false
	}
	short = v.unpaid.id != 0 || slices.ContainsFunc(v.Open, func(r Record) bool {
		return r.inFlight() && r.Newest().Result == Rejected && Classify(r.Newest().Why) == ReasonFunds
	})
	need = v.inFlightCost()
	if _, over := need.AddOverflow(&need, &v.unpaid.more); over {
		need.SetAllOne()
	}
	return need, short && v.look.Balance.Lt(&need)
}

// continued returns the problems that were found now. Those of a kind that was
// there before have begun then.
func continued(before, found []Problem, now time.Time) []Problem {
	for i := range found {
		p := &found[i]
		if p.Since.IsZero() {
			p.Since = now
		}
		for _, b := range before {
			if b.Kind == p.Kind && b.Since.Before(p.Since) {
				p.Since = b.Since
			}
		}
	}
	return found
}

// diagnose returns the problems of the account after a step that returned err. A step
// that the store failed knows nothing new, so the earlier problems remain.
func (e *Executor) diagnose(err error) []Problem {
	now := e.cfg.Now()
	with := func(kind ProblemKind, err error) Problem {
		return Problem{Account: e.account, Kind: kind, Err: err}
	}
	switch {
	case errors.Is(err, context.Canceled):
		return e.problems
	case errors.Is(err, ErrHeld):
		return continued(e.problems, []Problem{with(ProblemLease, err)}, now)
	case err != nil && !errors.Is(err, ErrStopped):
		rest := slices.DeleteFunc(slices.Clone(e.problems), func(p Problem) bool { return p.Kind == ProblemStore || p.Kind == ProblemLease })
		return continued(e.problems, append(rest, with(ProblemStore, err)), now)
	case e.view == nil: // no work is left
		return nil
	}
	found := e.view.findProblems(&e.cfg, now)
	if err == nil && e.watch.failed > 0 {
		found = append(found, with(ProblemChain, e.watch.err))
	}
	if err == nil && e.watch.doubt != nil {
		found = append(found, with(ProblemEndpoints, e.watch.doubt))
	}
	if err == nil && e.signErr != nil {
		found = append(found, with(ProblemSigner, e.signErr))
	}
	return continued(e.problems, found, now)
}

// setProblems notes the problems after a step, and logs the kinds that have just
// begun. A stop and failed calls have been logged with their details.
func (e *Executor) setProblems(found []Problem) {
	for _, p := range found {
		known := slices.ContainsFunc(e.problems, func(b Problem) bool { return b.Kind == p.Kind })
		switch p.Kind {
		case ProblemFunds, ProblemRequest, ProblemGap, ProblemStalled, ProblemEndpoints:
			if !known {
				e.cfg.Logger.Warn("eoa: problem", "problem", p.String())
			}
		}
	}
	e.problems = found
}

// troubled holds the problems of an account, and when they were last reported.
type troubled struct {
	problems []Problem
	heard    time.Time
}

// Health returns the problems of the accounts that this fleet works on or tries to
// work on, the oldest first. An account without a problem is not in it. If an
// account could not be opened, or another worker holds it, the problem is dropped
// unless the fleet meets it again within Config.LeaseFor and two intervals,
// because another worker then does the work. Health does not read the store.
func (f *Fleet) Health() []Problem {
	now := f.cfg.Executor.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []Problem
	for a, t := range f.troubled {
		_, opening := f.opening[a]
		elsewhere := f.running[a] == nil && !opening && a != (Account{})
		if elsewhere && now.Sub(t.heard) > f.cfg.Executor.LeaseFor+2*f.cfg.Interval {
			delete(f.troubled, a)
			continue
		}
		all = append(all, t.problems...)
	}
	for a, began := range f.opening {
		if wait := now.Sub(began); wait > f.cfg.Executor.Timeout {
			err := fmt.Errorf("eoa: opening %v: the opener has not returned for %v", a, wait)
			all = append(all, Problem{Account: a, Kind: ProblemOpener, Since: began, Err: err})
		}
	}
	slices.SortFunc(all, func(x, y Problem) int {
		return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.Account.ChainID, y.Account.ChainID),
			x.Account.Address.Cmp(y.Account.Address), cmp.Compare(x.Kind, y.Kind))
	})
	return all
}

// hear replaces the problems of an account.
func (f *Fleet) hear(a Account, found ...Problem) {
	now := f.cfg.Executor.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(found) == 0 {
		delete(f.troubled, a)
		return
	}
	f.troubled[a] = troubled{continued(f.troubled[a].problems, slices.Clone(found), now), now}
}
