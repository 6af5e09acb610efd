package eoa_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
)

// run runs an executor until the end of the test.
func (w *world) run(t *testing.T) *eoa.Executor {
	w.cfg.Now = nil
	e := w.executor(t, w.store, w.chain)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = e.Run(ctx) // ends with the test
	}()
	t.Cleanup(func() { cancel(); <-ended })
	synctest.Wait()
	return e
}

// Wait returns at the depth that the caller wants, be it more or less than
// Config.Confirmations, and after a reorg only when the block is that deep again.
func TestHandleWaitsForDepth(t *testing.T) {
	for depth := range uint64(7) {
		for _, reorg := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, 0)
				e := w.run(t)
				h, err := e.Send(t.Context(), request("a"))
				require.NoError(t, err)
				want := max(1, depth)
				if depth == 0 {
					want = w.cfg.Confirmations
				}
				type result struct {
					record eoa.Record
					err    error
				}
				got := make(chan result, 1)
				go func() {
					r, err := h.Wait(t.Context(), depth)
					got <- result{r, err}
				}()
				time.Sleep(time.Minute)
				blocks := func(n uint64) {
					for range n {
						require.Empty(t, got)
						w.chain.Mine()
						time.Sleep(time.Minute)
					}
				}
				blocks(want - 1)
				if reorg && want > 1 {
					w.chain.Reorg(int(want) - 1)
					time.Sleep(10 * time.Minute) // of a head that is behind
					blocks(want - 1)
				}
				blocks(1)
				require.Len(t, got, 1)
				r := <-got
				require.NoError(t, r.err)
				require.NotZero(t, r.record.GasUsed)
				require.Equal(t, w.chain.Transactions()[0].Hash(), r.record.Tx)
			})
		}
	}
}

// A process whose executor does not have the account knows the depths of the states.
func TestHandleOfAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 0)
		e := w.run(t)
		_, err := e.Send(t.Context(), request("a"))
		require.NoError(t, err)
		other := w.executor(t, w.store, w.chain).Handle("a")
		require.Equal(t, "a", other.Key())
		for depth, want := range []eoa.State{eoa.Confirmed, eoa.Mined, eoa.Confirmed, eoa.Final, eoa.Final} {
			ctx, cancel := context.WithCancel(t.Context())
			go mine(ctx, w.chain)
			r, err := other.Wait(t.Context(), uint64(depth))
			require.NoError(t, err)
			require.GreaterOrEqual(t, r.State, want)
			cancel()
		}
	})
}

// Send without a key makes one. Cancel and Replace are those of the client.
func TestHandleOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 0)
		e := w.run(t)
		q := request("")
		withdrawn, err := e.Send(t.Context(), q)
		require.NoError(t, err)
		changed, err := e.Send(t.Context(), q)
		require.NoError(t, err)
		require.NotEqual(t, withdrawn.Key(), changed.Key())
		require.NoError(t, withdrawn.Cancel(t.Context()))
		require.NoError(t, changed.Replace(t.Context(), eoa.Request{Data: []byte("other"), Gas: 60_000}))
		ctx, cancel := context.WithCancel(t.Context())
		go mine(ctx, w.chain)
		_, err = withdrawn.Wait(t.Context(), 100)
		require.ErrorIs(t, err, eoa.ErrNotExecuted)
		r, err := changed.Wait(t.Context(), 3)
		require.NoError(t, err)
		require.Equal(t, "other", string(r.Data))
		cancel()
		_, err = e.Send(t.Context(), eoa.Request{Key: changed.Key(), To: q.To})
		require.ErrorIs(t, err, eoa.ErrKeyReused)
		_, err = e.Handle("unknown").Wait(t.Context(), 1)
		require.ErrorIs(t, err, eoa.ErrUnknownRequest)
	})
}

// Wait tells the sender at each depth that the transaction in the block is not the
// request: a no-op after Cancel, or the transaction from before Replace.
func TestWaitTellsWhatWasMined(t *testing.T) {
	payment := func(to byte, wei uint64) eoa.Request {
		return eoa.Request{To: &common.Address{to}, Value: uint256.NewInt(wei), Gas: 21_000}
	}
	for name, x := range map[string]struct {
		change func(ctx context.Context, h *eoa.Handle) error
		refuse bool // nodes do not take the next transaction
		err    error
		reason string
		wei    uint64
	}{
		"cancelled":            {func(ctx context.Context, h *eoa.Handle) error { return h.Cancel(ctx) }, false, eoa.ErrNotExecuted, "", 0},
		"cancelled too late":   {func(ctx context.Context, h *eoa.Handle) error { return h.Cancel(ctx) }, true, nil, "", 1000},
		"replaced":             {func(ctx context.Context, h *eoa.Handle) error { return h.Replace(ctx, payment(8, 5)) }, false, nil, "", 5},
		"replaced too late":    {func(ctx context.Context, h *eoa.Handle) error { return h.Replace(ctx, payment(8, 5)) }, true, eoa.ErrNotReplaced, "before the replacement", 1000},
		"replaced by the same": {func(ctx context.Context, h *eoa.Handle) error { return h.Replace(ctx, payment(7, 1000)) }, true, nil, "", 1000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, 0)
				w.chain.SetPerBlock(0)
				h, err := w.run(t).Send(t.Context(), payment(7, 1000))
				require.NoError(t, err)
				time.Sleep(10 * time.Second)
				if x.refuse {
					w.chain.SetRefuse(func(*types.Transaction) string { return "replacement transaction underpriced" })
				}
				require.NoError(t, x.change(t.Context(), h))
				time.Sleep(10 * time.Second)
				w.chain.SetPerBlock(10)
				go mine(t.Context(), w.chain)
				for _, depth := range []uint64{1, 2, 3, 1000} {
					r, err := h.Wait(t.Context(), depth)
					if x.err == nil {
						require.NoError(t, err, "depth %d", depth)
					}
					require.ErrorIs(t, err, x.err, "depth %d", depth)
					require.Contains(t, r.Reason, x.reason)
				}
				require.Equal(t, x.wei, w.chain.Transactions()[0].Value().Uint64())
			})
		})
	}
}

// An event that was handled is acknowledged although the context ended meanwhile, and
// no further event is passed on.
func TestDeliverEndsWithItsContext(t *testing.T) {
	w := newWorld(t, 1, 0)
	e := w.executor(t, w.store, w.chain)
	for i := range 5 {
		w.submit(t, e, request(fmt.Sprint(i)))
	}
	w.steps(t, e, 3)
	for seq := range uint64(3) {
		ctx, cancel := context.WithCancel(t.Context())
		var got []uint64
		err := e.Deliver(ctx, func(_ context.Context, v eoa.Event) error {
			got = append(got, v.Seq)
			cancel()
			return nil
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, []uint64{seq + 1}, got)
	}
}

// Deliver passes the events on as they arrive. An event that is refused comes first in
// the next call.
func TestDeliverAsTheyArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 0)
		f := w.fleetOf(t, func(eoa.Account) (eoa.Chain, eoa.Signer, error) { return w.chain, w.signer, nil })
		busy := errors.New("busy")
		var got []string
		var refuse bool
		handle := func(_ context.Context, event eoa.Event) error {
			if refuse {
				return busy
			}
			got = append(got, fmt.Sprint(event.Account == w.account, event.Key, event.Kind))
			return nil
		}
		for _, deliver := range []func(context.Context, func(context.Context, eoa.Event) error) error{f.Client(w.account).Deliver, f.Deliver} {
			got, refuse = nil, false
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- deliver(ctx, handle) }()
			_, err := f.Client(w.account).Send(t.Context(), eoa.Request{Key: fmt.Sprint(time.Now()), To: &w.account.Address, Gas: 21_000})
			require.NoError(t, err)
			synctest.Wait()
			require.Len(t, got, 1, "at once")
			w.chain.Mine()
			time.Sleep(w.cfg.Poll)
			synctest.Wait()
			require.Len(t, got, 2)
			refuse = true
			w.chain.Mine()
			time.Sleep(w.cfg.Poll)
			synctest.Wait()
			require.ErrorIs(t, <-ended, busy)
			refuse = false
			go func() { ended <- deliver(ctx, handle) }()
			synctest.Wait()
			require.Len(t, got, 3)
			for range 10 {
				w.chain.Mine()
			}
			time.Sleep(2 * w.cfg.Poll)
			synctest.Wait()
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
			require.Len(t, got, 4)
		}
	})
}

// full is a store whose disk is full on demand.
type full struct {
	eoa.Store
	now bool
}

func (s *full) Commit(ctx context.Context, l eoa.Lease, now time.Time, b eoa.Batch) (uint64, error) {
	if s.now {
		return 0, errors.New("no space left")
	}
	return s.Store.Commit(ctx, l, now, b)
}

// A reorg takes back the transaction, and the store cannot keep that. Wait does not
// count the blocks of the new chain for the block of the old one.
func TestHandleAfterReorgThatIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 0)
		store := &full{Store: w.store}
		e := w.executor(t, store, w.chain)
		h, err := e.Send(t.Context(), request("a"))
		require.NoError(t, err)
		w.steps(t, e, 4)
		wait := func(depth uint64) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := h.Wait(ctx, depth)
			return err
		}
		height := w.get(t, "a").Height
		require.NotZero(t, height)
		require.NoError(t, wait(1))
		require.Error(t, wait(6))
		w.chain.SetPerBlock(0)
		w.chain.Reorg(4)
		for range 8 {
			w.chain.Mine()
		}
		store.now = true
		w.now = w.now.Add(time.Hour)
		e.NewHead()
		_, err = e.Step(t.Context())
		require.Error(t, err)
		require.Equal(t, height, w.get(t, "a").Height)
		require.Error(t, wait(6))
	})
}
