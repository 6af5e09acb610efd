package account

import (
	"fmt"
	"slices"
	"time"

	"github.com/holiman/uint256"
)

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

// ProblemKind is the kind of a problem. The values never change, so that alerts and
// metrics can name them.
type ProblemKind string

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
func (v *View) findProblems(c *Rules, now time.Time) []Problem {
	if err := v.Head.Stop.Err(); err != nil {
		return []Problem{{Account: v.Account, Kind: ProblemStopped, Err: err}}
	}
	var all []Problem
	if need, short := v.shortOf(); short {
		all = append(all, Problem{Account: v.Account, Kind: ProblemFunds, Need: need, Have: *v.seen.Balance})
	}
	if w := &v.waiting; w.Record.ID != 0 {
		all = append(all, Problem{Account: v.Account, Kind: ProblemRequest, Err: fmt.Errorf("eoa: request %q: %s", w.Record.Key, w.Reason)})
	}
	if n, _ := v.InFlight(); len(v.Head.Holes) > 0 {
		all = append(all, Problem{Account: v.Account, Kind: ProblemGap, Nonce: v.Head.Holes[0]})
	} else if n > 0 && v.stalled(c, now) {
		first := slices.IndexFunc(v.Open, func(r Record) bool { return r.inFlight() })
		all = append(all, Problem{Account: v.Account, Kind: ProblemStalled, Nonce: v.Open[first].Nonce})
	}
	return all
}

// shortOf returns the balance that the account needs, if it has less: a
// transaction was not signed because of it, or nodes refuse one that is in flight.
func (v *View) shortOf() (need uint256.Int, short bool) {
	if v.seen == nil || v.seen.Balance == nil {
		return need, false
	}
	short = v.unpaid.id != 0 || slices.ContainsFunc(v.Open, func(r Record) bool {
		return r.inFlight() && r.Newest().Result == Rejected && Classify(r.Newest().Why) == ReasonFunds
	})
	need = v.inFlightCost()
	if _, over := need.AddOverflow(&need, &v.unpaid.more); over {
		need.SetAllOne()
	}
	return need, short && v.seen.Balance.Lt(&need)
}

// Continued returns the problems that were found now. Those of a kind that was
// there before have begun then.
func Continued(before, found []Problem, now time.Time) []Problem {
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
