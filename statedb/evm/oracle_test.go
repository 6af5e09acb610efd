package evm

import (
	"bytes"
	"context"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/trie/bintrie"
	"github.com/ethereum/go-ethereum/triedb"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/statedb"
)

func newBintrie(t require.TestingT) *bintrie.BinaryTrie {
	nodes := triedb.NewDatabase(rawdb.NewMemoryDatabase(), triedb.UBTDefaults)
	theirs, err := bintrie.NewBinaryTrie(types.EmptyBinaryHash, nodes, 1)
	require.NoError(t, err)
	return theirs
}

// Raw writes to stems with common prefixes of any length are compared with
// go-ethereum's binary trie. Each four bytes of input are one write: the bit of
// the stem to set (0 to 247), the number of bits after it, the sub-index, and
// the value. An odd second byte commits in between.
func FuzzTreeAgainstBintrie(f *testing.F) {
	f.Add([]byte{0, 0, 1, 1, 247, 0, 2, 2, 8, 3, 255, 0})
	f.Add(bytes.Repeat([]byte{247, 1, 5, 9, 246, 2, 5, 9}, 40))
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) > 4*400 {
			t.Skip("long enough")
		}
		theirs := newBintrie(t)
		view, err := statedb.NewStore().View(statedb.EmptyRoot)
		require.NoError(t, err)
		for ; len(input) >= 4; input = input[4:] {
			var k statedb.Key
			for bit := int(input[0]); bit < 248; bit += int(input[1])*7 + 11 {
				k[bit/8] |= 0x80 >> (bit % 8)
			}
			k[statedb.StemSize] = input[2]
			value := [32]byte{input[3]}
			values := make([][]byte, 256)
			values[input[2]] = value[:]
			require.NoError(t, theirs.UpdateStem(k[:statedb.StemSize], values))
			view.Set(k, value)
			if input[1]%2 == 1 {
				require.Equal(t, theirs.Hash(), commit(t, view))
			}
		}
		require.Equal(t, theirs.Hash(), rootOf(t, view))
	})
}

// phoenixCode counts in slot 0 and destroys itself, paying its caller.
var phoenixCode = []byte{0x5f, 0x54, 0x60, 0x01, 0x01, 0x5f, 0x55, 0x33, 0xff}

var phoenix = phoenixOf(phoenixCode)

// phoenixOf deploys code by CREATE2 with salt 0. With input it also calls the
// deployed contract, which is then gone at the end of the transaction.
func phoenixOf(child []byte) []byte {
	init := deployer(child)
	code := []byte{
		0x60, byte(len(init)), 0x60, 0, 0x5f, 0x39, // CODECOPY(0, behind this code, size)
		0x5f, 0x60, byte(len(init)), 0x5f, 0x34, 0xf5, // CREATE2(callvalue, 0, size, 0)
		0x36, 0x15, 0x60, 0, 0x57, // no input: JUMP to the end
		0x5f, 0x5f, 0x5f, 0x5f, 0x5f, 0x85, 0x5a, 0xf1, // CALL(gas, child)
		0x5b, 0x00,
	}
	code[3], code[15] = byte(len(code)), byte(len(code)-2)
	return append(code, init...)
}

func phoenixChild(factory common.Address) common.Address { return phoenixChildOf(factory, phoenixCode) }

func phoenixChildOf(factory common.Address, child []byte) common.Address {
	return crypto.CreateAddress2(factory, [32]byte{}, crypto.Keccak256(deployer(child)))
}

func TestDestroyedAndCreatedAgain(t *testing.T) {
	store, root := genesis(t)
	factory := crypto.CreateAddress(addr(0), 0)
	child := phoenixChild(factory)
	receipts, view := run(t, store, root,
		dynamic(0, 0, nil, nil, deployer(phoenix)),
		dynamic(0, 1, &factory, big.NewInt(7), []byte{1}),
		dynamic(0, 2, &factory, big.NewInt(7), []byte{1}),
	)
	require.False(t, view.Account(child).Exists)
	require.Equal(t, uint64(14), view.Account(factory).Balance.Uint64(), "each child paid back what it was born with")
	again, view := run(t, store, view.ActiveRoot(), dynamic(0, 3, &factory, big.NewInt(7), nil))
	for _, r := range append(receipts, again...) {
		require.Equal(t, types.ReceiptStatusSuccessful, r.Status)
	}
	require.Equal(t, len(phoenixCode), view.Account(child).CodeSize)
	require.Equal(t, uint64(7), view.Account(child).Balance.Uint64())
	require.Zero(t, view.Storage(child, common.Hash{}))
}

// twin is go-ethereum's own state beside a store.
type twin struct {
	*state.StateDB
	pool *core.GasPool
	logs uint
}

// newTwin copies accounts without storage.
func newTwin(t require.TestingT, view *statedb.View, known []common.Address) *twin {
	theirs, err := state.New(types.EmptyRootHash, state.NewDatabaseForTesting())
	require.NoError(t, err)
	for _, a := range known {
		if account := view.Account(a); account.Exists {
			theirs.SetBalance(a, account.Balance, 0)
			theirs.SetNonce(a, account.Nonce, 0)
			theirs.SetCode(a, view.CodeAt(a), 0)
		}
	}
	theirs.Finalise(config.Rules(header().Number, true, header().Time))
	return &twin{StateDB: theirs}
}

// begin begins a block on both.
func (w *twin) begin(t require.TestingT, view *statedb.View) *Block {
	b, err := NewBlock(view, config, header(), noHashes)
	require.NoError(t, err)
	w.pool, w.logs = core.NewGasPool(header().GasLimit), 0
	return b
}

// apply executes a transaction on both and returns the receipt, which must be
// the same; nil if both refuse it.
func (w *twin) apply(t require.TestingT, b *Block, tx *types.Transaction) *types.Receipt {
	machine := vm.NewEVM(blockContext(header()), w.StateDB, config, vm.Config{})
	w.SetTxContext(tx.Hash(), len(b.Receipts()), 0)
	snapshot, unused := w.Snapshot(), w.pool.Snapshot()
	want, _, wantErr := core.ApplyTransaction(context.Background(), machine, w.pool, w.StateDB, header(), tx)
	got, err := b.Apply(tx)
	require.Equal(t, wantErr == nil, err == nil, "%v, want %v", err, wantErr)
	if err != nil {
		w.RevertToSnapshot(snapshot) // it has bought the gas already
		w.pool.Set(unused)
		return nil
	}
	require.Equal(t, want.Status, got.Status)
	require.Equal(t, want.CumulativeGasUsed, got.CumulativeGasUsed)
	require.Equal(t, want.Bloom, got.Bloom)
	require.Equal(t, want.ContractAddress, got.ContractAddress)
	for _, l := range got.Logs {
		require.Equal(t, w.logs, l.Index)
		w.logs++
	}
	return got
}

// requireSame compares accounts and some of their slots.
func (w *twin) requireSame(t require.TestingT, view *statedb.View, known []common.Address) {
	for _, a := range known {
		account := view.Account(a)
		require.Equal(t, w.Exist(a), account.Exists, "%s", a)
		require.Equal(t, w.GetBalance(a).ToBig(), account.Balance.ToBig())
		require.Equal(t, w.GetNonce(a), account.Nonce)
		require.Equal(t, w.GetCodeHash(a), account.CodeHash)
		require.Equal(t, w.GetCodeSize(a), account.CodeSize)
		require.True(t, bytes.Equal(w.GetCode(a), view.Code(account.CodeHash)))
		for _, slot := range []common.Hash{{}, {1}} {
			require.Equal(t, w.GetState(a, slot), view.Storage(a, slot))
		}
	}
}

// Random blocks leave the same accounts, storage and receipts as on go-ethereum's own state.
func TestSameAsGoEthereumsState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, root := genesis(t)
		view, err := store.View(root)
		require.NoError(t, err)
		known := []common.Address{header().Coinbase, {0xaa}, addr(0), addr(1), addr(2)}
		theirs := newTwin(t, view, known)
		var nonces [3]uint64
		var contracts []common.Address
		for range rapid.IntRange(1, 3).Draw(t, "blocks") {
			b := theirs.begin(t, view)
			for range rapid.IntRange(0, 8).Draw(t, "transactions") {
				from := rapid.IntRange(0, 2).Draw(t, "from")
				tx := drawTransaction(t, byte(from), nonces[from], contracts)
				got := theirs.apply(t, b, tx)
				if got == nil {
					continue
				}
				nonces[from]++
				if tx.To() == nil {
					contracts = append(contracts, got.ContractAddress)
					known = append(known, got.ContractAddress, phoenixChild(got.ContractAddress))
				}
			}
			require.NoError(t, b.Finish())
			commit(t, view)
		}
		theirs.requireSame(t, view, known)
	})
}

// Blocks agree too if contracts come and go at one address, delegations are set
// and cleared, and transient storage is used.
func TestComingAndGoingAsOnGoEthereumsState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, root, at := shifters(t)
		view, err := store.View(root)
		require.NoError(t, err)
		known := append(at[:], common.Address{19: 3}, common.Address{0xaa}, addr(0), addr(1), addr(2), header().Coinbase)
		theirs := newTwin(t, view, known)
		for range rapid.IntRange(1, 3).Draw(t, "blocks") {
			b := theirs.begin(t, view)
			for range rapid.IntRange(1, 8).Draw(t, "transactions") {
				theirs.apply(t, b, drawShift(t, b, append(known, at[0], at[1])))
			}
			require.NoError(t, b.Finish())
			commit(t, view)
		}
		theirs.requireSame(t, view, known)
	})
}

// drawTransaction draws a transfer, a deployment, or a call with or without
// input. Some have a wrong nonce or too little gas.
func drawTransaction(t *rapid.T, from byte, nonce uint64, contracts []common.Address) *types.Transaction {
	if rapid.IntRange(0, 9).Draw(t, "wrong nonce") == 0 {
		nonce++
	}
	value := big.NewInt(int64(rapid.IntRange(0, 2).Draw(t, "value")))
	gas := rapid.SampledFrom([]uint64{20_000, 25_000, 60_000, 300_000}).Draw(t, "gas")
	var to *common.Address
	var data []byte
	switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
	case kind == 0:
		to = &common.Address{0xaa}
	case kind == 1 || len(contracts) == 0:
		data = deployer(rapid.SampledFrom([][]byte{counter, reverter, phoenix, toggle, onlooker}).Draw(t, "code"))
	default:
		to = &contracts[rapid.IntRange(0, len(contracts)-1).Draw(t, "contract")]
		data = make([]byte, rapid.IntRange(0, 1).Draw(t, "input"))
	}
	return sign(from, &types.DynamicFeeTx{ChainID: config.ChainID, Nonce: nonce, GasTipCap: oneGwei, GasFeeCap: new(big.Int).Mul(oneGwei, big.NewInt(3)), Gas: gas, To: to, Value: value, Data: data})
}
