package evm

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/statedb"
)

func TestIncompleteHeader(t *testing.T) {
	store, root := genesis(t)
	view, err := store.View(root)
	require.NoError(t, err)
	for name, change := range map[string]func(h *types.Header){
		"no base fee":     func(h *types.Header) { h.BaseFee = nil },
		"base fee below":  func(h *types.Header) { h.BaseFee = big.NewInt(-1) },
		"no number":       func(h *types.Header) { h.Number = nil },
		"negative number": func(h *types.Header) { h.Number = big.NewInt(-1) },
		"number too long": func(h *types.Header) { h.Number = new(big.Int).Lsh(common.Big1, 64) },
	} {
		h := header()
		change(h)
		_, err := NewBlock(view, config, h, noHashes)
		require.ErrorIs(t, err, ErrHeader, name)
		_, err = Call(t.Context(), view, config, h, noHashes, &core.Message{GasLimit: 100_000})
		require.ErrorIs(t, err, ErrHeader, name)
		_, _, err = Estimate(t.Context(), view, config, h, noHashes, &core.Message{GasLimit: 100_000}, 0)
		require.ErrorIs(t, err, ErrHeader, name)
	}
}

// Forks with rules that this package does not implement fully are refused when
// they are active.
func TestForksThatDoNotRun(t *testing.T) {
	store, root := genesis(t)
	view, err := store.View(root)
	require.NoError(t, err)
	now, later := header().Time, header().Time+1
	for name, c := range map[string]struct {
		change func(*params.ChainConfig)
		want   error
	}{
		"Osaka":           {func(c *params.ChainConfig) { c.OsakaTime = &now }, nil},
		"Amsterdam":       {func(c *params.ChainConfig) { c.OsakaTime, c.AmsterdamTime = &now, &now }, ErrFork},
		"Amsterdam later": {func(c *params.ChainConfig) { c.OsakaTime, c.AmsterdamTime = &now, &later }, nil},
		"UBT":             {func(c *params.ChainConfig) { c.UBTTime = &now }, ErrFork},
	} {
		rules := ChainConfig(config.ChainID)
		c.change(rules)
		_, err := NewBlock(view, rules, header(), noHashes)
		require.ErrorIs(t, err, c.want, name)
		_, err = Call(t.Context(), view, rules, header(), noHashes, &core.Message{GasLimit: 100_000, To: &common.Address{1}})
		require.ErrorIs(t, err, c.want, name)
		_, _, err = Estimate(t.Context(), view, rules, header(), noHashes, &core.Message{GasLimit: 100_000, To: &common.Address{1}}, 0)
		require.ErrorIs(t, err, c.want, name)
	}
}

// The block copies the header: later changes by the caller do not affect the
// block.
func TestHeaderIsCopied(t *testing.T) {
	store, root := genesis(t)
	view, err := store.View(root)
	require.NoError(t, err)
	h := header()
	b, err := NewBlock(view, config, h, noHashes)
	require.NoError(t, err)
	h.GasLimit = 0
	h.Number.SetInt64(0)
	_, err = b.Apply(dynamic(0, 0, &common.Address{0xaa}, ether, nil))
	require.NoError(t, err)
}

// A message without amounts has no value and price. Rules before London have no
// base fee.
func TestBareMessage(t *testing.T) {
	store, root := genesis(t)
	view, err := store.View(root)
	require.NoError(t, err)
	to := common.Address{0xaa}
	msg := &core.Message{From: addr(1), To: &to, GasLimit: 100_000}
	_, err = Call(t.Context(), view, config, header(), noHashes, msg)
	require.NoError(t, err)
	gas, _, err := Estimate(t.Context(), view, config, header(), noHashes, msg, 0)
	require.NoError(t, err)
	require.EqualValues(t, 21_000, gas)
	blobs := &core.Message{From: addr(1), To: &to, GasLimit: 100_000, BlobHashes: []common.Hash{{1}}}
	_, err = Call(t.Context(), view, config, header(), noHashes, blobs)
	require.NoError(t, err)
	_, _, err = Estimate(t.Context(), view, config, header(), noHashes, blobs, 0)
	require.NoError(t, err)

	h, old := header(), *config
	h.BaseFee, h.Difficulty = nil, big.NewInt(1)
	old.LondonBlock, old.ArrowGlacierBlock, old.GrayGlacierBlock, old.MergeNetsplitBlock = nil, nil, nil, nil
	old.ShanghaiTime, old.CancunTime, old.PragueTime, old.TerminalTotalDifficulty = nil, nil, nil, nil
	_, err = Call(t.Context(), view, &old, h, noHashes, msg)
	require.NoError(t, err)
}

// An estimate returns an error if the witness lacks a value that the message
// reads.
func TestEstimateSaysWhatTheWitnessLacks(t *testing.T) {
	store, root := genesis(t)
	code := []byte{0x60, 0x07, 0x54, 0x15, 0x60, 0x08, 0x57, 0x00, 0x5b, 0x00} // if SLOAD(7) …
	_, view := run(t, store, root, dynamic(0, 0, nil, nil, deployer(code)))
	at := crypto.CreateAddress(addr(0), 0)
	view.Account(addr(1))
	view.Account(header().Coinbase)
	view.CodeAt(at)
	w, err := view.Witness()
	require.NoError(t, err)
	stateless, err := statedb.NewStateless(w, view.ActiveRoot())
	require.NoError(t, err)
	_, _, err = Estimate(t.Context(), stateless, config, header(), noHashes, &core.Message{From: addr(1), To: &at, GasLimit: 100_000}, 0)
	require.ErrorIs(t, err, ErrState)
	require.ErrorIs(t, err, statedb.ErrNotInWitness)
}

// Before Cancun a contract that destroys itself would leave its storage behind.
// The block ends if the storage is found. Storage of the same block is not in
// the view yet.
func TestDestroyedBeforeCancun(t *testing.T) {
	old := *config
	old.CancunTime, old.PragueTime, old.BlobScheduleConfig = nil, nil, nil
	store, root := genesis(t)
	// Without input: SSTORE(0, 5). With input: SELFDESTRUCT.
	code := []byte{0x36, 0x60, 0x09, 0x57, 0x60, 0x05, 0x5f, 0x55, 0x00, 0x5b, 0x33, 0xff}
	at := crypto.CreateAddress(addr(0), 0)
	create, use, end := dynamic(0, 0, nil, nil, deployer(code)), dynamic(0, 1, &at, nil, nil), dynamic(0, 2, &at, nil, []byte{1})
	for name, blocks := range map[string][][]*types.Transaction{
		"one block":  {{create, use, end}},
		"two blocks": {{create, use}, {end}},
	} {
		root := root
		for i, txs := range blocks {
			view, err := store.View(root)
			require.NoError(t, err)
			b, err := NewBlock(view, &old, header(), noHashes)
			require.NoError(t, err)
			for _, tx := range txs {
				if _, err = b.Apply(tx); i == 0 {
					require.NoError(t, err, name)
				}
			}
			if i == 1 {
				require.ErrorIs(t, err, ErrDestroyed, name)
				require.ErrorIs(t, b.Finish(), ErrState)
				continue
			}
			require.NoError(t, b.Finish())
			root = commit(t, view)
			require.Equal(t, len(blocks) == 2, view.Account(at).Exists)
			require.Equal(t, len(blocks) == 2, view.Storage(at, common.Hash{}) != common.Hash{})
		}
	}
}
