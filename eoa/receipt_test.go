package eoa_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
)

// receipts is a node that changes the receipts of its chain.
type receipts struct {
	*eoatest.Chain
	change func(*eoa.Receipt)
}

func (c *receipts) Ask(ctx context.Context, q eoa.Questions) (eoa.Answers, error) {
	a, err := c.Chain.Ask(ctx, q)
	for h, r := range a.Receipts {
		c.change(&r)
		a.Receipts[h] = r
	}
	return a, err
}

// A transaction that reverts in a block has its own kind of event, with the names
// of kinds in the JSON, and Handle.Wait returns an error.
func TestRevertedTransactionIsAnEvent(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, 1, 0)
	c := &receipts{w.chain, func(r *eoa.Receipt) { r.Success = false }}
	e := w.executor(t, w.store, c)
	w.submit(t, e, request("bad"))
	w.steps(t, e, 4)
	r, err := e.Handle("bad").Wait(ctx, 1)
	require.ErrorIs(t, err, eoa.ErrReverted)
	require.Equal(t, r.Tx, w.get(t, "bad").Tx)
	w.steps(t, e, 40)
	_, err = e.Handle("bad").Wait(ctx, 0)
	require.ErrorIs(t, err, eoa.ErrReverted)
	require.Equal(t, eoa.Failed, w.get(t, "bad").State)
	c.change = func(*eoa.Receipt) {}
	w.submit(t, e, request("good"))
	w.steps(t, e, 40)
	_, err = e.Handle("good").Wait(ctx, 100)
	require.NoError(t, err)
	late := request("late")
	late.Deadline = w.now
	w.submit(t, e, late)
	w.steps(t, e, 1)
	_, err = e.Handle("late").Wait(ctx, 1)
	require.ErrorIs(t, err, eoa.ErrNotExecuted)

	events, err := w.store.Events(ctx, w.account, 0, 100)
	require.NoError(t, err)
	kinds := map[string][]string{}
	for _, event := range events {
		text, err := json.Marshal(event)
		require.NoError(t, err)
		var fields map[string]any
		require.NoError(t, json.Unmarshal(text, &fields))
		require.Equal(t, event.Kind.String(), fields["kind"])
		require.Equal(t, event.Key == "good" && event.Height > 0, fields["success"], "%s", text)
		kinds[event.Key] = append(kinds[event.Key], event.Kind.String())
		var again eoa.Event
		require.NoError(t, json.Unmarshal(text, &again))
		require.Equal(t, event, again)
	}
	require.Equal(t, []string{"submitted", "mined", "reverted", "confirmed", "failed"}, kinds["bad"])
	require.NotContains(t, kinds["good"], "reverted")
}

// Events of stores of earlier versions have the number of the kind.
func TestEventKindInJSON(t *testing.T) {
	for text, want := range map[string]eoa.EventKind{`4`: eoa.EventMined, `"mined"`: eoa.EventMined, `"reverted"`: eoa.EventReverted, `"EventKind(99)"`: 99, `0`: 0} {
		var k eoa.EventKind
		require.NoError(t, json.Unmarshal([]byte(text), &k), text)
		require.Equal(t, want, k)
	}
	for _, text := range []string{`""`, `"mine"`, `300`, `{}`} {
		require.Error(t, json.Unmarshal([]byte(text), new(eoa.EventKind)), text)
	}
}

// A record has the contract, the price and the logs of the receipt, at most
// 64 KiB of logs. A reorg takes them back.
func TestRecordHasTheReceipt(t *testing.T) {
	w := newWorld(t, 1, 0)
	log := eoa.Log{Address: common.Address{1}, Topics: []common.Hash{{2}, {3}}, Data: make([]byte, 30_000)}
	e := w.executor(t, w.store, &receipts{w.chain, func(r *eoa.Receipt) {
		r.GasPrice, r.Contract, r.Logs = uint256.NewInt(77), &common.Address{9}, []eoa.Log{log, log, log}
	}})
	w.submit(t, e, request("a"))
	for i := 0; w.get(t, "a").State < eoa.Mined; i++ {
		require.Less(t, i, 100)
		w.steps(t, e, 1)
	}
	r := w.get(t, "a")
	require.Equal(t, []eoa.Log{log, log}, r.Logs)
	require.EqualValues(t, 77, r.GasPrice.Uint64())
	require.Equal(t, &common.Address{9}, r.Contract)
	text, err := json.Marshal(r) // a copy, as in a map of records
	require.NoError(t, err)
	var again eoa.Record
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, r.GasPrice, again.GasPrice)
	w.chain.SetPerBlock(0)
	w.chain.Reorg(6)
	for i := 0; w.get(t, "a").State >= eoa.Mined; i++ {
		require.Less(t, i, 100)
		w.steps(t, e, 1)
	}
	r = w.get(t, "a")
	require.Nil(t, r.Contract)
	require.Empty(t, r.Logs)
	require.Nil(t, r.GasPrice)
}
