package account

import (
	"fmt"
	"slices"
	"time"

	"github.com/holiman/uint256"
)

const (
	// ProblemStopped means that the account is stopped, and nothing is sent until an operator
	// calls [Client.Resume]. Err wraps ErrStopped and the cause.
	ProblemStopped ProblemKind = "stopped"
	// ProblemFunds means that the balance does not cover the next transaction. Need and Have
	// are set.
	ProblemFunds ProblemKind = "funds"
	// ProblemRequest means that a request waits, while other requests go on. Err
	// has the request's key and one of these reasons:
	//
	//   - One of its price limits is below the base fee or the price of blobs.
	//   - The price of blobs is unknown.
	//   - Its gas could not be estimated.
	//
	// Other requests wait too if they come behind 16,384 waiting requests, or
	// behind MaxInboxBytes of waiting requests.
	ProblemRequest ProblemKind = "request"
	// ProblemGap means that no known transaction has the nonce in Problem.Nonce, so
	// that no transaction behind that nonce can be mined. The executor fills the
	// gap with a no-op transaction as soon as it can.
	ProblemGap ProblemKind = "gap"
	// ProblemStalled means that transactions are in flight and none was mined for
	// FeePolicy.StallTimeout. Problem.Nonce is the lowest nonce in flight. The
	// executor raises the price, unless a limit is reached.
	ProblemStalled ProblemKind = "stalled"
	// ProblemChain means that the chain cannot be read, or that the node is behind
	// or contradicts its earlier answers. Err has the reason. No new request is
	// sent until this passes.
	ProblemChain ProblemKind = "chain"
	// ProblemSigner means that the signer failed at the last signature. Err is its
	// error.
	ProblemSigner ProblemKind = "signer"
	// ProblemStore means that the store failed. Err is its error. If Account is zero, the
	// fleet could not find out which accounts have work.
	ProblemStore ProblemKind = "store"
	// ProblemLease means that another worker holds the account's lease. That is
	// usual if several processes share a store. Err wraps ErrHeld.
	ProblemLease ProblemKind = "lease"
	// ProblemOpener means that the fleet's [Opener] returned an error, or did not
	// return within Config.Timeout. Err has the reason.
	ProblemOpener ProblemKind = "opener"
)

// ProblemKind is the kind of a problem. Its values never change, so that alerts and
// metrics can use them as names.
type ProblemKind string

// Problem is a reason why an account makes no progress, or less progress than it
// could. Operators get problems from [Fleet.Health] and [Report]. Many problems
// pass without help, so an alert should depend on how long ago Since is.
type Problem struct {
	// Account is the account; zero for a problem of a whole fleet.
	Account Account
	// Kind is the kind of the problem.
	Kind ProblemKind
	// Since is when this process first met the problem. The problem was still there
	// at the end of every step since then.
	Since time.Time
	// Err is the error; nil for ProblemFunds, ProblemGap and ProblemStalled.
	Err error
	// Nonce is the missing nonce of ProblemGap, or the lowest nonce in flight of
	// ProblemStalled.
	Nonce uint64
	// Need and Have are set for ProblemFunds, in wei. Have is the account's
	// balance. Need is the balance that would cover all transactions in flight and
	// the first request that could not be paid for. If the gas of that request is
	// not estimated yet, Need counts the 21,000 gas of a transfer. Further waiting
	// requests are not counted.
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

// Problems returns the reasons why the account makes no progress now. [Continued]
// sets their Since afterwards.
func (v *View) Problems(c *Rules, now time.Time) []Problem {
	if err := v.Head.Stop.Err(); err != nil {
		return []Problem{{Account: v.Account, Kind: ProblemStopped, Err: err}}
	}
	var all []Problem
	if need, short := v.shortOf(); short {
		all = append(all, Problem{Account: v.Account, Kind: ProblemFunds, Need: need, Have: *v.LastLook.Balance})
	}
	if w := &v.waiting; w.Record.ID != 0 {
		all = append(all, Problem{Account: v.Account, Kind: ProblemRequest, Err: fmt.Errorf("eoa: request %q: %s", w.Record.Key, w.Reason)})
	}
	if n, _ := v.InFlight(); len(v.Head.Gaps) > 0 {
		all = append(all, Problem{Account: v.Account, Kind: ProblemGap, Nonce: v.Head.Gaps[0]})
	} else if n > 0 && v.stalled(c, now) {
		first := slices.IndexFunc(v.Open, func(r Record) bool { return r.inFlight() })
		all = append(all, Problem{Account: v.Account, Kind: ProblemStalled, Nonce: v.Open[first].Nonce})
	}
	return all
}

// shortOf returns the balance needed, and whether a transaction waits because of
// it.
func (v *View) shortOf() (need uint256.Int, short bool) {
	if v.LastLook == nil || v.LastLook.Balance == nil {
		return need, false
	}
	// Money is short if a request could not be signed for lack of balance, or if nodes refuse
	// a transaction in flight for that reason.
	short = v.unpaid.id != 0 || slices.ContainsFunc(v.Open, func(r Record) bool {
		return r.inFlight() && r.Newest().Result == Rejected && Classify(r.Newest().Why) == ReasonFunds
	})
	need = v.inFlightCost()
	if _, over := need.AddOverflow(&need, &v.unpaid.more); over {
		need.SetAllOne()
	}
	return need, short && v.LastLook.Balance.Lt(&need)
}

// Continued sets the Since field of the problems that were found now. If before
// already had a problem of the same kind, the problem keeps the earlier time.
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
