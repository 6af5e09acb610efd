package evmrollup

import (
	"encoding/json"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/store"
)

// emit signs a transaction of a user that makes a contract, whose constructor logs a topic.
func emit(i int, nonce uint64, topic byte) *types.Transaction {
	key, _ := user(i)
	return types.MustSignNewTx(key, types.LatestSignerForChainID(chainID), &types.LegacyTx{
		Nonce: nonce, GasPrice: big.NewInt(20 * params.GWei), Gas: 100_000, Data: []byte{0x60, topic, 0x5f, 0x5f, 0xa1, 0x00},
	})
}

// onDisk returns a rollup on disks.
func onDisk(t *testing.T, cfg Config, restore [][]byte) *rollup {
	t.Helper()
	c, err := New(cfg)
	require.NoError(t, err)
	b, err := c.Rollup()
	require.NoError(t, err)
	r := b.(*rollup)
	if restore != nil {
		require.NoError(t, r.Restore(t.Context(), restore))
	}
	require.NoError(t, r.Recovered(t.Context(), keepNothing))
	return r
}

// chainOnDisk makes blocks, of which all but the last 3 are final. Each fifth one logs the
// topic 7 or 8.
func chainOnDisk(t *testing.T, blocks int) (cfg Config, r *rollup, made []*Block) {
	t.Helper()
	cfg = testConfig()
	cfg.Ledger, cfg.States, cfg.RetainStates = store.NewKeys(), store.NewKeys(), 20
	r = onDisk(t, cfg, nil)
	made = r.grow(t, 0, 10)
	_, err := r.Checkpoint(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.Prune(t.Context()))
	return cfg, r, append(made, r.grow(t, 10, blocks-10)...)
}

// grow makes blocks from the number first+1 on, and the blocks before the last 3 final.
func (r *rollup) grow(t *testing.T, first, blocks int) (made []*Block) {
	for i := first; i < first+blocks; i++ {
		from, nonce := i%users, uint64(i/users)
		tx := pay(from, nonce, 1)
		if i%5 == 0 {
			tx = emit(from, nonce, byte(7+i/5%2))
		}
		require.NoError(t, r.SendTransaction(tx))
		block := r.propose(t)
		require.NoError(t, r.Apply(t.Context(), block))
		made = append(made, r.Head())
		if i >= 3 {
			old := r.BlockByNumber(uint64(i) - 2)
			at := builder.Progress{State: bundlequeue.Finalized, Version: 2, Package: jamq.PackageHash{byte(i)}, Core: 1}
			require.NoError(t, r.Final(t.Context(), builder.Block[*Block]{Number: old.NumberU64(), Root: old.Root(), Body: old, Progress: at}))
		}
	}
	return made
}

// same checks that a chain has blocks as they were made, with receipts.
func same(t *testing.T, c *Chain, made []*Block) {
	t.Helper()
	text := func(b *Block) string {
		raw, err := json.Marshal([]any{b.Header(), b.Transactions(), b.Receipts})
		require.NoError(t, err)
		return string(raw)
	}
	for _, want := range made {
		have := c.BlockByNumber(want.NumberU64())
		require.NotNil(t, have, "block %d", want.NumberU64())
		require.Equal(t, text(want), text(have))
		require.Equal(t, want.Hash(), c.BlockByHash(want.Hash()).Hash())
		for i, tx := range want.Transactions() {
			at, index, known := c.Transaction(tx.Hash())
			require.True(t, known)
			require.Equal(t, i, index)
			require.Equal(t, want.Hash(), at.Hash())
		}
	}
}

// Old blocks are read from the disk, and found by number, hash, transaction and logs.
func TestOldBlocks(t *testing.T) {
	_, r, made := chainOnDisk(t, 120)
	same(t, r.Chain, made)
	at, known := r.FinalProgress(50)
	require.True(t, known)
	require.Equal(t, builder.Progress{State: bundlequeue.Finalized, Version: 2, Package: jamq.PackageHash{52}, Core: 1}, at)
	_, known = r.FinalProgress(120)
	require.False(t, known, "it is not final")

	topic := func(n int64) common.Hash { return common.BigToHash(big.NewInt(n)) }
	for _, query := range []struct {
		from, to  uint64
		addresses []common.Address
		topics    [][]common.Hash
	}{
		{1, 120, nil, [][]common.Hash{{topic(7)}}},
		{40, 90, nil, [][]common.Hash{{topic(7), topic(8)}}},
		{1, 120, []common.Address{made[25].Receipts[0].ContractAddress, made[95].Receipts[0].ContractAddress}, nil},
		{1, 120, []common.Address{made[25].Receipts[0].ContractAddress}, [][]common.Hash{{topic(8)}}},
		{1, 120, nil, [][]common.Hash{{topic(9)}}},
	} {
		have := slices.Collect(r.Logs(query.from, query.to, query.addresses, query.topics))
		require.Less(t, len(have), 60, "it reads all blocks")
		for number := query.from; number <= query.to; number++ {
			matches := slices.ContainsFunc(made[number-1].Receipts, func(receipt *types.Receipt) bool {
				return slices.ContainsFunc(receipt.Logs, func(l *types.Log) bool {
					return (len(query.addresses) == 0 || slices.Contains(query.addresses, l.Address)) && (len(query.topics) == 0 || slices.Contains(query.topics[0], l.Topics[0]))
				})
			})
			if matches {
				require.Contains(t, have, number)
			}
		}
	}
	require.Len(t, slices.Collect(r.Logs(1, 120, nil, nil)), 120)
}

// A restart has the same blocks and states, and executes only those that are not final.
func TestRestart(t *testing.T) {
	cfg, r, made := chainOnDisk(t, 120)
	records, err := r.Checkpoint(t.Context())
	require.NoError(t, err)
	again := onDisk(t, cfg, records)
	require.Equal(t, r.Head().Hash(), again.Head().Hash())
	require.Equal(t, r.Root(), again.Root())
	require.EqualValues(t, 117, again.ledger.Final())
	same(t, again.Chain, made)
	_, err = again.StateAt(made[100])
	require.NoError(t, err)
	_, err = again.StateAt(made[50])
	require.ErrorContains(t, err, "not available", "it was not retained")
	genesis := again.BlockByNumber(0)
	_, rich := user(0)
	for _, c := range []*Chain{r.Chain, again.Chain} { // a pin would cost more with each block
		require.False(t, c.states.Has(genesis.Root()))
		view, err := c.StateAt(genesis)
		require.NoError(t, err)
		require.Equal(t, cfg.Genesis[rich].Balance.String(), view.Account(rich).Balance.String())
	}
	require.NoError(t, again.SendTransaction(pay(0, 3, 1)))
	require.NoError(t, again.Apply(t.Context(), again.propose(t)))
	require.LessOrEqual(t, again.States(), 30)

	cfg.ChainID = big.NewInt(5)
	_, err = New(cfg)
	require.ErrorIs(t, err, ledger.ErrOtherChain)
}

// A restart begins with the checkpoint that the log has, also if the log has refused those after
// it. Of the states of refused checkpoints only the last one is kept.
func TestRefusedCheckpoints(t *testing.T) {
	cfg, r, made := chainOnDisk(t, 10)
	records, err := r.Checkpoint(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.Prune(t.Context()))
	for i := range 4 {
		r.grow(t, 10+30*i, 30)
		_, err := r.Checkpoint(t.Context())
		require.NoError(t, err)
	}
	require.LessOrEqual(t, r.States(), cfg.RetainStates+10)
	same(t, onDisk(t, cfg, records).Chain, made)
}

// Blocks that have become final after the last checkpoint are there after a restart.
func TestRestartAfterFinalBlocks(t *testing.T) {
	cfg, r, made := chainOnDisk(t, 40)
	records, err := r.Checkpoint(t.Context())
	require.NoError(t, err)
	for _, b := range made[37:] {
		require.NoError(t, r.Final(t.Context(), builder.Block[*Block]{Number: b.NumberU64(), Root: b.Root(), Body: b}))
	}
	again := onDisk(t, cfg, records)
	require.EqualValues(t, 40, again.ledger.Final())
	for _, b := range made[37:] {
		have := again.BlockByHash(b.Hash())
		require.NotNil(t, have)
		require.Equal(t, have.Receipts[0].TxHash, b.Transactions()[0].Hash())
	}
	require.NotNil(t, again.ledger.Stored(39, made[38].Hash()))
	require.Nil(t, again.ledger.Stored(39, made[37].Hash()))
	require.Nil(t, again.ledger.Stored(41, common.Hash{}))
}

// A checkpoint of blocks that the disk lacks is refused.
func TestCheckpointWithoutItsBlocks(t *testing.T) {
	_, r, _ := chainOnDisk(t, 10)
	records, err := r.Checkpoint(t.Context())
	require.NoError(t, err)
	cfg := testConfig()
	cfg.Ledger, cfg.States = store.NewKeys(), store.NewKeys()
	c, err := New(cfg)
	require.NoError(t, err)
	other, err := c.Rollup()
	require.NoError(t, err)
	require.ErrorIs(t, other.(*rollup).Restore(t.Context(), records), ledger.ErrDamaged)
	require.ErrorIs(t, other.(*rollup).Restore(t.Context(), [][]byte{{'?'}}), errRecord)
	require.ErrorIs(t, other.(*rollup).Restore(t.Context(), [][]byte{{}}), errRecord)
}
