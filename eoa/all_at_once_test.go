package eoa_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/internal/repeat"
)

// All faults occur together: a store that loses answers and writes late, a
// faulty node, two workers that die and lose the account to each other, users
// that cancel, replace and reset, another program with the account's key, and
// expensive blocks. The final state of each record must agree with the chain.
func TestE1NoDoubleSpendAllAtOnce(t *testing.T) {
	t.Parallel()
	for seed := repeat.First(); seed < repeat.First()+uint64(repeat.Times(8, 40)); seed++ {
		w := newWorld(t, seed, 15)
		rng := rand.New(rand.NewPCG(seed, 9))
		w.cfg.LeaseFor, w.cfg.Fees.StallTimeout, w.cfg.MaxInFlight, w.cfg.Requeue = 4*time.Second, 15*time.Second, 9, false
		w.chain.SetPerBlock(4)
		w.chain.SetFaults(faultsOf(seed))
		var runs [2]*life
		var workers [2]*eoa.Executor
		bad := [2]*flaky{{Store: w.store, rng: rng}, {Store: w.store, rng: rng}}
		ctx := context.Background()
		for i := range 300 {
			k := rng.IntN(2)
			if runs[k] == nil || runs[k].Dead() {
				runs[k] = &life{Store: bad[k], Chain: w.chain, DiesAt: 1 + rng.IntN(300)}
				workers[k] = w.executor(t, runs[k], runs[k].Wire())
			}
			e := workers[k]
			key := w.keys[rng.IntN(len(w.keys))]
			switch rng.IntN(40) {
			case 0:
				_ = w.store.Break(ctx, w.account)
			case 1, 2:
				_ = e.Cancel(ctx, key)
			case 3, 4:
				_ = e.Replace(ctx, key, request(key+"|other"))
			case 5:
				w.chain.SetBaseFee(100 + rng.Uint64N(300))
			case 6:
				if l, err := w.chain.Look(ctx, w.account.Address); err == nil {
					w.chain.Inject(w.foreign(t, l.Latest+rng.Uint64N(3)))
				}
			case 7:
				_ = e.ResetNonce(ctx, false)
			case 8, 9, 10, 11:
				_ = w.submitAll(e)
			}
			_, err := e.Step(ctx)
			require.NoError(t, e.Check())
			for _, fine := range []error{nil, errLost, errDied, eoa.ErrHeld, eoa.ErrFenced, eoa.ErrConflict} {
				if errors.Is(err, fine) {
					err = nil
				}
			}
			require.NoError(t, err)
			w.tick(i)
		}
		w.chain.SetFaults(eoatest.Faults{})
		w.chain.SetBaseFee(100)
		for _, s := range bad {
			for _, f := range s.late {
				f()
			}
		}
		last := w.executor(t, w.store, w.chain)
		require.NoError(t, w.submitAll(last))
		w.finish(t, last)
		landed := map[string]int{}
		for _, tx := range w.chain.Transactions() {
			landed[strings.TrimSuffix(string(tx.Data()), "|other")]++
		}
		for _, key := range w.keys {
			r := w.get(t, key)
			want := 0
			if r.State == eoa.Final {
				want = 1
			}
			if landed[key] != want || !r.State.Terminal() {
				w.dump(t)
				t.Fatalf("seed %d: %q is %v and landed %d times", seed, key, r.State, landed[key])
			}
		}
	}
}
