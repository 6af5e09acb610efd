package evmrollup

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/mempool"
	"github.com/jamq/jamq/txpool"
)

// recovered returns a rollup that saves its changes with the given function.
func recovered(t *testing.T, save func() error) *rollup {
	t.Helper()
	return recoveredWith(t, testConfig(), save)
}

func recoveredWith(t *testing.T, cfg Config, save func() error) *rollup {
	t.Helper()
	c, err := New(cfg)
	require.NoError(t, err)
	r, err := c.Rollup()
	require.NoError(t, err)
	require.NoError(t, r.(*rollup).Recovered(t.Context(), save))
	return r.(*rollup)
}

func keepNothing() error { return nil }

// propose proposes the next block.
func (r *rollup) propose(t *testing.T) builder.Block[*Block] {
	t.Helper()
	r.SlotBegan()
	parent := r.ledger.Head()
	block, root, err := r.Propose(t.Context(), parent.NumberU64()+1)
	require.NoError(t, err)
	return builder.Block[*Block]{Number: block.NumberU64(), PreRoot: parent.Root(), Root: root, Body: block}
}

// addBlock proposes the next block and applies it.
func (r *rollup) addBlock(t *testing.T) builder.Block[*Block] {
	t.Helper()
	b := r.propose(t)
	require.NoError(t, r.Apply(t.Context(), b))
	return b
}

// A transaction that the executor refuses while a block is made has a reason.
// Here the authorization of another account, which runs first, uses up its
// nonce.
func TestStatusOfOneThatCannotBeExecuted(t *testing.T) {
	r := recovered(t, keepNothing)
	victim := pay(0, 0, 1)
	require.NoError(t, r.SendTransaction(victim))
	key, _ := user(0)
	auth, err := types.SignSetCode(key, types.SetCodeAuthorization{ChainID: *uint256.MustFromBig(chainID), Address: common.Address{2}})
	require.NoError(t, err)
	key, _ = user(1)
	first := types.MustSignNewTx(key, types.LatestSignerForChainID(chainID), &types.SetCodeTx{
		ChainID: uint256.MustFromBig(chainID), GasTipCap: uint256.NewInt(5 * params.GWei), GasFeeCap: uint256.NewInt(20 * params.GWei),
		Gas: 100_000, To: common.Address{1}, AuthList: []types.SetCodeAuthorization{auth},
	})
	require.NoError(t, r.SendTransaction(first))

	before := time.Now()
	block := r.propose(t).Body
	require.Len(t, block.Transactions(), 1)
	require.Equal(t, first.Hash(), block.Transactions()[0].Hash())
	d := r.TransactionStatus(victim.Hash()).Departure
	require.NotNil(t, d)
	require.ErrorContains(t, d.Reason, "nonce too low")
	require.False(t, d.At.Before(before), "%v is before %v", d.At, before)
	require.False(t, d.At.After(time.Now()))
	require.Equal(t, TransactionStatus{}, r.TransactionStatus(common.Hash{1}))
}

// While a failed block returns to the pool, the chain takes no transaction and
// answers no question about nonces: the account is as before the block, and
// its transactions are in no place. Once a sender's next transaction, which
// seemed to be behind a gap, was dropped from a full queue.
func TestNothingIsTakenWhileABlockReturns(t *testing.T) {
	cfg, slow := testConfig(), &pausing{returning: make(chan struct{}), goOn: make(chan struct{})}
	cfg.Logger = slog.New(slow)
	r := recoveredWith(t, cfg, keepNothing)
	first, second := pay(0, 0, 1), pay(0, 1, 1)
	require.NoError(t, r.SendTransaction(first))
	block := r.propose(t)
	require.NoError(t, r.Apply(t.Context(), block))
	require.NotNil(t, r.TransactionStatus(first.Hash()).Block)

	slow.now.Store(true)
	undone := make(chan error, 1)
	go func() { undone <- r.Undo(t.Context(), block) }()
	<-slow.returning
	var answered sync.WaitGroup
	var sent error
	var nonce uint64
	var pooled bool
	began := make(chan struct{}, 3)
	_, address := user(0)
	for _, ask := range []func(){
		func() { sent = r.SendTransaction(second) },
		func() { nonce, _ = r.NextNonce(address) },
		func() { _, pooled = r.Pooled(first.Hash()) },
	} {
		answered.Go(func() { began <- struct{}{}; ask() })
	}
	for range cap(began) {
		<-began
	}
	for range 1000 {
		runtime.Gosched() // without the lock, the calls would end now
	}
	require.Zero(t, nonce)
	require.False(t, pooled)
	close(slow.goOn)
	require.NoError(t, <-undone)
	answered.Wait()
	require.NoError(t, sent)
	require.NotZero(t, nonce)
	require.True(t, pooled)
	require.Equal(t, txpool.StatusPending, r.TransactionStatus(second.Hash()).Pool)
}

// pausing is a slog.Handler that waits once, when the pool reports an undone block.
type pausing struct {
	slog.Handler
	now             atomic.Bool
	returning, goOn chan struct{}
}

func (p *pausing) Enabled(context.Context, slog.Level) bool { return true }

func (p *pausing) Handle(context.Context, slog.Record) error {
	if p.now.Swap(false) {
		close(p.returning)
		<-p.goOn
	}
	return nil
}

// Before a builder has recovered the chain, it takes no transaction.
func TestTakesNothingBeforeRecovery(t *testing.T) {
	c, err := New(testConfig())
	require.NoError(t, err)
	require.ErrorIs(t, c.SendTransaction(pay(0, 0, 1)), mempool.ErrNotRecovered)
}

// A transaction that was accepted is found at each moment of its way into a block.
func TestIsAlwaysFound(t *testing.T) {
	tx := pay(0, 0, 1)
	r := recovered(t, keepNothing)
	require.NoError(t, r.SendTransaction(tx))
	block := r.propose(t)
	begun, done, lost := make(chan struct{}), make(chan struct{}), make(chan bool)
	go func() {
		close(begun)
		for {
			select {
			case <-done:
				lost <- false
				return
			default:
				if r.TransactionStatus(tx.Hash()) == (TransactionStatus{}) {
					lost <- true
					return
				}
			}
		}
	}()
	<-begun
	for range 100 {
		require.NoError(t, r.Apply(t.Context(), block))
		require.NotNil(t, r.TransactionStatus(tx.Hash()).Block)
		require.NoError(t, r.Undo(t.Context(), block))
	}
	close(done)
	require.False(t, <-lost)
}
