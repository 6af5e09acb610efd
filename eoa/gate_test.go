package eoa_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
)

// picky is a signer and a node that fail for some requests.
type picky struct {
	*eoatest.Chain
	eoa.Signer
	signs, estimates bool // for data that begins with "bad"
}

var errPicky = errors.New("not this one")

func bad(data []byte) bool { return len(data) > 3 && string(data[:3]) == "bad" }

func (p picky) Sign(ctx context.Context, a common.Address, tx *types.Transaction) (*types.Transaction, error) {
	if bad(tx.Data()) && !p.signs {
		return nil, errPicky
	}
	return p.Signer.Sign(ctx, a, tx)
}

func (p picky) Estimate(ctx context.Context, a common.Address, requests []*eoa.Request) []eoa.Estimated {
	out := p.Chain.Estimate(ctx, a, requests)
	for i, r := range requests {
		if bad(r.Data) && !p.estimates {
			out[i] = eoa.Estimated{Err: errPicky}
		}
	}
	return out
}

// Requests that cannot be signed, estimated or paid for wait with a reason,
// whatever their number. The requests behind them go on.
func TestWhatCannotBeSentIsNoGate(t *testing.T) {
	for name, c := range map[string]struct {
		bad              int
		signs, estimates bool
		value            uint64
		why              string
	}{
		"signer":   {bad: 1, estimates: true, why: errPicky.Error()},
		"estimate": {bad: 9, signs: true, why: "estimated"},
		"balance":  {bad: 100, signs: true, estimates: true, value: 1e9}, // with batches of 4
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, 0)
			w.chain.SetBalance(w.account.Address, uint256.NewInt(1e8))
			p := picky{w.chain, w.signer, c.signs, c.estimates}
			e, err := eoa.New(w.cfg, w.account, w.store, p, p)
			require.NoError(t, err)
			for i := range c.bad {
				q := request(fmt.Sprint("bad ", i))
				q.Value = uint256.NewInt(c.value)
				w.submit(t, e, q)
			}
			w.submit(t, e, request("good"))
			w.steps(t, e, 60)
			require.Equal(t, eoa.Final, w.get(t, "good").State)
			r := w.get(t, "bad 0")
			require.Equal(t, eoa.Pending, r.State)
			require.Contains(t, r.Reason, c.why)
			w.chain.SetBalance(w.account.Address, nil)
			e = w.executor(t, w.store, w.chain)
			require.NoError(t, w.store.Break(context.Background(), w.account))
			for i := range c.bad {
				w.keys = append(w.keys, fmt.Sprint("bad ", i))
			}
			w.keys = append(w.keys, "good")
			w.finish(t, e)
			w.exactlyOnce(t)
		})
	}
}

// A replacement that cannot be signed waits, and does not keep the account from going on.
func TestReplacementThatCannotBeSigned(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.chain.SetPerBlock(0)
	p := picky{w.chain, w.signer, false, true}
	e, err := eoa.New(w.cfg, w.account, w.store, p, p)
	require.NoError(t, err)
	w.submit(t, e, request("a"))
	w.steps(t, e, 2)
	require.NoError(t, e.Replace(context.Background(), "a", request("bad payload")))
	w.steps(t, e, 2)
	require.Contains(t, w.get(t, "a").Reason, errPicky.Error())
	w.submit(t, e, request("b"))
	w.chain.SetPerBlock(10)
	w.steps(t, e, 60)
	require.Equal(t, eoa.Final, w.get(t, "a").State)
	require.Equal(t, eoa.Final, w.get(t, "b").State)
}

// limits records the limits of calls to Inbox.
type limits struct {
	eoa.Store
	last, most int
}

func (s *limits) Inbox(ctx context.Context, a eoa.Account, limit int) (eoa.Inbox, error) {
	s.last, s.most = limit, max(s.most, limit)
	return s.Store.Inbox(ctx, a, limit)
}

// The window on what is pending is wide only while nothing in a narrower one can be sent.
func TestWindowNarrowsAgain(t *testing.T) {
	w := newWorld(t, 1, 300)
	store := &limits{Store: w.store}
	w.chain.SetBalance(w.account.Address, new(uint256.Int))
	e := w.executor(t, store, w.chain)
	require.NoError(t, w.submitAll(e))
	w.steps(t, e, 3)
	require.Greater(t, store.most, 300)
	w.chain.SetBalance(w.account.Address, nil)
	w.finish(t, e)
	w.exactlyOnce(t)
	require.Equal(t, 8*w.cfg.Batch, store.last)
}
