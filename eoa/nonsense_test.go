package eoa_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/internal/repeat"
)

// liar is a node whose answers have the right form and nothing else.
type liar struct{ rng *rand.Rand }

func (l liar) number() uint64 {
	return []uint64{0, 1, l.rng.Uint64N(5), l.rng.Uint64N(50), math.MaxUint64, math.MaxUint64 - 1, 1 << 63, l.rng.Uint64()}[l.rng.IntN(8)]
}

func (l liar) wei() *uint256.Int {
	return []*uint256.Int{new(uint256.Int), uint256.NewInt(l.number()), new(uint256.Int).SetAllOne(), new(uint256.Int).Lsh(uint256.NewInt(1), uint(l.rng.IntN(256)))}[l.rng.IntN(4)]
}

func (l liar) hash() (h common.Hash) {
	h[0] = byte(l.rng.IntN(3))
	return h
}

func (l liar) Look(context.Context, common.Address) (eoa.Look, error) {
	look := eoa.Look{Number: l.number(), Finalized: l.number(), Latest: l.rng.Uint64N(20), Final: l.rng.Uint64N(20), Preconfirmed: l.number(), Pending: l.rng.Uint64N(20),
		BaseFee: *l.wei(), Tip: *l.wei()}
	if l.rng.IntN(2) == 0 {
		look.Balance = l.wei()
	}
	if l.rng.IntN(2) == 0 { // so that something is sent now and then
		look.Balance, look.BaseFee, look.Tip = nil, *uint256.NewInt(10), *uint256.NewInt(1)
	}
	return look, nil
}

func (l liar) Ask(_ context.Context, q eoa.Questions) (eoa.Answers, error) {
	out := eoa.Answers{Number: l.number(), Receipts: map[common.Hash]eoa.Receipt{}, Missing: map[common.Hash]bool{}, Blocks: map[uint64]common.Hash{}}
	for _, h := range q.Txs {
		switch l.rng.IntN(3) {
		case 0:
			out.Receipts[h] = eoa.Receipt{Number: l.number(), Block: l.hash(), Success: l.rng.IntN(2) == 0, GasUsed: l.number()}
		case 1:
			out.Missing[h] = true
		}
	}
	for _, height := range q.Heights {
		if l.rng.IntN(2) == 0 {
			out.Blocks[height] = l.hash()
		}
	}
	if l.rng.IntN(10) == 0 {
		return eoa.Answers{}, nil
	}
	return out, nil
}

func (l liar) Estimate(_ context.Context, _ common.Address, requests []*eoa.Request) []eoa.Estimated {
	out := make([]eoa.Estimated, l.rng.IntN(len(requests)+2))
	for i := range out {
		out[i].Gas = l.number()
	}
	return out
}

func (l liar) Send(_ context.Context, raws [][]byte) []eoa.Sent {
	out := make([]eoa.Sent, l.rng.IntN(len(raws)+2))
	for i := range out {
		out[i] = eoa.Sent{Result: eoa.SendResult(l.rng.IntN(5)), Reason: eoa.Reason(l.rng.IntN(14)), RetryAfter: time.Duration(l.rng.Int64()), Text: "nonce"}
	}
	return out
}

// For any answers of a node, nothing panics, the store can be loaded again, and
// the next nonce exceeds the count by no more than the number of sends.
func TestLiesNeverPanic(t *testing.T) {
	t.Parallel()
	for seed := repeat.First(); seed < repeat.First()+uint64(repeat.Times(10, 60)); seed++ {
		w := newWorld(t, seed, 12)
		w.cfg.Fees.StallTimeout, w.cfg.Parallel = 10*time.Second, 1
		l := liar{rand.New(rand.NewPCG(seed, 8))}
		ctx := context.Background()
		var e *eoa.Executor
		for i := range 150 {
			if i%40 == 0 {
				require.NoError(t, w.store.Break(ctx, w.account))
				e = w.executor(t, w.store, l)
				require.NoError(t, w.submitAll(e))
			}
			if i%17 == 3 {
				require.NoError(t, e.Cancel(ctx, w.keys[l.rng.IntN(len(w.keys))]))
			}
			if _, err := e.Step(ctx); errors.Is(err, eoa.ErrStopped) {
				require.NoError(t, e.Resume(ctx))
			} else {
				require.NoError(t, err)
			}
			require.LessOrEqual(t, e.Stats().Next, uint64(20+12+64))
			w.now = w.now.Add(time.Duration(l.rng.Int64N(int64(20 * time.Second))))
		}
	}
}
