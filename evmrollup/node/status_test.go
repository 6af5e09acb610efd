package node

import (
	"context"
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/evmrollup"
	"github.com/jamq/jamq/evmrollup/store"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/jamtest"
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

// The outcome of transactions is known after restarts, which rewrite the journal.
func TestStatusAcrossRestarts(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		cfg := DefaultConfig(jamq.Tiny(), jamq.Tiny().SlotDuration, 1)
		cfg.JAM.FinalityLag = 10_000 // nothing becomes final
		disk := store.NewMemory()
		n, err := reopen(cfg, disk)
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
			n, err = reopen(cfg, disk)
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
			require.NoError(t, n.store.Close())
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

// lose sets the share of submissions that are lost.
func lose(t *testing.T, n *Node, share float64) {
	require.NoError(t, n.Simulation().ChangeFaults(func(f *jamtest.Faults) { f.LossProbability = share }))
}

// T5 on the whole road: all submissions are lost while ten senders keep 64
// transactions each in the pool, blocks fail, and the chain is repaired. Each
// acknowledged transaction is in exactly one block that the test reads itself.
// Before, most of those in failed blocks were gone.
func TestT5LossThenRepair(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		cfg := DefaultConfig(jamq.Tiny(), jamq.Tiny().SlotDuration, 3)
		cfg.JAM.FinalityLag, cfg.MaxTxsPerBundle, cfg.MaxPool = 6, 16, 500
		n, err := New(cfg)
		require.NoError(t, err)
		stop := run(t, n)
		defer stop()
		lose(t, n, 1)
		s := &senders{t: t, node: n}
		start := n.JAMSlot()
		const most = 400 // slots; when bundles fail is a matter of the queue's configuration
		bubble.Await(t, look, func() bool {
			s.fill()
			return n.ReplacedBlocks() > 20 || n.JAMSlot() > start+most
		}, "blocks are thrown away")
		t.Logf("%d transactions acknowledged, %d blocks thrown away, pool %+v", len(s.acked), n.ReplacedBlocks(), n.PoolStats())
		lose(t, n, 0)
		require.NoError(t, n.CheckPool())
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
		cfg.JAM.FinalityLag, cfg.MaxTxsPerBundle, cfg.MaxPool = 6, 16, 300
		disk := store.NewMemory()
		s := &senders{t: t}
		for _, caps := range [][2]int{{300, 64}, {100, 16}, {20, 2}} {
			cfg.MaxPool, cfg.MaxPerSender = caps[0], caps[1]
			n, err := reopen(cfg, disk)
			require.NoError(t, err)
			require.NoError(t, n.CheckPool())
			s.node = n
			for _, tx := range s.acked {
				require.NotEqual(t, evmrollup.TransactionStatus{}, n.TransactionStatus(tx.Hash()), "%s", tx.Hash())
			}
			lose(t, n, 1)
			stop := run(t, n)
			replaced := n.ReplacedBlocks()
			bubble.Await(t, look, func() bool { return n.JAMSlot() > 0 }, "the first slot")
			start := n.JAMSlot()
			bubble.Await(t, look, func() bool {
				s.fill()
				return n.ReplacedBlocks() > replaced || n.JAMSlot() > start+200
			}, "blocks are thrown away")
			t.Logf("caps %v: %d acknowledged, %d blocks thrown away, pool %+v", caps, len(s.acked), n.ReplacedBlocks(), n.PoolStats())
			if caps[0] > 20 {
				stop()
				continue
			}
			lose(t, n, 0)
			s.allFinal()
			stop()
		}
	})
}

// A node that has a transaction is drained when it has run.
func TestDrainBeforeRun(t *testing.T) {
	n, err := New(DefaultConfig(jamq.Tiny(), 50*time.Millisecond, 1))
	require.NoError(t, err)
	require.NoError(t, n.SendTransaction(pay(t, n, 0, 0, 1)))
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, n.Drain(ended), context.Canceled)

	drained := make(chan error, 1)
	go func() { drained <- n.Drain(t.Context()) }()
	defer run(t, n)()
	require.NoError(t, <-drained)
	require.EqualValues(t, 1, n.Resolve(rpc.FinalizedBlockNumber).NumberU64())
}
