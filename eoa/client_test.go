package eoa_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
)

// A client of a fleet follows and orders all that a client of an executor does. Orders
// from before Run are carried out when the fleet runs.
func TestFleetClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 0)
		f, err := eoa.NewFleet(eoa.DefaultFleetConfig(), w.store, func(eoa.Account) (eoa.Chain, eoa.Signer, error) {
			return w.chain, w.signer, nil
		})
		require.NoError(t, err)
		c := f.Client(w.account)
		_, err = c.Submit(t.Context(), eoa.Request{Key: "kept", To: &w.account.Address}, eoa.Request{Key: "withdrawn", To: &w.account.Address}, eoa.Request{Key: "changed", To: &w.account.Address})
		require.NoError(t, err)
		require.NoError(t, c.Cancel(t.Context(), "withdrawn"))
		require.NoError(t, c.Replace(t.Context(), "changed", eoa.Request{Data: []byte("other"), Gas: 60_000}))
		require.ErrorIs(t, c.Cancel(t.Context(), "unknown"), eoa.ErrUnknownRequest)
		_, working := f.Stats(w.account)
		require.False(t, working)

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- f.Run(ctx) }()
		time.Sleep(2 * time.Second)
		stats, working := f.Stats(w.account)
		require.True(t, working)
		require.Equal(t, 2, stats.Broadcast)
		go mine(ctx, w.chain)
		for key, want := range map[string]eoa.State{"kept": eoa.Final, "withdrawn": eoa.Cancelled, "changed": eoa.Final} {
			r, err := c.Wait(ctx, key, eoa.Final)
			require.NoError(t, err)
			require.Equal(t, want, r.State, key)
		}
		var data []string
		for _, tx := range w.chain.Transactions() {
			data = append(data, string(tx.Data()))
			r, err := c.ByHash(ctx, tx.Hash())
			require.NoError(t, err)
			require.NotEqual(t, "withdrawn", r.Key)
		}
		require.ElementsMatch(t, []string{"", "other"}, data)
		all, err := c.List(ctx, 0, 10)
		require.NoError(t, err)
		require.Len(t, all, 3)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

// A client of an account that cannot be opened stores requests and orders. Health has the
// error of the opener, and not the calls.
func TestFleetClientOfClosedAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 0)
		locked := errors.New("the vault is locked")
		f, err := eoa.NewFleet(eoa.DefaultFleetConfig(), w.store, func(eoa.Account) (eoa.Chain, eoa.Signer, error) {
			return nil, nil, locked
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- f.Run(ctx) }()
		synctest.Wait()
		c := f.Client(w.account)
		records, err := c.Submit(ctx, eoa.Request{Key: "a", To: &w.account.Address})
		require.NoError(t, err)
		require.Len(t, records, 1)
		require.NoError(t, c.Cancel(ctx, "a"))
		synctest.Wait()
		health := f.Health()
		require.Len(t, health, 1)
		require.ErrorIs(t, health[0].Err, locked)
		inbox, err := w.store.Inbox(ctx, w.account, 10)
		require.NoError(t, err)
		require.Len(t, inbox.Orders, 1)
		require.Len(t, inbox.Pending, 1)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}
