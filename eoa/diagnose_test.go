package eoa

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa/internal/account"
)

// Health has the oldest problem first. It forgets an account on which the fleet does
// not work if the problem is not reported again.
func TestHealthForgets(t *testing.T) {
	first, cfg := time.Unix(1_800_000_000, 0), DefaultFleetConfig()
	account := func(n byte) Account { return Account{ChainID: 1, Address: common.Address{n}} }
	f := &Fleet{cfg: cfg, running: map[Account]*Executor{account(9): {}}, opening: map[Account]time.Time{account(2): first.Add(time.Hour)}, troubled: map[Account]troubled{}}
	hear := func(after time.Duration, a Account) {
		f.cfg.Executor.Now = fixedClock(first.Add(after)).Now
		f.setProblems(a, Problem{Account: a, Kind: ProblemStore})
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
	f.setProblems(account(5))
	require.Equal(t, []Account{account(9), account(2), {}}, health(), "it is over")
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
				e.view = account.NewView(Account{}, Loaded{})
			}
			before, found := kinds(e.problems), e.findProblems(c.err)
			require.Equal(t, c.want, kinds(found))
			for _, p := range found {
				require.Equal(t, slices.Contains(before, p.Kind), p.Since.Equal(first), p)
			}
		})
	}
}

type fixedClock time.Time

func (c fixedClock) Now() time.Time { return time.Time(c) }
