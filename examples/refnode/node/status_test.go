package node

import (
	"context"
	"errors"
	"math/big"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/txpool"
)

// pay signs a transfer of a development account with a tip in gwei.
func pay(t *testing.T, n *Node, account int, nonce uint64, tip int64) *types.Transaction {
	t.Helper()
	tx, err := types.SignNewTx(n.Accounts()[account].Key, types.LatestSignerForChainID(n.cfg.ChainID), &types.DynamicFeeTx{
		ChainID: n.cfg.ChainID, Nonce: nonce, GasTipCap: big.NewInt(tip * params.GWei), GasFeeCap: big.NewInt((10 + tip) * params.GWei),
		Gas: 21_000, To: &common.Address{1}, Value: big.NewInt(1),
	})
	require.NoError(t, err)
	return tx
}

// run runs a node until the func that it returns is called.
func run(t *testing.T, n *Node) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		require.NoError(t, <-ended)
	}
}

// A transaction that the executor refuses while a block is made has a reason.
// Here the authorization of another account, which runs first, uses up its
// nonce.
func TestStatusOfOneThatCannotBeExecuted(t *testing.T) {
	n, err := New(DefaultConfig(jamq.Tiny(), time.Second, 1))
	require.NoError(t, err)
	victim := pay(t, n, 0, 0, 1)
	require.NoError(t, n.SendTransaction(victim))
	auth, err := types.SignSetCode(n.Accounts()[0].Key, types.SetCodeAuthorization{ChainID: *uint256.MustFromBig(n.cfg.ChainID), Address: common.Address{2}})
	require.NoError(t, err)
	first, err := types.SignNewTx(n.Accounts()[1].Key, types.LatestSignerForChainID(n.cfg.ChainID), &types.SetCodeTx{
		ChainID: uint256.MustFromBig(n.cfg.ChainID), GasTipCap: uint256.NewInt(5 * params.GWei), GasFeeCap: uint256.NewInt(20 * params.GWei),
		Gas: 100_000, To: common.Address{1}, AuthList: []types.SetCodeAuthorization{auth},
	})
	require.NoError(t, err)
	require.NoError(t, n.SendTransaction(first))

	parent := n.ledger.head()
	session := n.pool.Build(t.Context(), txpool.Budget{})
	before := time.Now()
	block, err := n.execute(parent, n.nextHeader(parent), session)
	require.NoError(t, err)
	require.Len(t, block.Transactions(), 1)
	require.Equal(t, first.Hash(), block.Transactions()[0].Hash())
	d := n.TransactionStatus(victim.Hash()).Departure
	require.NotNil(t, d)
	require.ErrorContains(t, d.Reason, "nonce too low")
	require.False(t, d.At.Before(before), "%v is before %v", d.At, before)
	require.False(t, d.At.After(time.Now()))
	require.Equal(t, TransactionStatus{}, n.TransactionStatus(common.Hash{1}))
}

// While failed blocks return to the pool, the node takes no transaction and
// answers no question about nonces: the account is as before these blocks, and
// their transactions are in no place. Once a sender's next transaction, which
// seemed to be behind a gap, was dropped from a full queue.
func TestNothingIsTakenWhileBlocksReturn(t *testing.T) {
	n, err := New(DefaultConfig(jamq.Tiny(), time.Second, 1))
	require.NoError(t, err)
	first, second := pay(t, n, 0, 0, 1), pay(t, n, 0, 1, 1)
	require.NoError(t, n.SendTransaction(first))
	parent := n.ledger.head()
	session := n.pool.Build(t.Context(), txpool.Budget{})
	block, err := n.execute(parent, n.nextHeader(parent), session)
	require.NoError(t, err)
	require.NoError(t, n.ledger.append(block, 1))
	require.NoError(t, session.Commit())
	n.pool.Reset(txpool.Head{Included: []txpool.Block{poolBlock(block)}, BaseFee: n.nextHeader(block).BaseFee})

	n.moving.Lock()
	n.ledger.truncate(block.NumberU64())
	var answered sync.WaitGroup
	var sent error
	var nonce uint64
	var pooled bool
	began := make(chan struct{}, 3)
	for _, ask := range []func(){
		func() { sent = n.SendTransaction(second) },
		func() { nonce, _ = n.NextNonce(n.Accounts()[0].Address) },
		func() { _, pooled = n.Pooled(first.Hash()) },
	} {
		answered.Go(func() { began <- struct{}{}; ask() })
	}
	for range cap(began) {
		<-began
	}
	for range 1000 {
		runtime.Gosched() // without the lock, the calls would end now
	}
	require.Zero(t, n.pool.Size())
	n.pool.Reset(txpool.Head{Reverted: []txpool.Block{poolBlock(block)}, BaseFee: n.nextHeader(parent).BaseFee})
	n.moving.Unlock()
	answered.Wait()
	require.NoError(t, sent)
	require.NotZero(t, nonce)
	require.True(t, pooled)
	require.Equal(t, txpool.StatusPending, n.TransactionStatus(second.Hash()).Pool)
}

// The outcome of transactions is known after restarts, which rewrite the journal.
func TestStatusAcrossRestarts(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		cfg := DefaultConfig(jamq.Tiny(), jamq.Tiny().SlotDuration, 1)
		cfg.JAM.FinalityLag = 10_000 // nothing becomes final
		cfg.DataDir = t.TempDir()
		n, err := New(cfg)
		require.NoError(t, err)
		replaced, removed, included := pay(t, n, 0, 1, 1), pay(t, n, 1, 1, 1), pay(t, n, 2, 0, 1)
		replacement, waiting := pay(t, n, 0, 1, 20), pay(t, n, 3, 1, 1)
		for _, tx := range []*types.Transaction{replaced, removed, included, replacement, waiting} {
			require.NoError(t, n.SendTransaction(tx))
		}
		require.NoError(t, n.RemovePooled(removed.Hash()))
		stop := run(t, n)
		bubble.Await(t, look, func() bool { return n.TransactionStatus(included.Hash()).Block != nil }, "the transaction is in a block")
		at := n.TransactionStatus(removed.Hash()).Departure.At
		stop()
		for range 2 {
			n, err = New(cfg)
			require.NoError(t, err)
			d := n.TransactionStatus(replaced.Hash()).Departure
			require.NotNil(t, d)
			require.Equal(t, replacement.Hash(), d.By)
			d = n.TransactionStatus(removed.Hash()).Departure
			require.NotNil(t, d)
			require.ErrorIs(t, d.Reason, txpool.ErrRemoved)
			require.True(t, at.Equal(d.At))
			require.Equal(t, txpool.StatusPending, n.TransactionStatus(included.Hash()).Pool, "its block never happened")
			require.Equal(t, txpool.StatusQueued, n.TransactionStatus(waiting.Hash()).Pool)
			require.NoError(t, n.store.close())
		}
	})
}

// look is the virtual time between two looks at a node.
const look = 6 * time.Second / 8

// senders keep as many transactions in the pool as it takes of each.
type senders struct {
	t      *testing.T
	node   *Node
	nonces [numAccounts]uint64
	acked  []*types.Transaction
}

// fill sends until the pool takes no more.
func (s *senders) fill() {
	s.t.Helper()
	for i := range s.nonces {
		for {
			tx := pay(s.t, s.node, i, s.nonces[i], 1)
			if err := s.node.SendTransaction(tx); err != nil {
				if !errors.Is(err, txpool.ErrSenderLimit) && !errors.Is(err, txpool.ErrNonceTooHigh) && !errors.Is(err, txpool.ErrPoolFull) {
					s.t.Error(err)
				}
				break
			}
			s.nonces[i]++
			s.acked = append(s.acked, tx)
		}
	}
}

// allFinal waits until each acknowledged transaction is in a final block, and reads all of them:
// each transaction is in exactly one.
func (s *senders) allFinal() {
	s.t.Helper()
	n := s.node
	final := func() uint64 { return n.Resolve(rpc.FinalizedBlockNumber).NumberU64() }
	bubble.Await(s.t, look, func() bool {
		for _, tx := range s.acked {
			if at := n.TransactionStatus(tx.Hash()); at.Block == nil || at.Block.NumberU64() > final() {
				return false
			}
		}
		return true
	}, "each transaction is final")
	found := make(map[common.Hash]int)
	for number := uint64(1); number <= final(); number++ {
		for _, tx := range n.Resolve(rpc.BlockNumber(number)).Transactions() {
			found[tx.Hash()]++
		}
	}
	require.Len(s.t, found, len(s.acked))
	for _, tx := range s.acked {
		require.Equal(s.t, 1, found[tx.Hash()], "%s", tx.Hash())
	}
}

// T5 on the whole road: all submissions are lost while ten senders keep 64
// transactions each in the pool, blocks fail, and the chain is repaired. Each
// acknowledged transaction is in exactly one block that the test reads itself.
// Before, most of those in failed blocks were gone.
func TestT5LossThenRepair(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		cfg := DefaultConfig(jamq.Tiny(), jamq.Tiny().SlotDuration, 3)
		cfg.Lab, cfg.MaxTxsPerBundle, cfg.MaxPool = true, 16, 500
		n, err := New(cfg)
		require.NoError(t, err)
		stop := run(t, n)
		defer stop()
		require.NoError(t, n.Lab().SetLoss(1))
		s := &senders{t: t, node: n}
		start := n.JAMSlot()
		const most = 400 // slots; when bundles fail is a matter of the queue's configuration
		bubble.Await(t, look, func() bool {
			s.fill()
			return n.ReplacedBlocks() > 20 || n.JAMSlot() > start+most
		}, "blocks are thrown away")
		t.Logf("%d transactions acknowledged, %d blocks thrown away, pool %+v", len(s.acked), n.ReplacedBlocks(), n.pool.Stats())
		require.NoError(t, n.Lab().SetLoss(0))
		require.NoError(t, n.pool.Check())
		s.allFinal()
		require.Empty(t, n.Service().Duplicates)
		require.Empty(t, n.Service().Gaps)
	})
}

// T5 with restarts: blocks fail, the node restarts twice with smaller caps
// while all submissions are lost, and the chain is repaired. Each acknowledged
// transaction is in exactly one block.
func TestT5RestartsWithSmallerCaps(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		cfg := DefaultConfig(jamq.Tiny(), jamq.Tiny().SlotDuration, 3)
		cfg.Lab, cfg.MaxTxsPerBundle, cfg.MaxPool, cfg.DataDir = true, 16, 300, t.TempDir()
		s := &senders{t: t}
		for _, caps := range [][2]int{{300, 64}, {100, 16}, {20, 2}} {
			cfg.MaxPool, cfg.MaxPerSender = caps[0], caps[1]
			n, err := New(cfg)
			require.NoError(t, err)
			require.NoError(t, n.pool.Check())
			s.node = n
			for _, tx := range s.acked {
				require.NotEqual(t, TransactionStatus{}, n.TransactionStatus(tx.Hash()), "%s", tx.Hash())
			}
			require.NoError(t, n.Lab().SetLoss(1))
			stop := run(t, n)
			replaced := n.ReplacedBlocks()
			bubble.Await(t, look, func() bool { return n.JAMSlot() > 0 }, "the first slot")
			start := n.JAMSlot()
			bubble.Await(t, look, func() bool {
				s.fill()
				return n.ReplacedBlocks() > replaced || n.JAMSlot() > start+200
			}, "blocks are thrown away")
			t.Logf("caps %v: %d acknowledged, %d blocks thrown away, pool %+v", caps, len(s.acked), n.ReplacedBlocks(), n.pool.Stats())
			if caps[0] > 20 {
				stop()
				continue
			}
			require.NoError(t, n.Lab().SetLoss(0))
			s.allFinal()
			stop()
		}
	})
}

// A node that is stopped before it runs is drained when it has started.
func TestDrainBeforeRun(t *testing.T) {
	n, err := New(DefaultConfig(jamq.Tiny(), time.Second, 1))
	require.NoError(t, err)
	drained := make(chan error, 1)
	go func() { drained <- n.Drain(t.Context()) }()
	defer run(t, n)()
	require.NoError(t, <-drained)

	n, err = New(DefaultConfig(jamq.Tiny(), time.Second, 1))
	require.NoError(t, err)
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, n.Drain(ended), context.Canceled)
}
