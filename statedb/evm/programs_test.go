package evm

import (
	"context"
	"encoding/json"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/triedb"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/statedb"
)

// world is a genesis in which random programs run, under the rules of some fork.
type world struct {
	rules  *params.ChainConfig
	header *types.Header
	people []common.Address // that programs and transactions know; the last ones are contracts
	alloc  types.GenesisAlloc
}

func drawWorld(t *rapid.T) *world {
	w := &world{rules: ChainConfig(config.ChainID), header: header(), alloc: types.GenesisAlloc{}}
	switch rapid.SampledFrom([]string{"Prague", "Osaka", "Cancun", "Shanghai", "London"}).Draw(t, "fork") {
	case "Osaka":
		w.rules.OsakaTime = new(uint64)
	case "London":
		w.rules.ShanghaiTime = nil
		fallthrough
	case "Shanghai":
		w.rules.CancunTime = nil
		fallthrough
	case "Cancun":
		w.rules.PragueTime = nil
	}
	contracts := []common.Address{{0xc0}, {0xc1}, {0xc2}, {0xc3}}
	w.people = append([]common.Address{addr(0), addr(1), addr(3), {0xe0}, {0xe1}, {19: 1}, {19: 2}, {19: 3}, {19: 4}, {19: 9},
		crypto.CreateAddress(contracts[0], 1), crypto.CreateAddress(addr(0), 0)}, contracts...)
	w.header.Number = big.NewInt(rapid.SampledFrom([]int64{1, 7, 300}).Draw(t, "number"))
	w.header.GasLimit = rapid.SampledFrom([]uint64{30_000_000, 1_200_000}).Draw(t, "limit")
	w.header.Coinbase = rapid.SampledFrom(append(w.people, common.Address{0xcb})).Draw(t, "coinbase")
	for i := range byte(3) {
		w.alloc[addr(i)] = types.Account{Balance: new(big.Int).Mul(ether, big.NewInt(100))}
	}
	w.alloc[common.Address{0xe0}] = types.Account{Balance: new(big.Int)} // empty, and there
	for _, c := range contracts {
		account := types.Account{Balance: big.NewInt(rapid.Int64Range(0, 3).Draw(t, "balance")), Nonce: 1, Code: program(t, w.people, 2)}
		if w.rules.CancunTime != nil && rapid.Bool().Draw(t, "stored") {
			account.Storage = map[common.Hash]common.Hash{{}: {31: 1}, {31: 1}: {31: 2}}
		}
		w.alloc[c] = account
	}
	return w
}

// theirs is the genesis in go-ethereum's own state, on one of its trees.
func (w *world) theirs(t require.TestingT, empty common.Hash, db state.Database) *state.StateDB {
	sdb, err := state.New(empty, db)
	require.NoError(t, err)
	for a, account := range w.alloc {
		sdb.CreateAccount(a)
		sdb.SetCode(a, account.Code, 0)
		sdb.SetNonce(a, account.Nonce, 0)
		sdb.SetBalance(a, uint256.MustFromBig(account.Balance), 0)
		for slot, value := range account.Storage {
			sdb.SetState(a, slot, value)
		}
	}
	root, err := sdb.Commit(params.Rules{}, 0)
	require.NoError(t, err)
	sdb, err = state.New(root, db)
	require.NoError(t, err)
	return sdb
}

// draw draws a transaction of any type. It may be one that is refused.
func (w *world) draw(t *rapid.T, nonce func(common.Address) uint64) *types.Transaction {
	from := rapid.Byte().Draw(t, "from") % 3
	at := nonce(addr(from))
	if rapid.IntRange(0, 7).Draw(t, "wrong nonce") == 7 {
		at += 5
	}
	value := big.NewInt(rapid.Int64Range(0, 2).Draw(t, "value"))
	gas := rapid.SampledFrom([]uint64{1_000_000, 500_000, 150_000, 60_000, 21_000, 20_000, 1<<24 + 1}).Draw(t, "gas")
	tip := big.NewInt(rapid.Int64Range(0, 1).Draw(t, "tip"))
	price := new(big.Int).Add(oneGwei, tip)
	// Contracts are more frequent.
	to := &w.people[len(w.people)-1-rapid.IntRange(0, len(w.people)-1).Draw(t, "to")]
	data := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "data")
	kind := rapid.IntRange(0, 5).Draw(t, "type")
	if kind == types.SetCodeTxType {
		return w.drawSetCode(t, nonce, from, &types.SetCodeTx{ChainID: uint256.NewInt(4359), Nonce: at, GasTipCap: uint256.MustFromBig(tip),
			GasFeeCap: uint256.NewInt(3 * params.GWei), Gas: gas, To: *to, Value: uint256.MustFromBig(value), Data: data, AccessList: w.drawAccessList(t)})
	}
	if rapid.IntRange(0, 4).Draw(t, "creates") == 4 {
		to, data = nil, program(t, w.people, 1)
		if rapid.Bool().Draw(t, "deploys") {
			data = deployer(data)
		}
	}
	switch kind {
	case types.LegacyTxType:
		return sign(from, &types.LegacyTx{Nonce: at, GasPrice: price, Gas: gas, To: to, Value: value, Data: data})
	case types.AccessListTxType:
		return sign(from, &types.AccessListTx{ChainID: config.ChainID, Nonce: at, GasPrice: price, Gas: gas, To: to, Value: value, Data: data, AccessList: w.drawAccessList(t)})
	}
	return sign(from, &types.DynamicFeeTx{ChainID: config.ChainID, Nonce: at, GasTipCap: tip, GasFeeCap: big.NewInt(3 * params.GWei), Gas: gas,
		To: to, Value: value, Data: data, AccessList: w.drawAccessList(t)})
}

func (w *world) drawAccessList(t *rapid.T) (list types.AccessList) {
	for range rapid.IntRange(0, 2).Draw(t, "warm") {
		list = append(list, types.AccessTuple{Address: rapid.SampledFrom(w.people).Draw(t, "warmed"), StorageKeys: []common.Hash{{}, {31: 1}}})
	}
	return list
}

// drawSetCode signs a transaction with authorizations of any account for any
// account, including the sender and precompiles. Some are invalid.
func (w *world) drawSetCode(t *rapid.T, nonce func(common.Address) uint64, from byte, tx *types.SetCodeTx) *types.Transaction {
	for range rapid.IntRange(1, 3).Draw(t, "authorizations") {
		who := rapid.Byte().Draw(t, "authority") % 4
		auth := types.SetCodeAuthorization{ChainID: *uint256.NewInt(rapid.SampledFrom([]uint64{4359, 0, 5}).Draw(t, "chain")), Nonce: nonce(addr(who)),
			Address: rapid.SampledFrom(append(w.people, common.Address{}, addr(who))).Draw(t, "delegate")}
		if who == from || rapid.IntRange(0, 5).Draw(t, "later nonce") == 5 {
			auth.Nonce++
		}
		signed, err := types.SignSetCode(key(who), auth)
		require.NoError(t, err)
		tx.AuthList = append(tx.AuthList, signed)
	}
	return sign(from, tx)
}

func (w *world) hash(n uint64) common.Hash { return common.Hash{0xb1, byte(n)} }

func (w *world) begin(t require.TestingT, view *statedb.View) *Block {
	b, err := NewBlock(view, w.rules, w.header, w.hash)
	require.NoError(t, err)
	return b
}

// execute draws a block's transactions and executes them on both states, with
// the same receipts and errors. It returns the accepted ones, and false if an
// account that destroyed itself ended the block.
func (w *world) execute(t *rapid.T, b *Block, theirs *state.StateDB) (in []*types.Transaction, ok bool) {
	pool, logs := core.NewGasPool(w.header.GasLimit), uint(0)
	for range rapid.IntRange(1, 7).Draw(t, "transactions") {
		tx := w.draw(t, theirs.GetNonce)
		c := blockContext(w.header)
		c.GetHash = w.hash
		theirs.SetTxContext(tx.Hash(), len(in), 0)
		snapshot, unused := theirs.Snapshot(), pool.Snapshot()
		want, _, wantErr := core.ApplyTransaction(context.Background(), vm.NewEVM(c, theirs, w.rules, vm.Config{}), pool, theirs, w.header, tx)
		got, err := b.Apply(tx)
		if wantErr != nil {
			require.ErrorContains(t, err, wantErr.Error())
			theirs.RevertToSnapshot(snapshot) // it has bought the gas already
			pool.Set(unused)
			continue
		}
		if w.rules.CancunTime == nil && err != nil {
			require.ErrorIs(t, err, ErrDestroyed)
			return in, false
		}
		require.NoError(t, err)
		in = append(in, tx)
		for _, l := range want.Logs {
			l.BlockHash, l.Index = common.Hash{}, logs
			logs++
		}
		want.BlockHash, want.EffectiveGasPrice = common.Hash{}, got.EffectiveGasPrice
		require.Equal(t, show(t, want), show(t, got))
	}
	return in, true
}

// theirRoot is the root of go-ethereum's binary trie after transactions.
func (w *world) theirRoot(t require.TestingT, txs []*types.Transaction) common.Hash {
	sdb := w.theirs(t, types.EmptyBinaryHash, state.NewDatabase(triedb.NewDatabase(rawdb.NewMemoryDatabase(), triedb.UBTDefaults), nil))
	rules := w.rules.Rules(w.header.Number, true, w.header.Time)
	c := blockContext(w.header)
	c.GetHash = w.hash
	for i, tx := range txs {
		msg, err := core.TransactionToMessage(tx, signer, w.header.BaseFee)
		require.NoError(t, err)
		sdb.SetTxContext(tx.Hash(), i, 0)
		_, err = core.ApplyMessage(vm.NewEVM(c, sdb, w.rules, vm.Config{}), msg, core.NewGasPool(w.header.GasLimit))
		require.NoError(t, err)
		sdb.Finalise(rules)
	}
	for _, a := range w.people {
		sdb.GetCode(a) // unloaded code has size zero there
	}
	return sdb.IntermediateRoot(rules)
}

func show(t require.TestingT, r *types.Receipt) string {
	b, err := json.Marshal(r)
	require.NoError(t, err)
	return string(b)
}

// requireSame compares everything in the witness, and all accounts.
func (w *world) requireSame(t require.TestingT, theirs *state.StateDB, view *statedb.View) {
	known := map[common.Address]bool{}
	for _, a := range w.people {
		known[a] = true
	}
	for _, e := range view.Entries() {
		if known[e.Address] = true; e.Kind == statedb.StorageAccess {
			require.Equal(t, theirs.GetState(e.Address, e.Slot), view.Storage(e.Address, e.Slot), "%s", e)
		}
	}
	for a := range known {
		account := view.Account(a)
		require.Equal(t, theirs.Exist(a), account.Exists, "%s", a)
		require.Equal(t, theirs.GetBalance(a).ToBig(), account.Balance.ToBig())
		require.Equal(t, theirs.GetNonce(a), account.Nonce)
		require.Equal(t, theirs.GetCodeHash(a), account.CodeHash)
		require.Equal(t, theirs.GetCodeSize(a), account.CodeSize)
		require.Equal(t, string(theirs.GetCode(a)), string(view.CodeAt(a)))
	}
}

// Random programs run under the forks since London, with transactions of all
// types. A view and go-ethereum's state agree on receipts, errors, accounts and
// slots, and the view and go-ethereum's binary trie on the root. The witness
// suffices to execute the accepted transactions again, and has nothing else.
func TestProgramsAsOnGoEthereumsState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		view, err := statedb.NewStore().View(statedb.EmptyRoot)
		require.NoError(t, err)
		require.NoError(t, Genesis(view, w.alloc))
		root := commit(t, view)
		b, theirs := w.begin(t, view), w.theirs(t, types.EmptyRootHash, state.NewDatabaseForTesting())
		in, ok := w.execute(t, b, theirs)
		if !ok {
			return
		}
		require.NoError(t, b.Finish())
		theirs.IntermediateRoot(w.rules.Rules(w.header.Number, true, w.header.Time))
		w.requireSame(t, theirs, view.Copy())
		require.Equal(t, w.theirRoot(t, in), rootOf(t, view))

		witness, err := view.Witness()
		require.NoError(t, err)
		post, err := statedb.Verify(witness, root, view.Writes())
		require.NoError(t, err)
		require.Equal(t, rootOf(t, view), post)
		stateless, err := statedb.NewStateless(witness, root)
		require.NoError(t, err)
		again := w.begin(t, stateless)
		for _, tx := range in {
			_, err := again.Apply(tx)
			require.NoError(t, err)
		}
		require.NoError(t, again.Finish())
		require.Equal(t, post, rootOf(t, stateless))
		require.NoError(t, stateless.Matches(witness))
		require.Equal(t, view.Reads(), stateless.Reads())
		for i, receipt := range again.Receipts() {
			require.Equal(t, show(t, b.Receipts()[i]), show(t, receipt))
		}
	})
}
