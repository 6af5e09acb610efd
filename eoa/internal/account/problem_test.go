package account

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// The problems of a view follow from its head, its records and the last look.
func TestViewProblems(t *testing.T) {
	rules, now := DefaultRules(), time.Unix(1_800_000_000, 0)
	long := now.Add(-rules.Fees.StallTimeout)
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
		{name: "a gap", head: Head{Since: long, Gaps: []uint64{3}}, open: []Record{inFlight(4, 9, "")}, want: []Problem{gap}},
		{name: "a request is not paid", unpaid: unpaid{9, *uint256.NewInt(5)}, balance: uint256.NewInt(4), want: []Problem{poor(5, 4)}},
		{name: "beside those in flight", open: []Record{inFlight(4, 9, "")}, unpaid: unpaid{9, *uint256.NewInt(5)}, balance: uint256.NewInt(13), want: []Problem{poor(14, 13)}},
		{name: "the balance has come", open: []Record{inFlight(4, 9, "")}, unpaid: unpaid{9, *uint256.NewInt(5)}, balance: uint256.NewInt(14)},
		{name: "the balance is unknown", unpaid: unpaid{9, *uint256.NewInt(5)}},
		{name: "nodes refuse for lack of funds", open: []Record{inFlight(4, 9, poorText)}, balance: uint256.NewInt(8), want: []Problem{poor(9, 8)}},
		{name: "a node errs", open: []Record{inFlight(4, 9, poorText)}, balance: uint256.NewInt(9)},
		{name: "nodes refuse for another reason", open: []Record{inFlight(4, 9, "txpool is full")}, balance: uint256.NewInt(0)},
		{name: "a gap that cannot be paid for", head: Head{Since: long, Gaps: []uint64{3}}, unpaid: unpaid{9, *uint256.NewInt(5)}, balance: uint256.NewInt(0),
			want: []Problem{poor(5, 0), gap}},
		{name: "more than a balance can be", open: []Record{inFlight(4, 9, "")}, unpaid: unpaid{9, *new(uint256.Int).SetAllOne()}, balance: uint256.NewInt(1),
			want: []Problem{{Account: account, Kind: ProblemFunds, Need: *new(uint256.Int).SetAllOne(), Have: *uint256.NewInt(1)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.head.Since.IsZero() {
				c.head.Since = now
			}
			v := NewView(account, Loaded{Head: c.head, Open: c.open})
			v.LastLook, v.unpaid = &Look{Latest: 3, Balance: c.balance}, c.unpaid
			require.Equal(t, c.want, v.Problems(&rules, now))
		})
	}
	v := NewView(account, Loaded{Head: Head{Gaps: []uint64{3}, Stop: Stop{Cause: CauseOtherChain, Reason: "why"}}})
	require.Equal(t, []Problem{{Account: account, Kind: ProblemStopped, Err: v.Head.Stop.Err()}}, v.Problems(&rules, now), "a stopped account does nothing else")
}

// The first transaction that is not covered is kept until it is covered.
func TestUnpaid(t *testing.T) {
	var u unpaid
	five, six := uint256.NewInt(5), uint256.NewInt(6)
	u.noteCover(1, five, true)
	require.Zero(t, u)
	u.noteCover(1, five, false)
	u.noteCover(2, six, false)
	u.noteCover(3, six, true)
	require.Equal(t, unpaid{1, *five}, u)
	u.noteCover(1, six, false)
	require.Equal(t, unpaid{1, *six}, u, "it costs more now")
	u.noteCover(1, six, true)
	require.Zero(t, u)

	v := NewView(Account{}, Loaded{})
	for _, c := range []struct {
		id    uint64
		state State
		left  unpaid
	}{{1, Pending, unpaid{1, *five}}, {2, Cancelled, unpaid{1, *five}}, {1, Cancelled, unpaid{}}} {
		v.unpaid = unpaid{1, *five}
		v.Apply(Batch{Records: []Record{{ID: c.id, State: c.state}}})
		require.Equal(t, c.left, v.unpaid, "%+v", c)
	}
}

// A replacement that the balance does not cover is a problem with funds.
func TestUnpaidReplacement(t *testing.T) {
	rules, now := DefaultRules(), time.Unix(1_800_000_000, 0)
	fees := Fees{Cap: *uint256.NewInt(100), Tip: *uint256.NewInt(100)}
	cost := uint256.NewInt(100 * 21_000)
	r := Record{ID: 1, State: Broadcast, Urgent: true, Attempts: []Attempt{{Gas: 21_000, Fees: fees, Cost: *cost, Result: Accepted, SentAt: now}}}
	r.Key, r.Gas, r.To = "a", 21_000, &common.Address{1}
	v := NewView(Account{ChainID: 1}, Loaded{Open: []Record{r}, Head: Head{Next: 1, Since: now}})
	v.LastLook = &Look{Balance: cost, BaseFee: fees.Cap, Tip: *uint256.NewInt(1)}
	jobs, _ := v.Bumps(&rules, now)
	require.Empty(t, jobs)
	found := v.Problems(&rules, now)
	require.Len(t, found, 1)
	require.Equal(t, ProblemFunds, found[0].Kind)
	require.True(t, cost.Lt(&found[0].Need))
	v.LastLook.Balance = &found[0].Need
	jobs, _ = v.Bumps(&rules, now)
	require.Len(t, jobs, 1)
	require.Equal(t, found[0].Need, jobs[0].cost(), "of the replacement, not of both")
	require.Zero(t, v.unpaid)
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
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, Continued(c.before, c.found, second)) })
	}
}
