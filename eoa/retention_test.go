package eoa_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/kvstore"
	"github.com/jamq/jamq/eoa/memstore"
)

// listed returns the number of records of the account.
func (w *world) listed(t testing.TB) int {
	records, err := w.store.List(context.Background(), w.account, 0, 10_000)
	require.NoError(t, err)
	return len(records)
}

// again submits all requests once more, and requires that each is found as it
// ended and none is executed again.
func (w *world) again(t testing.TB, e *eoa.Executor) {
	t.Helper()
	for _, key := range w.keys {
		records, err := e.Submit(context.Background(), w.request(key))
		require.NoError(t, err)
		require.Equal(t, eoa.Final, records[0].State)
		r, err := e.Wait(context.Background(), key, eoa.Final)
		require.NoError(t, err)
		require.Equal(t, records[0].ID, r.ID)
	}
	w.steps(t, e, 30)
	landed := 0
	for _, tx := range w.chain.Transactions() {
		if len(tx.Data()) > 0 {
			landed++
		}
	}
	require.Equal(t, len(w.keys), landed)
	other := w.request(w.keys[0])
	other.Gas = 99_999
	_, err := e.Submit(context.Background(), other)
	require.ErrorIs(t, err, eoa.ErrKeyReused)
}

// Records are dropped an age after they ended. Their keys stay: a request that
// is submitted again is not executed again.
func TestRetentionByAge(t *testing.T) {
	w := newWorld(t, 1, 40)
	w.cfg.Retention.Age = time.Hour
	e := w.executor(t, w.store, w.chain)
	require.NoError(t, w.submitAll(e))
	w.finish(t, e)
	w.exactlyOnce(t)
	w.steps(t, e, 30)
	require.Equal(t, 40, w.listed(t), "not yet")
	w.now = w.now.Add(2 * time.Hour)
	w.keys = append(w.keys, "wakes the account")
	w.submit(t, e, request("wakes the account"))
	w.finish(t, e)
	w.steps(t, e, 30)
	require.Equal(t, 1, w.listed(t))
	w.again(t, e)
}

// Only the newest records are kept. Requests that are open stay, however old.
func TestRetentionByCount(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.cfg.Retention = eoa.Retention{Count: 10}
	e := w.executor(t, w.store, w.chain)
	stuck := request("stuck")
	stuck.MaxFee = stuck.Value // one wei
	w.submit(t, e, stuck)
	for round := range 5 {
		for i := range 30 {
			key := fmt.Sprint(round, "/", i)
			w.keys = append(w.keys, key)
			w.submit(t, e, request(key))
		}
		w.steps(t, e, 60)
		w.now = w.now.Add(time.Hour)
		w.steps(t, e, 5)
	}
	require.Equal(t, 10+1, w.listed(t))
	require.Equal(t, eoa.Pending, w.get(t, "stuck").State)
	w.again(t, e)
}

// A host that never acknowledges events does not keep them forever.
func TestRetentionOfEvents(t *testing.T) {
	w := newWorld(t, 1, 20)
	w.cfg.Retention = eoa.Retention{EventAge: time.Hour}
	e := w.executor(t, w.store, w.chain)
	require.NoError(t, w.submitAll(e))
	w.finish(t, e)
	w.now = w.now.Add(50 * time.Minute)
	w.submit(t, e, request("late"))
	w.steps(t, e, 60)
	w.now = w.now.Add(20 * time.Minute)
	w.submit(t, e, request("later"))
	w.steps(t, e, 60)
	events, err := w.store.Events(context.Background(), w.account, 0, 10_000)
	require.NoError(t, err)
	require.NotEmpty(t, events)
	for _, event := range events {
		require.Contains(t, []string{"late", "later"}, event.Key)
	}
	require.Equal(t, 22, w.listed(t), "records have no limit")
}

// An executor whose retention is zero keeps everything.
func TestRetentionOff(t *testing.T) {
	w := newWorld(t, 1, 20)
	w.cfg.Retention = eoa.Retention{}
	e := w.executor(t, w.store, w.chain)
	require.NoError(t, w.submitAll(e))
	w.finish(t, e)
	w.now = w.now.Add(10_000 * time.Hour)
	w.submit(t, e, request("late"))
	w.steps(t, e, 60)
	require.Equal(t, 21, w.listed(t))
	for _, r := range []eoa.Retention{{Age: -1}, {Count: -1}, {EventAge: -1}} {
		w.cfg.Retention = r
		_, err := eoa.New(w.cfg, w.account, w.store, w.chain, w.signer)
		require.ErrorIs(t, err, eoa.ErrInvalidConfig)
	}
}

// interrupted is a key-value store that calls f once, behind a read.
type interrupted struct {
	kvstore.KV
	f func()
}

func (k *interrupted) Get(ctx context.Context, keys ...[]byte) ([][]byte, error) {
	out, err := k.KV.Get(ctx, keys...)
	if f := k.f; f != nil {
		k.f = nil
		f()
	}
	return out, err
}

// A record is dropped while it is read. It is found with the state that is left
// of it.
func TestGetWhileARecordIsDropped(t *testing.T) {
	w := newWorld(t, 1, 1)
	kv := &interrupted{KV: memstore.NewKV()}
	w.store = kvstore.New(kv)
	w.cfg.Retention.Age = time.Hour
	e := w.executor(t, w.store, w.chain)
	require.NoError(t, w.submitAll(e))
	w.finish(t, e)
	w.now = w.now.Add(2 * time.Hour)
	w.submit(t, e, request("wakes the account"))
	kv.f = func() { w.steps(t, e, 40) }
	r, err := w.store.Get(context.Background(), w.account, w.keys[0])
	require.NoError(t, err)
	require.Equal(t, eoa.Final, r.State)
	require.Empty(t, r.Attempts, "dropped")
}
