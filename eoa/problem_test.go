package eoa

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// The problems of a view follow from its head, its records and the last look.
func TestViewProblems(t *testing.T) {
	cfg, now := DefaultConfig(), time.Unix(1_800_000_000, 0)
	long := now.Add(-cfg.Fees.StallTimeout)
	account := Account{ChainID: 1}
	inFlight := func(nonce, cost uint64, why string) Record {
		r := Record{ID: nonce + 1, State: Broadcast, Nonce: nonce, Attempts: []Attempt{{Nonce: nonce, Cost: *uint256.NewInt(cost), Result: Accepted}}}
		if why != "" {
			r.Attempts[0].Result, r.Attempts[0].Why = Rejected, why
		}
		return r
	}
	poor := func(need, have uint64) Problem {
		return Problem{Account: account, Kind: ProblemFunds, Need: *uint256.NewInt(need), Have: *uint256.NewInt(have)}
	}
	gap, stalled := Problem{Account: account, Kind: ProblemGap, Nonce: 3}, Problem{Account: account, Kind: ProblemStalled, Nonce: 4}
	const poorText = "insufficient funds for gas * price + value"
	for _, c := range []struct {
		name    string
		head    Head
		open    []Record
		balance *uint256.Int // nil: unknown
		unpaid  unpaid
		want    []Problem
	}{
		{name: "nothing to do", head: Head{Since: long}, balance: uint256.NewInt(0)},
		{name: "in flight for a moment", head: Head{Since: long.Add(1)}, open: []Record{inFlight(4, 9, "")}, balance: uint256.NewInt(0)},
		{name: "in flight for long", head: Head{Since: long}, open: []Record{inFlight(4, 9, ""), inFlight(5, 9, "")}, want: []Problem{stalled}},
		{name: "a gap", head: Head{Since: long, Holes: []uint64{3}}, open: []Record{inFlight(4, 9, "")}, want: []Problem{gap}},
		{name: "a request is not paid", unpaid: unpaid{9, *uint256.NewInt(5)}, balance: uint256.NewInt(4), want: []Problem{poor(5, 4)}},
		{name: "beside those in flight", open: []Record{inFlight(4, 9, "")}, unpaid: unpaid{9, *uint256.NewInt(5)}, balance: uint256.NewInt(13), want: []Problem{poor(14, 13)}},
		{name: "the balance has come", open: []Record{inFlight(4, 9, "")}, unpaid: unpaid{9, *uint256.NewInt(5)}, balance: uint256.NewInt(14)},
		{name: "the balance is unknown", unpaid: unpaid{9, *uint256.NewInt(5)}},
		{name: "nodes refuse for lack of funds", open: []Record{inFlight(4, 9, poorText)}, balance: uint256.NewInt(8), want: []Problem{poor(9, 8)}},
		{name: "a node errs", open: []Record{inFlight(4, 9, poorText)}, balance: uint256.NewInt(9)},
		{name: "nodes refuse for another reason", open: []Record{inFlight(4, 9, "txpool is full")}, balance: uint256.NewInt(0)},
		{name: "a gap that cannot be paid for", head: Head{Since: long, Holes: []uint64{3}}, unpaid: unpaid{9, *uint256.NewInt(5)}, balance: uint256.NewInt(0),
			want: []Problem{poor(5, 0), gap}},
		{name: "more than a balance can be", open: []Record{inFlight(4, 9, "")}, unpaid: unpaid{9, *new(uint256.Int).SetAllOne()}, balance: uint256.NewInt(1),
			want: []Problem{{Account: account, Kind: ProblemFunds, Need: *new(uint256.Int).SetAllOne(), Have: *uint256.NewInt(1)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.head.Since.IsZero() {
				c.head.Since = now
			}
			v := NewView(account, Loaded{Head: c.head, Open: c.open})
			v.look, v.unpaid = &Look{Latest: 3, Balance: c.balance}, c.unpaid
			require.Equal(t, c.want, v.Problems(&cfg, now))
		})
	}
	v := NewView(account, Loaded{Head: Head{Holes: []uint64{3}, Stop: Stop{Cause: CauseOtherChain, Reason: "why"}}})
	require.Equal(t, []Problem{{Account: account, Kind: ProblemStopped, Err: v.Head.Stop.Err()}}, v.Problems(&cfg, now), "a stopped account does nothing else")
}

// The first transaction that is not covered is kept until it is covered.
func TestUnpaid(t *testing.T) {
	var u unpaid
	five, six := uint256.NewInt(5), uint256.NewInt(6)
	u.considered(1, five, true)
	require.Zero(t, u)
	u.considered(1, five, false)
	u.considered(2, six, false)
	u.considered(3, six, true)
	require.Equal(t, unpaid{1, *five}, u)
	u.considered(1, six, false)
	require.Equal(t, unpaid{1, *six}, u, "it costs more now")
	u.considered(1, six, true)
	require.Zero(t, u)
}

// A problem that is still there keeps its beginning. One that comes back begins
// again.
func TestProblemsContinue(t *testing.T) {
	first, second := time.Unix(1, 0), time.Unix(2, 0)
	at := func(kind ProblemKind, since time.Time) Problem { return Problem{Kind: kind, Since: since} }
	for _, c := range []struct {
		name                string
		before, found, want []Problem
	}{
		{"none", nil, nil, nil},
		{"a new one", nil, []Problem{{Kind: ProblemGap}}, []Problem{at(ProblemGap, second)}},
		{"still there", []Problem{at(ProblemGap, first)}, []Problem{{Kind: ProblemGap, Nonce: 7}}, []Problem{{Kind: ProblemGap, Since: first, Nonce: 7}}},
		{"over", []Problem{at(ProblemGap, first)}, nil, nil},
		{"another", []Problem{at(ProblemGap, first)}, []Problem{{Kind: ProblemFunds}}, []Problem{at(ProblemFunds, second)}},
		{"known to be older", []Problem{at(ProblemGap, second)}, []Problem{at(ProblemGap, first)}, []Problem{at(ProblemGap, first)}},
		{"one of two", []Problem{at(ProblemGap, first), at(ProblemChain, first)}, []Problem{{Kind: ProblemChain}, {Kind: ProblemFunds}},
			[]Problem{at(ProblemChain, first), at(ProblemFunds, second)}},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, continued(c.before, c.found, second)) })
	}
}

// A step that the store failed knows nothing new, and one that found another
// worker does not know what that one knows.
func TestDiagnosis(t *testing.T) {
	first, now, failed := time.Unix(1, 0), time.Unix(2, 0), errors.New("failed")
	chain := Problem{Kind: ProblemChain, Since: first, Err: failed}
	kinds := func(problems []Problem) (all []ProblemKind) {
		for _, p := range problems {
			all = append(all, p.Kind)
		}
		return all
	}
	for _, c := range []struct {
		name    string
		err     error
		looks   int // that failed
		noView  bool
		signErr error
		want    []ProblemKind
	}{
		{name: "over"},
		{name: "the chain", looks: 1, want: []ProblemKind{ProblemChain}},
		{name: "chain and signer", looks: 1, signErr: failed, want: []ProblemKind{ProblemChain, ProblemSigner}},
		{name: "no work is left", looks: 1, noView: true},
		{name: "given up", err: context.Canceled, want: []ProblemKind{ProblemChain}},
		{name: "the store", err: failed, noView: true, want: []ProblemKind{ProblemChain, ProblemStore}},
		{name: "fenced", err: ErrFenced, want: []ProblemKind{ProblemChain, ProblemStore}},
		{name: "held", err: ErrHeld, noView: true, want: []ProblemKind{ProblemLease}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &Executor{cfg: DefaultConfig(), problems: []Problem{chain}, failed: c.looks, lookErr: failed, signErr: c.signErr}
			e.cfg.Clock = fixedClock(now)
			if !c.noView {
				e.view = NewView(Account{}, Loaded{})
			}
			found := e.diagnose(c.err)
			require.Equal(t, c.want, kinds(found))
			for _, p := range found {
				require.Equal(t, p.Kind == ProblemChain, p.Since.Equal(first), p)
			}
		})
	}
}

type fixedClock time.Time

func (c fixedClock) Now() time.Time { return time.Time(c) }
