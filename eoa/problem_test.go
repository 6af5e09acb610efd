package eoa

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
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
			v := newView(account, Loaded{Head: c.head, Open: c.open})
			v.look, v.unpaid = &Look{Latest: 3, Balance: c.balance}, c.unpaid
			require.Equal(t, c.want, v.findProblems(&cfg, now))
		})
	}
	v := newView(account, Loaded{Head: Head{Holes: []uint64{3}, Stop: Stop{Cause: CauseOtherChain, Reason: "why"}}})
	require.Equal(t, []Problem{{Account: account, Kind: ProblemStopped, Err: v.Head.Stop.Err()}}, v.findProblems(&cfg, now), "a stopped account does nothing else")
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

	v := newView(Account{}, Loaded{})
	for _, c := range []struct {
		id    uint64
		state State
		left  unpaid
	}{{1, Pending, unpaid{1, *five}}, {2, Cancelled, unpaid{1, *five}}, {1, Cancelled, unpaid{}}} {
		v.unpaid = unpaid{1, *five}
		v.apply(Batch{Records: []Record{{ID: c.id, State: c.state}}})
		require.Equal(t, c.left, v.unpaid, "%+v", c)
	}
}

// A replacement that the balance does not cover is a problem with funds.
func TestUnpaidReplacement(t *testing.T) {
	cfg, now := DefaultConfig(), time.Unix(1_800_000_000, 0)
	fees := Fees{Cap: *uint256.NewInt(100), Tip: *uint256.NewInt(100)}
	cost := uint256.NewInt(100 * 21_000)
	r := Record{ID: 1, State: Broadcast, Urgent: true, Attempts: []Attempt{{Gas: 21_000, Fees: fees, Cost: *cost, Result: Accepted, SentAt: now}}}
	r.Key, r.Gas, r.To = "a", 21_000, &common.Address{1}
	v := newView(Account{ChainID: 1}, Loaded{Open: []Record{r}, Head: Head{Next: 1, Since: now}})
	v.look = &Look{Balance: cost, BaseFee: fees.Cap, Tip: *uint256.NewInt(1)}
	jobs, _ := v.bumps(&cfg, now)
	require.Empty(t, jobs)
	found := v.findProblems(&cfg, now)
	require.Len(t, found, 1)
	require.Equal(t, ProblemFunds, found[0].Kind)
	require.True(t, cost.Lt(&found[0].Need))
	v.look.Balance = &found[0].Need
	jobs, _ = v.bumps(&cfg, now)
	require.Len(t, jobs, 1)
	require.Equal(t, found[0].Need, jobs[0].cost(), "of the replacement, not of both")
	require.Zero(t, v.unpaid)
}

// Health has the oldest problem first. It forgets an account on which the fleet does
// not work if the problem is not reported again.
func TestHealthForgets(t *testing.T) {
	first, cfg := time.Unix(1_800_000_000, 0), DefaultFleetConfig()
	account := func(n byte) Account { return Account{ChainID: 1, Address: common.Address{n}} }
	f := &Fleet{cfg: cfg, running: map[Account]*Executor{account(9): {}}, opening: map[Account]time.Time{account(2): first.Add(time.Hour)}, troubled: map[Account]troubled{}}
	hear := func(after time.Duration, a Account) {
		f.cfg.Executor.Now = fixedClock(first.Add(after)).Now
		f.hear(a, Problem{Account: a, Kind: ProblemStore})
	}
	health := func() (all []Account) {
		for _, p := range f.Health() {
			all = append(all, p.Account)
		}
		return all
	}
	hear(0, account(9))
	hear(1, account(2))
	hear(2, Account{})
	hear(3, account(5))
	hear(3, account(1))
	require.Equal(t, []Account{account(9), account(2), {}, account(1), account(5)}, health())
	last := cfg.Executor.LeaseFor + 2*cfg.Interval
	hear(3+last, account(5))
	require.Equal(t, []Account{account(9), account(2), {}, account(1), account(5)}, health(), "since the first report")
	hear(4+last, account(5))
	require.Equal(t, []Account{account(9), account(2), {}, account(5)}, health())
	f.hear(account(5))
	require.Equal(t, []Account{account(9), account(2), {}}, health(), "it is over")
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
	lease := Problem{Kind: ProblemLease, Since: first, Err: ErrHeld}
	for _, c := range []struct {
		name    string
		before  []Problem // nil: the chain
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
		{name: "the store again", before: []Problem{{Kind: ProblemStore, Since: first}}, err: failed, noView: true, want: []ProblemKind{ProblemStore}},
		{name: "the store instead of the lease", before: []Problem{lease}, err: failed, noView: true, want: []ProblemKind{ProblemStore}},
		{name: "fenced", err: ErrFenced, want: []ProblemKind{ProblemChain, ProblemStore}},
		{name: "held", err: ErrHeld, noView: true, want: []ProblemKind{ProblemLease}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &Executor{cfg: DefaultConfig(), problems: c.before, watch: watch{failed: c.looks, err: failed}, signErr: c.signErr}
			e.cfg.Now = fixedClock(now).Now
			if c.before == nil {
				e.problems = []Problem{chain}
			}
			if !c.noView {
				e.view = newView(Account{}, Loaded{})
			}
			before, found := kinds(e.problems), e.diagnose(c.err)
			require.Equal(t, c.want, kinds(found))
			for _, p := range found {
				require.Equal(t, slices.Contains(before, p.Kind), p.Since.Equal(first), p)
			}
		})
	}
}

type fixedClock time.Time

func (c fixedClock) Now() time.Time { return time.Time(c) }
