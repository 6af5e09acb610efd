package rpcapi

import (
	"log/slog"
	"math/big"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/evmrollup"
	"github.com/jamq/jamq/evmrollup/devkeys"
	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/evmrollup/store"
	"github.com/jamq/jamq/pebble/pebbledb"
)

// The data directory of manyLogs has final blocks that only look as if they had been executed.
// The contract 0xcc…n logs in one of n blocks.
const (
	manyBlocks  = 100_000
	txsPerBlock = 10
)

// logging returns the contract that logs in one of n blocks.
func logging(n int) common.Address { return common.BytesToAddress([]byte{0xcc, byte(n >> 8), byte(n)}) }

var loggingIn = []int{1, 100, 1000, 10_000}

// logBlock makes a block on another one.
func logBlock(parent *types.Block, config *params.ChainConfig) *ledger.Block {
	number := int(parent.NumberU64() + 1)
	header := parent.Header()
	header.Number, header.ParentHash, header.Time = big.NewInt(int64(number)), parent.Hash(), parent.Time()+1
	var txs types.Transactions
	var receipts types.Receipts
	for i := range txsPerBlock {
		to := common.Address{1}
		txs = append(txs, types.NewTx(&types.DynamicFeeTx{
			ChainID: config.ChainID, Nonce: uint64(number*txsPerBlock + i), GasFeeCap: big.NewInt(params.GWei), GasTipCap: common.Big1,
			Gas: 30_000, To: &to, Value: common.Big1, V: common.Big1, R: big.NewInt(params.Ether), S: big.NewInt(params.Ether),
		}))
		receipts = append(receipts, &types.Receipt{Type: types.DynamicFeeTxType, Status: types.ReceiptStatusSuccessful, CumulativeGasUsed: uint64(i+1) * 30_000, GasUsed: 30_000})
	}
	for i, n := range loggingIn {
		if number%n == 0 {
			receipts[i].Logs = []*types.Log{{Address: logging(n), Topics: []common.Hash{{7}, {byte(number)}}, Data: make([]byte, 32)}}
			receipts[i].Bloom = types.CreateBloom(receipts[i])
		}
	}
	body := &types.Body{Transactions: txs, Withdrawals: []*types.Withdrawal{}}
	return &ledger.Block{Block: types.NewBlock(header, body, receipts, trie.NewStackTrie(nil)), Receipts: receipts}
}

// manyLogs returns a node with a data directory that has a number of blocks, and keeps the last
// ones of them.
func manyLogs(b testing.TB, blocks int, keep uint64) *node.Node {
	n, _ := manyLogsIn(b, blocks, keep)
	return n
}

// manyLogsIn is manyLogs that returns the directory too.
func manyLogsIn(b testing.TB, blocks int, keep uint64) (*node.Node, string) {
	cfg := node.DefaultConfig(jamq.Tiny(), 50*time.Millisecond, 1)
	cfg.DataDir, cfg.KeepBlocks = b.TempDir(), keep
	accounts, err := devkeys.Derive(devkeys.Mnemonic, 10)
	require.NoError(b, err)
	alloc := make(types.GenesisAlloc)
	for _, a := range accounts {
		alloc[a.Address] = types.Account{Balance: new(big.Int).Mul(big.NewInt(10_000), big.NewInt(params.Ether))}
	}
	silent := slog.New(slog.DiscardHandler)
	s, err := store.Open(cfg.DataDir, silent)
	require.NoError(b, err)
	chain, err := evmrollup.New(evmrollup.Config{
		ChainID: cfg.ChainID, Genesis: alloc, MaxTxsPerBlock: 1, RetainStates: 1, MaxPool: 10, MaxPerSender: 1, Ledger: s.Ledger, States: s.States, Logger: silent,
	})
	require.NoError(b, err)
	genesis, config := chain.BlockByNumber(0), chain.ChainConfig()
	l, err := ledger.Open(s.Ledger, config, genesis, keep, silent)
	require.NoError(b, err)
	require.NoError(b, l.Import(func(add func(*ledger.Block, builder.Progress) error) error {
		parent := genesis.Block
		for range blocks {
			block := logBlock(parent, config)
			if err := add(block, builder.Progress{State: bundlequeue.Finalized, Version: 1}); err != nil {
				return err
			}
			parent = block.Block
		}
		return nil
	}))
	require.NoError(b, s.Close())
	// Pebble does the work that it would otherwise do while the node runs, so that no table is
	// replaced then.
	db, err := pebbledb.Open(filepath.Join(cfg.DataDir, "db"), nil)
	require.NoError(b, err)
	require.NoError(b, db.Pebble().Compact([]byte{0}, []byte{0xff}, false))
	require.NoError(b, db.Close())
	n, err := node.New(cfg)
	require.NoError(b, err)
	return n, cfg.DataDir
}

// BenchmarkLogs asks for the logs of one address over 100,000 blocks, over HTTP. The names
// say in how many of the blocks the address has a log.
func BenchmarkLogs(b *testing.B) {
	cfg := DefaultConfig()
	door, err := newDoor(manyLogs(b, manyBlocks, 0), &cfg)
	require.NoError(b, err)
	defer door.stop()
	server := httptest.NewServer(door)
	defer server.Close()
	client, err := ethclient.Dial(server.URL)
	require.NoError(b, err)
	defer client.Close()
	for _, n := range loggingIn[1:] {
		b.Run(big.NewInt(int64(manyBlocks/n)).String(), func(b *testing.B) {
			query := ethereum.FilterQuery{FromBlock: common.Big1, ToBlock: big.NewInt(manyBlocks), Addresses: []common.Address{logging(n)}}
			for range b.N {
				logs, err := client.FilterLogs(b.Context(), query)
				require.NoError(b, err)
				require.Len(b, logs, manyBlocks/n)
			}
		})
	}
}
