package eoa_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
)

// distant is a node and a signer whose calls take their time, in a bubble.
type distant struct {
	*eoatest.Chain
	eoa.Signer
	call, sign time.Duration
	// poolless means that the node has no pool: it makes a block of each
	// transaction at once, and refuses all that are ahead of a missing nonce.
	poolless bool
	lose     float64 // probability that a send or its answer is lost
	hangs    string  // data of the request whose estimate never ends

	mu      sync.Mutex
	rng     *rand.Rand
	account common.Address
}

func (d *distant) Look(ctx context.Context, a common.Address) (eoa.Look, error) {
	time.Sleep(d.call)
	return d.Chain.Look(ctx, a)
}

func (d *distant) Ask(ctx context.Context, q eoa.Questions) (eoa.Answers, error) {
	time.Sleep(d.call)
	return d.Chain.Ask(ctx, q)
}

func (d *distant) Estimate(ctx context.Context, a common.Address, requests []*eoa.Request) []eoa.Estimated {
	time.Sleep(d.call)
	for _, r := range requests {
		if d.hangs != "" && string(r.Data) == d.hangs {
			<-ctx.Done()
			return nil
		}
	}
	return d.Chain.Estimate(ctx, a, requests)
}

func (d *distant) Sign(ctx context.Context, a common.Address, tx *types.Transaction) (*types.Transaction, error) {
	time.Sleep(d.sign)
	return d.Signer.Sign(ctx, a, tx)
}

func (d *distant) Send(ctx context.Context, raws [][]byte) []eoa.Sent {
	time.Sleep(d.call)
	if !d.poolless {
		return d.Chain.Send(ctx, raws)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]eoa.Sent, len(raws))
	for i, raw := range raws {
		before, after := d.rng.Float64() < d.lose/2, d.rng.Float64() < d.lose/2
		if before {
			continue
		}
		tx := new(types.Transaction)
		if err := tx.UnmarshalBinary(raw); err != nil {
			continue
		}
		look, _ := d.Chain.Look(ctx, d.account)
		if tx.Nonce() > look.Latest {
			out[i] = eoa.Sent{Result: eoa.Rejected, Reason: eoa.ReasonNonceGap, Text: "nonce too high"}
			continue
		}
		out[i] = d.Chain.Send(ctx, [][]byte{raw})[0]
		d.Chain.Mine()
		if after {
			out[i] = eoa.Sent{}
		}
	}
	return out
}

// race submits n requests at once, and returns how long it takes until all are
// mined. It is called in a bubble.
func (d *distant) race(t *testing.T, w *world, e *eoa.Executor, block time.Duration) time.Duration {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	began := time.Now()
	require.NoError(t, w.submitAll(e))
	go func() { ended <- e.Run(ctx) }()
	if block > 0 {
		heads := time.NewTicker(block)
		defer heads.Stop()
		go func() {
			for {
				select {
				case <-heads.C:
					d.Chain.Mine()
					e.NewHead()
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	for _, key := range w.keys {
		_, err := e.Wait(ctx, key, eoa.Mined)
		require.NoError(t, err)
	}
	took := time.Since(began)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	landed := map[string]int{}
	for _, tx := range w.chain.Transactions() {
		landed[string(tx.Data())]++
	}
	for _, key := range w.keys {
		require.Equal(t, 1, landed[key], key)
	}
	require.Len(t, landed, len(w.keys))
	require.False(t, w.told(t, eoa.EventBumped), "a dearer copy for a gap")
	return took
}

func newDistant(t *testing.T, w *world) *distant {
	w.cfg = eoa.DefaultConfig()
	w.cfg.CellProofs = false
	return &distant{Chain: w.chain, Signer: w.signer, rng: rand.New(rand.NewPCG(3, 4)), account: w.account.Address}
}

// withGas makes the world's requests name their gas.
func (w *world) withGas() {
	w.request = func(key string) eoa.Request {
		q := request(key)
		q.Gas = 60_000
		return q
	}
}

// A node that makes a block of each transaction at once, 50 milliseconds away,
// executes 300 requests within ten seconds, with the default configuration.
func TestAutominingNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 300)
		d := newDistant(t, w)
		d.poolless, d.call = true, 50*time.Millisecond
		e, err := eoa.New(w.cfg, w.account, w.store, d, d)
		require.NoError(t, err)
		took := d.race(t, w, e, 0)
		t.Log(took)
		require.Less(t, took, 10*time.Second)
	})
}

// A sequencer without a pool loses one of twenty sends or answers. Each loss
// refuses all transactions behind it for a gap. They are sent again as soon as
// the missing one is there.
func TestSequencerWithLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 300)
		d := newDistant(t, w)
		d.poolless, d.call, d.lose = true, 50*time.Millisecond, 0.05
		e, err := eoa.New(w.cfg, w.account, w.store, d, d)
		require.NoError(t, err)
		took := d.race(t, w, e, 0)
		t.Log(took)
		require.Less(t, took, 20*time.Second)
	})
}

// Signatures are requested at the same time: a signer that takes 50
// milliseconds does not limit an account to 20 transactions per second.
func TestSlowSignerKeepsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2000)
		d := newDistant(t, w)
		w.withGas()
		w.cfg.MaxInFlight, w.cfg.MaxUnsure = 5000, 5000
		d.sign, d.call = 50*time.Millisecond, 50*time.Millisecond
		e, err := eoa.New(w.cfg, w.account, w.store, d, d)
		require.NoError(t, err)
		took := d.race(t, w, e, time.Second)
		t.Log(took, float64(len(w.keys))/took.Seconds(), "per second")
		require.Less(t, took, 10*time.Second, "200 per second")
	})
}

// Estimates of a batch are one call: requests without gas take little longer
// than those with gas.
func TestEstimatesAreBatched(t *testing.T) {
	took := map[bool]time.Duration{}
	for _, gas := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, 300)
			d := newDistant(t, w)
			d.call = 50 * time.Millisecond
			if gas {
				w.withGas()
			}
			e, err := eoa.New(w.cfg, w.account, w.store, d, d)
			require.NoError(t, err)
			took[gas] = d.race(t, w, e, time.Second)
		})
	}
	t.Log(took)
	require.Less(t, took[false], took[true]*3/2)
}

// A node hangs on the estimate of one request. That request waits. The others go
// on, and Stats answers at once.
func TestHangingEstimate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 20)
		d := newDistant(t, w)
		d.hangs = w.keys[0]
		e, err := eoa.New(w.cfg, w.account, w.store, d, d)
		require.NoError(t, err)
		require.NoError(t, w.submitAll(e))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- e.Run(ctx) }()
		time.Sleep(w.cfg.Timeout / 2)
		began := time.Now()
		e.Stats()
		require.Zero(t, time.Since(began), "Stats waits for nothing")
		for _, key := range w.keys[1:] {
			_, err := e.Wait(ctx, key, eoa.Broadcast)
			require.NoError(t, err)
		}
		require.Less(t, time.Since(began), 4*w.cfg.Timeout)
		require.Equal(t, eoa.Pending, w.get(t, w.keys[0]).State)
		d.hangs = ""
		_, err = e.Wait(ctx, w.keys[0], eoa.Broadcast)
		require.NoError(t, err)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

// Of signatures that are requested together, those before the first failure are
// used, and those after it are not.
func TestSignaturesBeforeAFailure(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.cfg.Batch, w.cfg.Parallel = 6, 3
	p := picky{w.chain, w.signer, false, true}
	e, err := eoa.New(w.cfg, w.account, w.store, p, p)
	require.NoError(t, err)
	for _, key := range []string{"a", "b", "c", "d", "bad one", "e"} {
		w.submit(t, e, request(key))
	}
	w.steps(t, e, 1)
	for n, key := range []string{"a", "b", "c", "d", "e"} {
		r := w.get(t, key)
		require.Equal(t, eoa.Broadcast, r.State, key)
		require.EqualValues(t, n, r.Nonce)
	}
	r := w.get(t, "bad one")
	require.Equal(t, eoa.Pending, r.State)
	require.Contains(t, r.Reason, errPicky.Error())
}
