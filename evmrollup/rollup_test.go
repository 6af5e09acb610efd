package evmrollup

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/buildertest"
	"github.com/jamq/jamq/evmrollup/store"
	"github.com/jamq/jamq/internal/repeat"
	"github.com/jamq/jamq/statedb"
	"github.com/jamq/jamq/statedb/evm"
)

var chainID = big.NewInt(4359)

// user returns the key and the address of an account of the tests.
func user(i int) (*ecdsa.PrivateKey, common.Address) {
	key, err := crypto.ToECDSA(common.BigToHash(big.NewInt(int64(i) + 1)).Bytes())
	if err != nil {
		panic(err) // the number is in the range of keys
	}
	return key, crypto.PubkeyToAddress(key.PublicKey)
}

const users = 40

// testConfig returns the configuration of a chain with funded users.
func testConfig() Config {
	cfg := Config{ChainID: chainID, Genesis: make(types.GenesisAlloc), MaxTxsPerBlock: 3, RetainStates: 100, MaxPool: 1000, MaxPerSender: 64}
	for i := range users {
		_, address := user(i)
		cfg.Genesis[address] = types.Account{Balance: big.NewInt(params.Ether)}
	}
	return cfg
}

// pay signs a transfer of a user with a tip in gwei.
func pay(i int, nonce uint64, tip int64) *types.Transaction {
	key, _ := user(i)
	return types.MustSignNewTx(key, types.LatestSignerForChainID(chainID), &types.DynamicFeeTx{
		ChainID: chainID, Nonce: nonce, GasTipCap: big.NewInt(tip * params.GWei), GasFeeCap: big.NewInt((10 + tip) * params.GWei),
		Gas: 21_000, To: &common.Address{1}, Value: big.NewInt(1),
	})
}

// eager is a rollup whose blocks need not be full.
type eager struct {
	*rollup
	disk *disk
}

// disk outlives the chains of a test.
type disk struct {
	ledger, states *store.Keys
	lives          int
}

// Close implements io.Closer. At the end of every second life the disk loses all writes
// after the last checkpoint, as in a power failure.
func (e eager) Close() error {
	if e.disk.lives++; e.disk.lives%2 == 0 {
		e.disk.ledger.Crash()
		e.disk.states.Crash()
	}
	return nil
}

// Checkpoint implements builder.Checkpointer. The states are in the same database as the
// ledger, which Checkpoint syncs.
func (e eager) Checkpoint(ctx context.Context) ([][]byte, error) {
	records, err := e.rollup.Checkpoint(ctx)
	return records, errors.Join(err, e.disk.states.Sync())
}

// Propose implements builder.Rollup.
func (e eager) Propose(ctx context.Context, number uint64) (*Block, common.Hash, error) {
	e.SlotBegan()
	return e.rollup.Propose(ctx, number)
}

// rules are the rules of package buildertest for this rollup.
func rules(t *testing.T) buildertest.Case[*Block] {
	disks := make(map[string]*disk)
	return buildertest.Case[*Block]{
		Open: func(dir string) builder.Rollup[*Block] {
			if disks[dir] == nil {
				disks[dir] = &disk{ledger: store.NewKeys(), states: store.NewKeys()}
			}
			cfg := testConfig()
			cfg.Ledger, cfg.States, cfg.RetainStates = disks[dir].ledger, disks[dir].states, 1
			c, err := New(cfg)
			require.NoError(t, err)
			r, err := c.Rollup()
			require.NoError(t, err)
			return eager{r.(*rollup), disks[dir]}
		},
		Operation: func(i int) []byte {
			raw, err := pay(i, 0, int64(i%5)+1).MarshalBinary()
			require.NoError(t, err)
			return raw
		},
		OwnOrder: true,
		Executed: func(payload []byte) (ops [][]byte) {
			for _, tx := range execute(t, payload).Transactions() {
				raw, err := tx.MarshalBinary()
				require.NoError(t, err)
				ops = append(ops, raw)
			}
			return ops
		},
	}
}

// execute executes a payload on its witness, as a guarantor does: the witness is
// sufficient, and has nothing superfluous.
func execute(t *testing.T, payload []byte) *types.Block {
	got, err := DecodeTransition(payload)
	require.NoError(t, err)
	w, err := statedb.ParseWitness(got.Witness)
	require.NoError(t, err)
	view, err := statedb.NewStateless(w, got.PreRoot)
	require.NoError(t, err)
	none := func(uint64) common.Hash { return common.Hash{} }
	run, err := evm.NewBlock(view, evm.ChainConfig(chainID), got.Block.Header(), none)
	require.NoError(t, err)
	for _, tx := range got.Block.Transactions() {
		_, err := run.Apply(tx)
		require.NoError(t, err)
	}
	require.NoError(t, run.Finish())
	root, err := view.Root()
	require.NoError(t, err)
	require.Equal(t, got.Block.Root(), root)
	require.NoError(t, view.Matches(w))
	return got.Block
}

// TestRollup: lost packages, blocks that fail, kills and restarts lose no transaction, and
// execute none twice. Each payload executes on its witness.
func TestRollup(t *testing.T) { buildertest.Run(t, rules(t)) }

// TestRestartWithoutCheckpoint: a log that has no checkpoint yet leads from the genesis to the
// present, although more blocks are final than states are kept.
func TestRestartWithoutCheckpoint(t *testing.T) {
	rules, ctx := rules(t), t.Context()
	open := func() eager {
		e := rules.Open("disk").(eager)
		return e
	}
	first := open()
	require.NoError(t, first.Recovered(ctx, func() error { return nil }))
	var blocks []builder.Block[*Block]
	for i := range uint64(6) {
		require.NoError(t, first.Admit(ctx, rules.Operation(int(i))))
		before := first.Root()
		body, root, err := first.Propose(ctx, i+1)
		require.NoError(t, err)
		b := builder.Block[*Block]{Number: i + 1, PreRoot: before, Root: root, Body: body}
		require.NoError(t, first.Apply(ctx, b))
		require.NoError(t, first.Final(ctx, b))
		blocks = append(blocks, b)
	}
	again := open()
	for _, b := range blocks {
		require.NoError(t, again.Apply(ctx, b))
		require.Equal(t, b.Root, again.Root())
	}
}

// TestK1DiesAtAnyMoment kills the process before and after each write and each call.
func TestK1DiesAtAnyMoment(t *testing.T) {
	moments := buildertest.Sweep(t, rules(t), 1, 31*repeat.Step())
	require.Greater(t, moments, 100)
}
