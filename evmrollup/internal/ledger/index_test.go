package ledger_test

import (
	"log/slog"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/store"
	"github.com/jamq/jamq/statedb/evm"
)

// logged returns a ledger with final blocks on a disk, each with the given logs.
func logged(t require.TestingT, disk ledger.Disk, blocks [][]*types.Log) *ledger.Ledger {
	genesis := &ledger.Block{Block: types.NewBlockWithHeader(&types.Header{Number: new(big.Int)})}
	l, err := ledger.Open(disk, evm.ChainConfig(big.NewInt(7)), genesis, 0, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	for i, logs := range blocks {
		parent := l.Head()
		tx := types.NewTx(&types.LegacyTx{Nonce: uint64(i), GasPrice: common.Big1, V: big.NewInt(27), R: common.Big1, S: common.Big1})
		receipts := types.Receipts{{Status: types.ReceiptStatusSuccessful, CumulativeGasUsed: 21_000, Logs: logs}}
		header := &types.Header{Number: big.NewInt(int64(i) + 1), ParentHash: parent.Hash(), Time: parent.Time() + 1, BaseFee: common.Big1, Difficulty: new(big.Int)}
		block := types.NewBlock(header, &types.Body{Transactions: types.Transactions{tx}}, receipts, trie.NewStackTrie(nil))
		require.NoError(t, l.Append(&ledger.Block{Block: block, Receipts: receipts}))
		require.NoError(t, l.Finalize(uint64(i)+1, builder.Progress{}))
	}
	return l
}

// The index finds the blocks that have the addresses and the topics of a query, and no
// others.
func TestLogsAreAsSearched(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		few := func() byte { // 0 is common, 3 rare
			return byte(min(random.IntN(4), random.IntN(4)))
		}
		blocks := make([][]*types.Log, 120)
		for i := range blocks {
			for range random.IntN(3) {
				one := &types.Log{Address: common.Address{few()}}
				for range random.IntN(3) {
					one.Topics = append(one.Topics, common.Hash{few()})
				}
				blocks[i] = append(blocks[i], one)
			}
		}
		l := logged(t, store.NewKeys(), blocks)
		for range 20 {
			var addresses []common.Address
			for range random.IntN(3) {
				addresses = append(addresses, common.Address{few()})
			}
			topics := make([][]common.Hash, random.IntN(3))
			for i := range topics {
				for range random.IntN(3) {
					topics[i] = append(topics[i], common.Hash{few()})
				}
			}
			from, to := uint64(random.IntN(len(blocks))), uint64(random.IntN(len(blocks)+1))
			var want []uint64
			for number := from; number <= to; number++ {
				if number == 0 && (len(addresses) > 0 || slices.ContainsFunc(topics, func(p []common.Hash) bool { return len(p) > 0 })) {
					continue // the genesis has no logs
				}
				if number == 0 || meets(blocks[number-1], addresses, topics) {
					want = append(want, number)
				}
			}
			require.Equal(t, want, slices.Collect(l.Logs(from, to, addresses, topics)), "%d to %d: %v %v", from, to, addresses, topics)
		}
	})
}

// meets reports whether the logs of a block have one of the addresses and for each
// position one of the topics, in any log and at any position.
func meets(logs []*types.Log, addresses []common.Address, topics [][]common.Hash) bool {
	has := func(f func(*types.Log) bool) bool { return slices.ContainsFunc(logs, f) }
	if len(addresses) > 0 && !has(func(l *types.Log) bool { return slices.Contains(addresses, l.Address) }) {
		return false
	}
	for _, position := range topics {
		one := func(topic common.Hash) bool { return slices.Contains(position, topic) }
		if len(position) > 0 && !has(func(l *types.Log) bool { return slices.ContainsFunc(l.Topics, one) }) {
			return false
		}
	}
	return true
}

// counted counts the keys that are scanned.
type counted struct {
	ledger.Disk
	keys int
}

func (c *counted) Scan(from, to []byte, f func(key []byte) error) error {
	return c.Disk.Scan(from, to, func(key []byte) error {
		c.keys++
		return f(key)
	})
}

// A topic that is rare among the logs of a busy contract is found without a read of all
// of the contract's keys.
func TestRareTopicOfABusyContract(t *testing.T) {
	busy, transfer, rare := common.Address{1}, common.Hash{1}, common.Hash{2}
	blocks := make([][]*types.Log, 1000)
	for i := range blocks {
		blocks[i] = []*types.Log{{Address: busy, Topics: []common.Hash{transfer}}}
	}
	blocks[499][0].Topics = append(blocks[499][0].Topics, rare)
	disk := &counted{Disk: store.NewKeys()}
	l := logged(t, disk, blocks)
	disk.keys = 0
	require.Equal(t, []uint64{500}, slices.Collect(l.Logs(0, 1000, []common.Address{busy}, [][]common.Hash{{transfer}, {rare}})))
	require.Less(t, disk.keys, 100)
}
