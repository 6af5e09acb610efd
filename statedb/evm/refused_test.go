package evm

import (
	"errors"
	"math/big"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/statedb"
)

// shifter destroys itself if it has no input. Otherwise the first 32 bytes are
// a slot, which it reads. With more input it also increments the slot.
var shifter = []byte{
	0x36, 0x60, 6, 0x57, 0x33, 0xff, // no input: SELFDESTRUCT(caller)
	0x5b, 0x5f, 0x35, 0x80, 0x54, // slot, SLOAD(slot)
	0x60, 32, 0x36, 0x11, 0x60, 19, 0x57, 0x00, // 32 bytes: STOP
	0x5b, 0x60, 1, 0x01, 0x90, 0x55, 0x00, // SSTORE(slot, … + 1)
}

// tidal stores one more than its transient slot 0 holds in slot 0, and then sets the transient one.
var tidal = []byte{0x5f, 0x5c, 0x60, 1, 0x01, 0x5f, 0x55, 0x60, 1, 0x5f, 0x5d, 0x00}

// shifters are a phoenix whose children are shifters, its child, a tidal contract, and a shifter.
func shifters(t require.TestingT) (store *statedb.Store, root common.Hash, at [4]common.Address) {
	store, root = genesisOf(t)
	_, view := run(t, store, root,
		dynamic(0, 0, nil, nil, deployer(phoenixOf(shifter))), dynamic(0, 1, nil, nil, deployer(tidal)), dynamic(0, 2, nil, nil, deployer(shifter)))
	at[0], at[2], at[3] = crypto.CreateAddress(addr(0), 0), crypto.CreateAddress(addr(0), 1), crypto.CreateAddress(addr(0), 2)
	at[1] = phoenixChildOf(at[0], shifter)
	return store, view.ActiveRoot(), at
}

// beforeCancun is the configuration with Shanghai's rules.
func beforeCancun() *params.ChainConfig {
	old := *config
	old.CancunTime, old.PragueTime, old.BlobScheduleConfig = nil, nil, nil
	return &old
}

// executed is the result of a block.
type executed struct {
	receipts types.Receipts
	root     common.Hash
	reads    []statedb.Read
	writes   []statedb.Write
	entries  []statedb.Entry
	witness  []byte
}

// executeAll runs transactions as one block. It returns nil if that ends with ErrDestroyed.
func executeAll(t require.TestingT, view *statedb.View, rules *params.ChainConfig, txs []*types.Transaction) *executed {
	b, err := NewBlock(view, rules, header(), noHashes)
	require.NoError(t, err)
	for _, tx := range txs {
		if _, err := b.Apply(tx); errors.Is(err, ErrDestroyed) {
			return nil
		} else if err != nil {
			require.NotErrorIs(t, err, ErrState)
		}
	}
	require.NoError(t, b.Finish())
	e := &executed{receipts: b.Receipts(), root: rootOf(t, view), reads: view.Reads(), writes: view.Writes(), entries: view.Entries()}
	if w, err := view.Witness(); err == nil {
		e.witness = w.Encode()
	}
	return e
}

// requireNoTrace executes transactions with and without the refused ones, and
// again on the witness.
func requireNoTrace(t require.TestingT, store *statedb.Store, root common.Hash, rules *params.ChainConfig, txs []*types.Transaction) *executed {
	views := [2]*statedb.View{}
	for i := range views {
		var err error
		views[i], err = store.View(root)
		require.NoError(t, err)
	}
	got := executeAll(t, views[0], rules, txs)
	if got == nil {
		return nil
	}
	in := accepted(txs, got.receipts)
	want := executeAll(t, views[1], rules, in)
	require.NotNil(t, want)
	require.Len(t, want.receipts, len(in))
	require.Equal(t, want, got)

	w, err := statedb.ParseWitness(got.witness)
	require.NoError(t, err)
	stateless, err := statedb.NewStateless(w, root)
	require.NoError(t, err)
	again := executeAll(t, stateless, rules, in)
	require.NotNil(t, again)
	require.NoError(t, stateless.Matches(w))
	again.witness = got.witness
	require.Equal(t, got, again)
	return got
}

// refused is a transaction that no block here takes.
func refused(to common.Address) *types.Transaction { return dynamic(2, 1000, &to, nil, nil) }

// A contract that is destroyed and created again in one block reads its empty
// storage the same if a transaction was refused in between.
func TestRefusedWhileDestroyed(t *testing.T) {
	store, root, at := shifters(t)
	slot := common.Hash{9}
	for _, txs := range [][]*types.Transaction{
		{dynamic(0, 3, &at[0], nil, []byte{1}), dynamic(0, 4, &at[0], nil, nil), dynamic(0, 5, &at[1], nil, slot[:])},
		{dynamic(0, 3, &at[0], nil, []byte{1}), dynamic(0, 4, &at[0], nil, nil), dynamic(0, 5, &at[1], nil, append(slot[:], 0))},
		{dynamic(0, 3, &at[0], nil, nil), dynamic(0, 4, &at[1], nil, append(slot[:], 0)), dynamic(0, 5, &at[1], nil, nil), dynamic(0, 6, &at[0], nil, nil)},
		{dynamic(0, 3, &at[0], nil, nil), dynamic(0, 4, &at[1], nil, append(slot[:], 0)), dynamic(0, 5, &at[1], nil, nil), dynamic(0, 6, &at[1], big.NewInt(1), nil)},
	} {
		for _, rules := range []*params.ChainConfig{config, beforeCancun()} {
			for places := range 1 << len(txs) {
				var with []*types.Transaction
				for i, tx := range txs {
					if with = append(with, tx); places>>i&1 == 1 {
						with = append(with, refused(at[0]))
					}
				}
				require.NotNil(t, requireNoTrace(t, store, root, rules, with))
			}
		}
	}
}

// Before Cancun, storage that is not found when its account is destroyed is
// found when it is read again, with or without a refused transaction in
// between.
func TestReadAfterDestroyed(t *testing.T) {
	store, root, at := shifters(t)
	slot := common.Hash{9}
	_, view := run(t, store, root, dynamic(0, 3, &at[0], nil, nil), dynamic(0, 4, &at[1], nil, append(slot[:], 0)))
	txs := []*types.Transaction{dynamic(0, 5, &at[1], nil, nil), dynamic(0, 6, &at[0], nil, nil), dynamic(0, 7, &at[1], nil, slot[:])}
	for places := range 4 {
		b, err := NewBlock(view.Copy(), beforeCancun(), header(), noHashes)
		require.NoError(t, err)
		for i, tx := range txs {
			if _, err = b.Apply(tx); i == 2 {
				require.ErrorIs(t, err, ErrDestroyed, "refused after %02b", places)
				break
			}
			require.NoError(t, err)
			if places>>i&1 == 1 {
				_, err = b.Apply(refused(at[0]))
				require.ErrorIs(t, err, core.ErrNonceTooHigh)
			}
		}
		require.ErrorIs(t, b.Finish(), ErrState)
	}
}

// In any block, refused transactions leave no trace in receipts, root, log,
// writes and witness.
func TestRefusalsLeaveNoTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, root, at := shifters(t)
		targets := append(at[:], at[0], at[1], common.Address{19: 3}, common.Address{0xaa}, addr(1), addr(2), header().Coinbase)
		rules := config
		if rapid.IntRange(0, 3).Draw(t, "before Cancun") == 0 {
			rules = beforeCancun()
		}
		for range rapid.IntRange(1, 2).Draw(t, "blocks") {
			view, err := store.View(root)
			require.NoError(t, err)
			oracle, err := NewBlock(view, rules, header(), noHashes) // knows nonces
			require.NoError(t, err)
			var txs []*types.Transaction
			for range rapid.IntRange(1, 10).Draw(t, "transactions") {
				tx := drawShift(t, oracle, targets)
				txs = append(txs, tx)
				if _, err := oracle.Apply(tx); errors.Is(err, ErrState) {
					break
				}
			}
			if requireNoTrace(t, store, root, rules, txs) == nil {
				return
			}
			require.NoError(t, oracle.Finish())
			root = commit(t, view)
		}
	})
}

// drawShift draws a transaction of account 0 or 1, or one of any account that
// is refused.
func drawShift(t *rapid.T, b *Block, targets []common.Address) *types.Transaction {
	nonce := func(i byte) uint64 { return b.state.GetNonce(addr(i)) }
	from := rapid.Byte().Draw(t, "from") % 2
	at, gas, value := nonce(from), uint64(500_000), uint256.NewInt(rapid.Uint64Max(1).Draw(t, "value"))
	if rapid.IntRange(0, 2).Draw(t, "refused") == 0 {
		from = rapid.Byte().Draw(t, "from") % 3
		at = nonce(from)
		switch rapid.IntRange(0, 3).Draw(t, "why") {
		case 0:
			at += 1000
		case 1:
			gas = 20_000 // after it was bought
		case 2:
			gas = 40_000_000 // more than the block has
		case 3:
			value = uint256.MustFromBig(new(big.Int).Mul(ether, big.NewInt(1000)))
		}
	}
	to := rapid.SampledFrom(targets).Draw(t, "to")
	data := make([]byte, rapid.SampledFrom([]int{0, 0, 1, 32, 33}).Draw(t, "input"))
	if len(data) > 1 {
		data[0] = rapid.Byte().Draw(t, "slot") % 2
	}
	tip := rapid.Uint64Max(1).Draw(t, "tip")
	if rapid.IntRange(0, 3).Draw(t, "set code") > 0 {
		return sign(from, &types.DynamicFeeTx{ChainID: config.ChainID, Nonce: at, GasTipCap: new(big.Int).SetUint64(tip),
			GasFeeCap: big.NewInt(3 * params.GWei), Gas: gas, To: &to, Value: value.ToBig(), Data: data})
	}
	who := 1 + rapid.Byte().Draw(t, "authority")%2
	auth, err := types.SignSetCode(key(who), types.SetCodeAuthorization{ChainID: *uint256.NewInt(4359), Nonce: nonce(who),
		Address: rapid.SampledFrom(append(targets, common.Address{})).Draw(t, "delegate")})
	require.NoError(t, err)
	return sign(from, &types.SetCodeTx{ChainID: uint256.NewInt(4359), Nonce: at, GasTipCap: uint256.NewInt(tip), GasFeeCap: uint256.NewInt(3 * params.GWei),
		Gas: gas, To: to, Value: value, Data: data, AuthList: []types.SetCodeAuthorization{auth}})
}

// Sixty-four blocks on copies of one view run at the same time as each would alone.
func TestParallelBlocks(t *testing.T) {
	store, root, at := shifters(t)
	block := func(i int) []*types.Transaction {
		slot := common.Hash{byte(i)}
		return []*types.Transaction{dynamic(0, 3, &at[0], nil, []byte{1}), refused(at[1]), dynamic(0, 4, &at[0], nil, nil),
			dynamic(0, 5, &at[1], nil, append(slot[:], 0)), refused(at[0]), dynamic(1, 0, &at[1], nil, slot[:])}
	}
	view, err := store.View(root)
	require.NoError(t, err)
	var got [64]*executed
	var group sync.WaitGroup
	for i := range got {
		c := view.Copy()
		group.Go(func() { got[i] = executeAll(t, c, config, block(i)) })
	}
	group.Wait()
	for i := range got {
		require.Equal(t, executeAll(t, view.Copy(), config, block(i)), got[i])
	}
}
