package eoa_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
)

// steps runs an executor for some ticks.
func (w *world) steps(t testing.TB, e *eoa.Executor, n int) {
	t.Helper()
	for i := range n {
		_, err := e.Step(context.Background())
		require.NoError(t, err)
		require.NoError(t, e.Check())
		w.tick(i)
	}
}

func (w *world) get(t testing.TB, key string) eoa.Record {
	t.Helper()
	r, err := w.store.Get(context.Background(), w.account, key)
	require.NoError(t, err)
	return r
}

func (w *world) submit(t testing.TB, e *eoa.Executor, q eoa.Request) {
	t.Helper()
	_, err := e.Submit(context.Background(), q)
	require.NoError(t, err)
}

func TestCancel(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, 1, 0)
	w.chain.SetPerBlock(0) // nothing is mined for now
	w.cfg.MaxInFlight, w.cfg.MaxUnsure = 1, 1
	e := w.executor(t, w.store, w.chain)
	w.submit(t, e, request("out"))
	w.submit(t, e, request("waiting"))
	w.steps(t, e, 2)
	require.Equal(t, eoa.Broadcast, w.get(t, "out").State)
	require.NoError(t, e.Cancel(ctx, "waiting"))
	require.NoError(t, e.Cancel(ctx, "out"))
	require.ErrorIs(t, e.Cancel(ctx, "unknown"), eoa.ErrUnknownRequest)
	w.steps(t, e, 2)
	require.Equal(t, eoa.Cancelled, w.get(t, "waiting").State, "it had no nonce")
	require.Equal(t, eoa.Broadcast, w.get(t, "out").State, "it may be out: what is mined counts")
	w.chain.SetPerBlock(10)
	w.steps(t, e, 60)
	r := w.get(t, "out")
	require.Equal(t, eoa.Cancelled, r.State)
	require.Len(t, r.Attempts, 2)
	require.Equal(t, r.Attempts[1].Hash, r.Tx)
	for _, tx := range w.chain.Transactions() {
		require.Empty(t, tx.Data())
	}
	require.NoError(t, e.Cancel(ctx, "out"), "too late is no error")
	w.steps(t, e, 2)
}

// The first transaction is mined although its cancellation was sent. The record
// shows that.
func TestCancelTooLate(t *testing.T) {
	w := newWorld(t, 1, 0)
	e := w.executor(t, w.store, w.chain)
	w.chain.SetPerBlock(0)
	w.submit(t, e, request("a"))
	w.steps(t, e, 2)
	w.chain.SetRefuse(func(*types.Transaction) string { return "replacement transaction underpriced" })
	require.NoError(t, e.Cancel(context.Background(), "a"))
	w.steps(t, e, 2)
	require.Len(t, w.get(t, "a").Attempts, 2)
	w.chain.SetPerBlock(10)
	w.steps(t, e, 60)
	require.Equal(t, eoa.Final, w.get(t, "a").State)
	require.Equal(t, w.get(t, "a").Attempts[0].Hash, w.get(t, "a").Tx)
}

func TestReplace(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.chain.SetPerBlock(0)
	e := w.executor(t, w.store, w.chain)
	w.submit(t, e, request("a"))
	w.steps(t, e, 2)
	payload := request("b")
	require.NoError(t, e.Replace(context.Background(), "a", payload))
	require.ErrorIs(t, e.Replace(context.Background(), "a", eoa.Request{Gas: 1}), eoa.ErrInvalidRequest)
	w.steps(t, e, 2)
	w.chain.SetPerBlock(10)
	w.steps(t, e, 60)
	r := w.get(t, "a")
	require.Equal(t, eoa.Final, r.State)
	require.Equal(t, 1, r.Bumps)
	txs := w.chain.Transactions()
	require.Len(t, txs, 1)
	require.Equal(t, "b", string(txs[0].Data()))
	_, err := e.Submit(context.Background(), request("a"))
	require.NoError(t, err, "the payload as it was accepted counts")
}

// A person gives up what is in flight. Without force nothing in flight is touched.
func TestReset(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.chain.SetPerBlock(0)
	e := w.executor(t, w.store, w.chain)
	for i := range 3 {
		w.submit(t, e, request(fmt.Sprint(i)))
	}
	w.steps(t, e, 3)
	require.NoError(t, e.ResetNonce(context.Background(), false))
	w.steps(t, e, 2)
	require.EqualValues(t, 3, e.Stats().Next)
	w.chain.LosePool()
	require.NoError(t, e.ResetNonce(context.Background(), true))
	w.steps(t, e, 1)
	require.Equal(t, eoa.Superseded, w.get(t, "1").State)
	require.True(t, w.told(t, eoa.EventReset))
	w.submit(t, e, request("new"))
	w.chain.SetPerBlock(10)
	w.steps(t, e, 60)
	require.Equal(t, eoa.Final, w.get(t, "new").State)
	require.Zero(t, w.get(t, "new").Nonce)
}

// At its price limit a request waits, with an event. With a higher limit it
// goes on.
func TestFeeCapHolds(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.cfg.Fees.StallTimeout = 2 * time.Second
	e := w.executor(t, w.store, w.chain)
	q := request("a")
	q.MaxFee = uint256.NewInt(300)
	w.submit(t, e, q)
	_, err := e.Step(context.Background())
	require.NoError(t, err)
	w.chain.SetBaseFee(500)
	w.steps(t, e, 60)
	r := w.get(t, "a")
	require.True(t, r.Capped)
	require.Equal(t, eoa.Broadcast, r.State)
	for _, a := range r.Attempts {
		require.False(t, q.MaxFee.Lt(&a.Fees.Cap), "%v", &a.Fees.Cap)
	}
	require.True(t, w.told(t, eoa.EventCapped))
	q.MaxFee = uint256.NewInt(2000)
	require.NoError(t, e.Replace(context.Background(), "a", q))
	w.steps(t, e, 60)
	require.Equal(t, eoa.Final, w.get(t, "a").State)
}

// A request that the account cannot pay is skipped; the others continue.
func TestUnaffordableIsNoGate(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.chain.SetBalance(w.account.Address, uint256.NewInt(1e8))
	e := w.executor(t, w.store, w.chain)
	big := request("big")
	big.Value = uint256.NewInt(1e9)
	w.submit(t, e, big)
	w.submit(t, e, request("small"))
	w.steps(t, e, 60)
	require.Equal(t, eoa.Pending, w.get(t, "big").State)
	require.Equal(t, eoa.Final, w.get(t, "small").State)
	w.chain.SetBalance(w.account.Address, uint256.NewInt(1e11))
	w.steps(t, e, 60)
	require.Equal(t, eoa.Final, w.get(t, "big").State)
}

func TestDeadline(t *testing.T) {
	w := newWorld(t, 1, 0)
	e := w.executor(t, w.store, w.chain)
	q := request("late")
	q.Deadline = w.now.Add(-time.Second)
	w.submit(t, e, q)
	w.steps(t, e, 2)
	require.Equal(t, eoa.Failed, w.get(t, "late").State)
	require.Equal(t, "deadline passed", w.get(t, "late").Reason)
}

// Members of a group keep their order, and one whose gas is estimated waits for those before it.
func TestGroup(t *testing.T) {
	w := newWorld(t, 1, 0)
	e := w.executor(t, w.store, w.chain)
	for i := range 4 {
		q := request(fmt.Sprint("g", i))
		q.Group = "g"
		if i == 1 {
			q.Gas = 60_000
		}
		w.submit(t, e, q)
	}
	w.submit(t, e, request("alone"))
	_, err := e.Step(context.Background())
	require.NoError(t, err)
	require.Equal(t, eoa.Broadcast, w.get(t, "g0").State)
	require.Equal(t, eoa.Broadcast, w.get(t, "g1").State, "it needs no estimate")
	require.Equal(t, eoa.Pending, w.get(t, "g2").State)
	require.Equal(t, eoa.Broadcast, w.get(t, "alone").State)
	w.steps(t, e, 80)
	last := uint64(0)
	for i := range 4 {
		r := w.get(t, fmt.Sprint("g", i))
		require.Equal(t, eoa.Final, r.State)
		require.True(t, i == 0 || r.Nonce > last)
		last = r.Nonce
	}
}

// Nonces without a known transaction are filled all at once, when they hold up
// the account.
func TestE2NoGap(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.cfg.Fees.StallTimeout = 10 * time.Second
	for n := range uint64(4) { // foreign ones, forgotten by the node later
		w.chain.Inject(w.foreign(t, n))
	}
	e := w.executor(t, w.store, w.chain)
	w.submit(t, e, request("a"))
	for range 2 { // the second look agrees with the first
		w.step(t, e)
	}
	require.EqualValues(t, 4, w.get(t, "a").Nonce)
	w.chain.LosePool()
	w.steps(t, e, 5)
	require.Zero(t, e.Stats().Free, "they may yet come")
	w.steps(t, e, 100)
	require.Equal(t, eoa.Final, w.get(t, "a").State)
	require.Len(t, w.chain.Transactions(), 5)
	require.True(t, w.told(t, eoa.EventNoop))
}

// wrongSigner signs another transaction, or with another key.
type wrongSigner struct {
	eoa.Signer
	change func(*types.Transaction) *types.Transaction
}

func (s wrongSigner) Sign(ctx context.Context, a common.Address, tx *types.Transaction) (*types.Transaction, error) {
	return s.Signer.Sign(ctx, a, s.change(tx))
}

// A chain id that no chain has is refused when it is used.
func TestKeySignerWithoutChain(t *testing.T) {
	key := crypto.ToECDSAUnsafe([]byte{1})
	_, err := eoa.NewKeySigner(0, key).Sign(context.Background(), crypto.PubkeyToAddress(key.PublicKey), types.NewTx(&types.LegacyTx{}))
	require.ErrorIs(t, err, eoa.ErrSigner)
}

func TestSignerIsChecked(t *testing.T) {
	w := newWorld(t, 1, 0)
	for name, change := range map[string]func(*types.Transaction) *types.Transaction{
		"nonce": func(tx *types.Transaction) *types.Transaction {
			return types.NewTx(&types.DynamicFeeTx{ChainID: tx.ChainId(), Nonce: tx.Nonce() + 1, Gas: tx.Gas(), To: tx.To(), Value: tx.Value(), Data: tx.Data(),
				GasTipCap: tx.GasTipCap(), GasFeeCap: tx.GasFeeCap()})
		},
		"kind": func(tx *types.Transaction) *types.Transaction {
			return types.NewTx(&types.LegacyTx{Nonce: tx.Nonce(), Gas: tx.Gas(), To: tx.To(), Value: tx.Value(), Data: tx.Data(), GasPrice: tx.GasFeeCap()})
		},
	} {
		e, err := eoa.New(w.cfg, w.account, w.store, w.chain, wrongSigner{w.signer, change})
		require.NoError(t, err)
		w.submit(t, e, request("a"))
		_, err = e.Step(context.Background())
		require.NoError(t, err)
		require.Equal(t, eoa.Pending, w.get(t, "a").State)
		require.Contains(t, w.get(t, "a").Reason, eoa.ErrSigner.Error(), name)
		w.now = w.now.Add(time.Minute)
		require.NoError(t, e.Release(context.Background()))
	}
	require.Zero(t, w.chain.Pooled())
	other := newWorld(t, 2, 0)
	e, err := eoa.New(w.cfg, w.account, w.store, w.chain, other.signer)
	require.NoError(t, err)
	_, err = e.Step(context.Background())
	require.NoError(t, err)
	require.Contains(t, w.get(t, "a").Reason, "no key for")
	require.Zero(t, w.chain.Pooled())
}

// All kinds are sent, and land.
func TestKinds(t *testing.T) {
	w := newWorld(t, 1, 0)
	e := w.executor(t, w.store, w.chain)
	for k := range eoa.SetCode + 1 {
		q := request(fmt.Sprint(k))
		q.Kind = k
		if k == eoa.SetCode {
			q.Authorizations = []types.SetCodeAuthorization{{Address: common.Address{1}}}
		}
		w.submit(t, e, q)
		w.keys = append(w.keys, q.Key)
	}
	w.finish(t, e)
	w.exactlyOnce(t)
	for i, tx := range w.chain.Transactions() {
		require.EqualValues(t, []uint8{types.DynamicFeeTxType, types.LegacyTxType, types.AccessListTxType, types.SetCodeTxType}[i], tx.Type())
	}
}

func TestRequestValidate(t *testing.T) {
	for name, q := range map[string]eoa.Request{
		"key of 0": {}, "begins with": {Key: "eoa/x"}, "UTF-8": {Key: "\xff"}, "kind 9": {Key: "a", Kind: 9}, "gas 1": {Key: "a", Gas: 1},
		"have an access list": {Key: "a", Kind: eoa.Legacy, AccessList: types.AccessList{{}}}, "authorizations": {Key: "a", Kind: eoa.SetCode},
		"data of": {Key: "a", Data: make([]byte, 128<<10+1)}, "deadline in the year 10000": {Key: "a", Deadline: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		err := q.Validate()
		require.ErrorIs(t, err, eoa.ErrInvalidRequest)
		require.ErrorContains(t, err, name)
	}
}

func TestConfigValidate(t *testing.T) {
	for field, change := range map[string]func(*eoa.Config){
		"Fees": func(c *eoa.Config) { c.Fees.StallTimeout = 0 }, "Confirmations": func(c *eoa.Config) { c.Confirmations = 0 },
		"MaxInFlight": func(c *eoa.Config) { c.MaxInFlight = 0 }, "Batch": func(c *eoa.Config) { c.Batch = 1001 },
		"LeaseFor": func(c *eoa.Config) { c.LeaseFor = 1 }, "GasMargin": func(c *eoa.Config) { c.GasMargin = 1001 }, "Poll": func(c *eoa.Config) { c.Poll = -1 },
	} {
		c := eoa.DefaultConfig()
		require.NoError(t, c.Validate())
		change(&c)
		require.ErrorIs(t, c.Validate(), eoa.ErrInvalidConfig)
		require.ErrorContains(t, c.Validate(), field)
	}
}

// A request at its price limit goes on when the operator raises the limit.
func TestRaisedLimit(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.cfg.Fees.StallTimeout = 2 * time.Second
	w.cfg.Fees.MaxFee = uint256.NewInt(300)
	e := w.executor(t, w.store, w.chain)
	w.submit(t, e, request("a"))
	w.step(t, e)
	w.chain.SetBaseFee(500)
	w.steps(t, e, 60)
	require.True(t, w.get(t, "a").Capped)
	require.NoError(t, e.Release(context.Background()))
	w.cfg.Fees.MaxFee = nil
	w.steps(t, w.executor(t, w.store, w.chain), 60)
	require.Equal(t, eoa.Final, w.get(t, "a").State)
	capped := 0
	events, err := w.store.Events(context.Background(), w.account, 0, 1000)
	require.NoError(t, err)
	for i := range events {
		if events[i].Kind == eoa.EventCapped {
			capped++
		}
	}
	require.Equal(t, 1, capped, "the user is told once")
}

// Time without transactions in flight does not count towards a stall.
func TestNoStallWithNothingInFlight(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.cfg.Fees.StallTimeout, w.cfg.Rebroadcast = 20*time.Second, 5*time.Second
	c := &losesFirst{Chain: w.chain}
	e := w.executor(t, w.store, c)
	w.submit(t, e, request("a"))
	for range 3 {
		w.step(t, e)
		w.chain.Mine()
	}
	require.NotZero(t, w.get(t, "a").Height)
	for range 20 { // nothing is final yet
		w.step(t, e)
	}
	c.lost = 1 << 20
	w.chain.SetPerBlock(0)
	w.submit(t, e, request("b"))
	for range 5 {
		w.step(t, e)
	}
	require.Len(t, w.get(t, "b").Attempts, 1)
	for range 9 {
		w.step(t, e)
	}
	require.Len(t, w.get(t, "b").Attempts, 2)
}

// A transaction is mined although no send was answered. EventSubmitted comes
// before EventMined.
func TestSubmittedIsToldBeforeMined(t *testing.T) {
	w := newWorld(t, 1, 1)
	e := w.executor(t, w.store, &losesFirst{Chain: w.chain, lost: 1 << 20})
	require.NoError(t, w.submitAll(e))
	w.finish(t, e)
	events, err := w.store.Events(context.Background(), w.account, 0, 10)
	require.NoError(t, err)
	require.Equal(t, eoa.EventSubmitted, events[0].Kind)
	require.Equal(t, eoa.EventMined, events[1].Kind)
}

// The answer to the first send is lost, and a replacement is signed before a node
// confirms anything. EventBumped comes first, because the executor only learns
// later that a node has the transaction.
func TestBumpedMayBeToldBeforeSubmitted(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.cfg.Fees.StallTimeout, w.cfg.Rebroadcast = 20*time.Second, 5*time.Second
	c := &losesFirst{Chain: w.chain, lost: 1 << 20}
	e := w.executor(t, w.store, c)
	require.NoError(t, w.submitAll(e))
	w.chain.SetPerBlock(0)
	w.steps(t, e, 60)
	require.Greater(t, len(w.get(t, w.keys[0]).Attempts), 1)
	c.lost = 0
	w.chain.SetPerBlock(1 << 20)
	w.finish(t, e)
	events, err := w.store.Events(context.Background(), w.account, 0, 100)
	require.NoError(t, err)
	var kinds []eoa.EventKind
	for i := range events {
		kinds = append(kinds, events[i].Kind)
	}
	submitted := slices.Index(kinds, eoa.EventSubmitted)
	require.Positive(t, submitted)
	for _, kind := range kinds[:submitted] {
		require.Equal(t, eoa.EventBumped, kind)
	}
	require.Equal(t, []eoa.EventKind{eoa.EventSubmitted, eoa.EventMined, eoa.EventConfirmed, eoa.EventFinal}, kinds[submitted:])
}
