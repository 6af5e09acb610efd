package ledger_test

import (
	"errors"
	"log/slog"
	"math/big"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/store"
	"github.com/jamq/jamq/statedb/evm"
)

// chainOf makes blocks with transactions and logs.
func chainOf(blocks int) (made []*ledger.Block) {
	rapid.Custom(func(t *rapid.T) bool {
		made = []*ledger.Block{{Block: types.NewBlockWithHeader(&types.Header{Number: new(big.Int)})}}
		for range blocks {
			made = append(made, drawBlock(t, made[len(made)-1].Block, evm.ChainConfig(big.NewInt(7))))
		}
		return true
	}).Example(1)
	return made
}

// ledgerOn opens a ledger that keeps a number of blocks.
func ledgerOn(t *testing.T, disk *store.Keys, genesis *ledger.Block, keep uint64) *ledger.Ledger {
	l, err := ledger.Open(disk, evm.ChainConfig(big.NewInt(7)), genesis, keep, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return l
}

// extend adds final blocks up to a number.
func extend(t *testing.T, l *ledger.Ledger, made []*ledger.Block, to int) {
	for number := l.Head().NumberU64() + 1; number <= uint64(to); number++ {
		require.NoError(t, l.Append(made[number]))
		require.NoError(t, l.Finalize(number, builder.Progress{Version: int(number)}))
	}
}

// checkKept checks that blocks from oldest on are whole, and that the headers and the progress
// of older ones are there, and nothing else of them.
func checkKept(t *testing.T, l *ledger.Ledger, made []*ledger.Block, oldest int) {
	require.EqualValues(t, oldest, l.Oldest())
	for number, want := range made[:l.Head().NumberU64()+1] {
		pruned := number > 0 && number < oldest
		for _, have := range []*ledger.Block{l.ByNumber(uint64(number)), l.ByHash(want.Hash())} {
			require.Equal(t, want.Hash(), have.Hash())
			require.Equal(t, pruned, have.Pruned)
			if !pruned {
				require.Len(t, have.Receipts, len(want.Receipts))
				require.Len(t, have.Logs(), len(want.Logs()))
			}
		}
		for i, tx := range want.Transactions() {
			_, index, known := l.Transaction(tx.Hash())
			require.Equal(t, !pruned, known)
			require.True(t, pruned || index == i)
		}
		logs, ok := l.LogsOf(uint64(number))
		require.True(t, ok)
		require.True(t, !pruned || len(logs) == 0)
		at, known := l.Progress(uint64(number))
		require.True(t, known)
		require.Equal(t, number, at.Version)
	}
}

// A ledger with a limit keeps that many final blocks, and of older ones the headers. The limit
// can change at each start, and a long chain becomes short gradually.
func TestPrune(t *testing.T) {
	const keep = ledger.MinKeep
	made := chainOf(keep + 120)
	disk := store.NewKeys()
	l := ledgerOn(t, disk, made[0], 0)
	extend(t, l, made, keep+50)
	checkKept(t, l, made, 1)

	l = ledgerOn(t, disk, made[0], 1) // which is less than the minimum
	checkKept(t, l, made, 1)
	extend(t, l, made, keep+51)
	checkKept(t, l, made, 17)
	extend(t, l, made, keep+60)
	checkKept(t, l, made, 61)

	l = ledgerOn(t, disk, made[0], 0)
	checkKept(t, l, made, 61)
	extend(t, l, made, keep+70)
	checkKept(t, l, made, 61)

	l = ledgerOn(t, disk, made[0], keep)
	extend(t, l, made, keep+120)
	checkKept(t, l, made, 121)
	kinds := map[byte]int{}
	require.NoError(t, disk.Scan([]byte{0}, []byte{0xff}, func(key []byte) error {
		kinds[key[0]]++
		return nil
	}))
	require.Equal(t, keep+1, kinds['b'], "the last ones, and the genesis")
	require.Equal(t, keep+1, kinds['r'])
	require.Equal(t, 120, kinds['s'])
	require.Equal(t, keep+121, kinds['h'])
	txs := 0
	for _, b := range made[121:] {
		txs += len(b.Transactions())
	}
	require.Equal(t, txs, kinds['t'])
}

// A reader beside the pruning sees a block whole or as a header.
func TestPruneWhileReading(t *testing.T) {
	const keep = ledger.MinKeep
	made := chainOf(keep + 200)
	l := ledgerOn(t, store.NewKeys(), made[0], keep)
	extend(t, l, made, keep)
	ended := make(chan struct{})
	var reading sync.WaitGroup
	for range 3 {
		reading.Go(func() {
			for number := uint64(1); ; number = number%200 + 1 {
				if b := l.ByNumber(number); b.Hash() != made[number].Hash() || !b.Pruned && len(b.Logs()) != len(made[number].Logs()) {
					t.Errorf("block %d: pruned %v, %d logs", number, b.Pruned, len(b.Logs()))
				}
				select {
				case <-ended:
					return
				default:
				}
			}
		})
	}
	extend(t, l, made, keep+200)
	close(ended)
	reading.Wait()
	checkKept(t, l, made, 201)
}

// damaged is a disk on which one block cannot be read.
type damaged struct {
	*store.Keys
	key string
}

func (d damaged) Get(key []byte) ([]byte, error) {
	if string(key) == d.key {
		return nil, errors.New("checksum mismatch")
	}
	return d.Keys.Get(key)
}

// An old block that cannot be read is damage. The blocks after it are pruned.
func TestDamageDoesNotStopPruning(t *testing.T) {
	const keep, last = ledger.MinKeep, ledger.MinKeep + 120
	made := chainOf(last)
	disk := damaged{store.NewKeys(), "b\x00\x00\x00\x00\x00\x00\x00\x14"} // block 20
	log := slog.New(slog.DiscardHandler)
	l, err := ledger.Open(disk, evm.ChainConfig(big.NewInt(7)), made[0], keep, log)
	require.NoError(t, err)
	for number := uint64(1); number <= last; number++ {
		require.NoError(t, l.Append(made[number]))
		require.NoError(t, l.Finalize(number, builder.Progress{}))
	}
	require.EqualValues(t, 121, l.Oldest())
	require.ErrorIs(t, l.Damage(), ledger.ErrDamaged)
	require.ErrorContains(t, l.Damage(), "checksum mismatch")
}
