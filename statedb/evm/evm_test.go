package evm

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/trie/bintrie"
	"github.com/ethereum/go-ethereum/triedb"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/statedb"
)

var (
	config  = ChainConfig(big.NewInt(4359))
	signer  = types.LatestSigner(config)
	ether   = big.NewInt(params.Ether)
	oneGwei = big.NewInt(params.GWei)
)

func key(i byte) *ecdsa.PrivateKey {
	k, err := crypto.ToECDSA(crypto.Keccak256([]byte{i}))
	if err != nil {
		panic(err)
	}
	return k
}

func addr(i byte) common.Address { return crypto.PubkeyToAddress(key(i).PublicKey) }

func header() *types.Header {
	return &types.Header{Number: big.NewInt(1), Time: 1, GasLimit: 30_000_000, BaseFee: oneGwei, Coinbase: common.Address{0xcb}, MixDigest: common.Hash{7}}
}

func noHashes(uint64) common.Hash { return common.Hash{} }

// genesis is a store with three rich accounts, and their root.
func genesis(t require.TestingT) (*statedb.Store, common.Hash) {
	return genesisOf(t)
}

func genesisOf(t require.TestingT) (*statedb.Store, common.Hash) {
	store := statedb.NewStore()
	view, err := store.View(statedb.EmptyRoot)
	require.NoError(t, err)
	alloc := types.GenesisAlloc{}
	for i := range byte(3) {
		alloc[addr(i)] = types.Account{Balance: new(big.Int).Mul(ether, big.NewInt(100))}
	}
	require.NoError(t, Genesis(view, alloc))
	return store, commit(t, view)
}

func commit(t require.TestingT, view *statedb.View) common.Hash {
	root, err := view.Commit()
	require.NoError(t, err)
	return root
}

func rootOf(t require.TestingT, view *statedb.View) common.Hash {
	root, err := view.Root()
	require.NoError(t, err)
	return root
}

// run executes transactions on a root and returns the receipts and the root after them.
func run(t require.TestingT, store *statedb.Store, root common.Hash, txs ...*types.Transaction) (types.Receipts, *statedb.View) {
	view, err := store.View(root)
	require.NoError(t, err)
	b, err := NewBlock(view, config, header(), noHashes)
	require.NoError(t, err)
	for _, tx := range txs {
		_, err := b.Apply(tx)
		require.NoError(t, err)
	}
	require.NoError(t, b.Finish())
	commit(t, view)
	return b.Receipts(), view
}

func sign(i byte, data types.TxData) *types.Transaction {
	return types.MustSignNewTx(key(i), signer, data)
}

func dynamic(i byte, nonce uint64, to *common.Address, value *big.Int, data []byte) *types.Transaction {
	return sign(i, &types.DynamicFeeTx{ChainID: config.ChainID, Nonce: nonce, GasTipCap: oneGwei, GasFeeCap: big.NewInt(3 * params.GWei), Gas: 500_000, To: to, Value: value, Data: data})
}

// deployer returns init code that deploys the given code.
func deployer(code []byte) []byte {
	// PUSH2 size DUP1 PUSH1 12 PUSH0 CODECOPY PUSH0 RETURN, padded to 12 bytes
	return append([]byte{0x61, byte(len(code) >> 8), byte(len(code)), 0x80, 0x60, 12, 0x5f, 0x39, 0x5f, 0xf3, 0, 0}, code...)
}

// counter adds one to slot 0, logs the new value under topic 1 and returns it.
var counter = []byte{
	0x5f, 0x54, 0x60, 0x01, 0x01, // SLOAD(0) + 1
	0x80, 0x5f, 0x55, // SSTORE(0, …)
	0x5f, 0x52, // MSTORE(0, …)
	0x60, 0x01, 0x60, 0x20, 0x5f, 0xa1, // LOG1(0, 32, 1)
	0x60, 0x20, 0x5f, 0xf3, // RETURN(0, 32)
}

// toggle makes slot 0 one if it is zero, and zero if it is not.
var toggle = []byte{0x5f, 0x54, 0x15, 0x5f, 0x55, 0x00}

// onlooker asks for an account's balance and does nothing with it.
var onlooker = append(append([]byte{0x73}, addr(1).Bytes()...), 0x31, 0x00)

// reverter reverts with its input.
var reverter = []byte{0x36, 0x5f, 0x5f, 0x37, 0x36, 0x5f, 0xfd}

func TestTransferPaysEveryone(t *testing.T) {
	store, root := genesis(t)
	to := common.Address{0xaa}
	receipts, view := run(t, store, root, dynamic(0, 0, &to, ether, nil))
	require.Equal(t, uint64(21000), receipts[0].GasUsed)
	require.Equal(t, types.ReceiptStatusSuccessful, receipts[0].Status)
	require.Equal(t, big.NewInt(2*params.GWei), receipts[0].EffectiveGasPrice)
	require.Equal(t, ether, view.Account(to).Balance.ToBig())
	require.Equal(t, uint64(1), view.Account(addr(0)).Nonce)
	fee := big.NewInt(21000 * 2 * params.GWei)
	want := new(big.Int).Sub(new(big.Int).Mul(ether, big.NewInt(99)), fee)
	require.Equal(t, want, view.Account(addr(0)).Balance.ToBig())
	require.Equal(t, big.NewInt(21000*params.GWei), view.Account(header().Coinbase).Balance.ToBig(), "the tip; the base fee is burnt")
}

func TestContractLife(t *testing.T) {
	store, root := genesis(t)
	at := crypto.CreateAddress(addr(0), 0)
	receipts, view := run(t, store, root,
		dynamic(0, 0, nil, nil, deployer(counter)),
		dynamic(1, 0, &at, nil, nil),
		dynamic(0, 1, &at, nil, nil),
	)
	require.Equal(t, at, receipts[0].ContractAddress)
	require.Equal(t, common.Hash{31: 2}, view.Storage(at, common.Hash{}))
	require.Equal(t, counter, view.Code(view.Account(at).CodeHash))
	require.Equal(t, len(counter), view.Account(at).CodeSize)
	require.Equal(t, uint(0), receipts[1].Logs[0].Index)
	require.Equal(t, uint(1), receipts[2].Logs[0].Index, "log indices count along the block")
	require.Equal(t, common.Hash{31: 1}, receipts[2].Logs[0].Topics[0])
	require.True(t, types.BloomLookup(receipts[1].Bloom, at))
	require.Equal(t, receipts[0].GasUsed+receipts[1].GasUsed+receipts[2].GasUsed, receipts[2].CumulativeGasUsed)

	// A later block that touches the contract without loading its code keeps the code's size.
	_, later := run(t, store, view.ActiveRoot(), dynamic(2, 0, &at, nil, nil))
	require.Equal(t, len(counter), later.Account(at).CodeSize)
	require.Equal(t, common.Hash{31: 3}, later.Storage(at, common.Hash{}))
}

func TestFailuresThatAreReceipts(t *testing.T) {
	store, root := genesis(t)
	at := crypto.CreateAddress(addr(0), 0)
	short := sign(1, &types.LegacyTx{Nonce: 1, GasPrice: big.NewInt(2 * params.GWei), Gas: 21_100, To: &at, Data: nil})
	receipts, view := run(t, store, root,
		dynamic(0, 0, nil, nil, deployer(reverter)),
		dynamic(1, 0, &at, big.NewInt(5), []byte("no")),
		short,
	)
	require.Equal(t, types.ReceiptStatusFailed, receipts[1].Status)
	require.Less(t, receipts[1].GasUsed, uint64(100_000), "a revert gives the rest back")
	require.Zero(t, view.Account(at).Balance.Sign())
	require.Equal(t, uint64(2), view.Account(addr(1)).Nonce)
}

// A transaction that cannot be in the block changes nothing, and the block continues.
func TestRefusedTransactionsChangeNothing(t *testing.T) {
	store, root := genesis(t)
	view, err := store.View(root)
	require.NoError(t, err)
	b, err := NewBlock(view, config, header(), noHashes)
	require.NoError(t, err)
	to := common.Address{1}
	for want, tx := range map[error]*types.Transaction{
		core.ErrNonceTooHigh:      dynamic(0, 3, &to, nil, nil),
		core.ErrInsufficientFunds: dynamic(0, 0, &to, new(big.Int).Mul(ether, big.NewInt(101)), nil),
		core.ErrFeeCapTooLow:      sign(0, &types.LegacyTx{GasPrice: big.NewInt(1), Gas: 21000, To: &to}),
		core.ErrIntrinsicGas:      sign(0, &types.LegacyTx{GasPrice: big.NewInt(2 * params.GWei), Gas: 20000, To: &to}),
		core.ErrGasLimitReached:   sign(0, &types.LegacyTx{GasPrice: big.NewInt(2 * params.GWei), Gas: 30_000_001, To: &to}),
		ErrBlob:                   sign(0, &types.BlobTx{ChainID: uint256.NewInt(4359), BlobHashes: []common.Hash{{1}}}),
	} {
		_, err := b.Apply(tx)
		require.ErrorIs(t, err, want)
	}
	require.Empty(t, b.Receipts())
	require.Zero(t, b.GasUsed())
	_, err = b.Apply(dynamic(0, 0, &to, ether, nil))
	require.NoError(t, err)
	require.NoError(t, b.Finish())
	require.ErrorIs(t, b.Finish(), ErrFinished)
	_, clean := run(t, store, root, dynamic(0, 0, &to, ether, nil))
	require.Equal(t, clean.ActiveRoot(), rootOf(t, view))
}

func TestSetCodeAndAccessList(t *testing.T) {
	store, root := genesis(t)
	at := crypto.CreateAddress(addr(0), 0)
	auth, err := types.SignSetCode(key(2), types.SetCodeAuthorization{ChainID: *uint256.NewInt(4359), Address: at})
	require.NoError(t, err)
	wallet := addr(2)
	setCode := sign(1, &types.SetCodeTx{ChainID: uint256.NewInt(4359), GasTipCap: uint256.NewInt(params.GWei), GasFeeCap: uint256.NewInt(3 * params.GWei), Gas: 500_000, To: wallet, AuthList: []types.SetCodeAuthorization{auth}})
	list := sign(1, &types.AccessListTx{ChainID: config.ChainID, Nonce: 1, GasPrice: big.NewInt(2 * params.GWei), Gas: 100_000, To: &at, AccessList: types.AccessList{{Address: at, StorageKeys: []common.Hash{{}}}}})
	receipts, view := run(t, store, root, dynamic(0, 0, nil, nil, deployer(counter)), setCode, list)
	for _, r := range receipts {
		require.Equal(t, types.ReceiptStatusSuccessful, r.Status)
	}
	require.Equal(t, common.Hash{31: 1}, view.Storage(wallet, common.Hash{}), "the wallet ran the counter on its own storage")
	delegate, ok := types.ParseDelegation(view.Code(view.Account(wallet).CodeHash))
	require.True(t, ok)
	require.Equal(t, at, delegate)
	require.Equal(t, uint64(1), view.Account(wallet).Nonce)
}

// sentBy is a signer that knows who sends.
type sentBy struct {
	types.Signer
	from common.Address
}

func (s sentBy) Sender(*types.Transaction) (common.Address, error) { return s.from, nil }
func (s sentBy) Equal(types.Signer) bool                           { return false }

// SetSigner decides who sends, which may be a contract. A signature of Ethereum is then not
// needed.
func TestSetSigner(t *testing.T) {
	store, root := genesis(t)
	contract := crypto.CreateAddress(addr(0), 0)
	_, view := run(t, store, root, dynamic(0, 0, nil, nil, deployer(counter)))
	root, account := rootOf(t, view), view.Account(contract)
	view, err := store.View(root)
	require.NoError(t, err)
	account.Balance = uint256.MustFromBig(ether)
	require.NoError(t, view.SetAccount(contract, account))
	root = commit(t, view)

	to := common.Address{0x70}
	tx := types.NewTx(&types.DynamicFeeTx{ChainID: config.ChainID, Nonce: account.Nonce, GasTipCap: oneGwei, GasFeeCap: big.NewInt(3 * params.GWei), Gas: 50_000, To: &to, Value: oneGwei})
	apply := func(own types.Signer) (*statedb.View, error) {
		view, err := store.View(root)
		require.NoError(t, err)
		b, err := NewBlock(view, config, header(), noHashes)
		require.NoError(t, err)
		if own != nil {
			b.SetSigner(own)
		}
		_, err = b.Apply(tx)
		require.NoError(t, b.Finish())
		return view, err
	}
	_, err = apply(nil)
	require.ErrorIs(t, err, types.ErrInvalidSig)
	view, err = apply(sentBy{signer, contract})
	require.NoError(t, err)
	require.EqualValues(t, params.GWei, view.Account(to).Balance.Uint64())
	require.Equal(t, account.Nonce+1, view.Account(contract).Nonce)
	require.Equal(t, account.CodeHash, view.Account(contract).CodeHash)
}

// A contract that destroys itself in the transaction of its creation leaves nothing.
func TestSelfDestructInCreation(t *testing.T) {
	store, root := genesis(t)
	receipts, view := run(t, store, root, dynamic(0, 0, nil, big.NewInt(9), []byte{0x60, 0x01, 0x5f, 0x55, 0x60, 0xaa, 0xff}))
	require.Equal(t, types.ReceiptStatusSuccessful, receipts[0].Status)
	require.False(t, view.Account(receipts[0].ContractAddress).Exists)
	require.Equal(t, uint64(9), view.Account(common.Address{19: 0xaa}).Balance.Uint64())
}

func TestBalanceBeyond128BitsIsRefused(t *testing.T) {
	store := statedb.NewStore()
	view, err := store.View(statedb.EmptyRoot)
	require.NoError(t, err)
	most := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1))
	require.ErrorIs(t, Genesis(view, types.GenesisAlloc{addr(0): {Balance: ether}, addr(1): {Balance: most}}), statedb.ErrBalanceRange)
	view.Reset()
	for i, balance := range []*big.Int{ether, most} { // each alone has too little
		require.NoError(t, Genesis(view, types.GenesisAlloc{addr(byte(i)): {Balance: balance}}))
	}
	root := commit(t, view)
	require.ErrorIs(t, Genesis(view, types.GenesisAlloc{addr(2): {Balance: new(big.Int).Add(most, big.NewInt(1))}}), statedb.ErrBalanceRange)
	to := addr(1)
	view, err = store.View(root)
	require.NoError(t, err)
	b, err := NewBlock(view, config, header(), noHashes)
	require.NoError(t, err)
	_, err = b.Apply(dynamic(0, 0, &to, big.NewInt(1), nil))
	require.NoError(t, err)
	err = b.Finish()
	require.ErrorIs(t, err, ErrState)
	require.ErrorIs(t, err, statedb.ErrBalanceRange)
}

func TestCallAndEstimate(t *testing.T) {
	store, root := genesis(t)
	_, view := run(t, store, root, dynamic(0, 0, nil, nil, deployer(counter)), dynamic(0, 1, nil, nil, deployer(reverter)))
	count, revert := crypto.CreateAddress(addr(0), 0), crypto.CreateAddress(addr(0), 1)
	message := func(to *common.Address, data []byte) *core.Message {
		return &core.Message{From: addr(1), To: to, GasLimit: 1_000_000, Data: data, Value: new(uint256.Int), GasPrice: new(uint256.Int), GasFeeCap: new(uint256.Int), GasTipCap: new(uint256.Int)}
	}
	before := rootOf(t, view)
	result, err := Call(t.Context(), view.Copy(), config, header(), noHashes, message(&count, nil))
	require.NoError(t, err)
	require.Equal(t, common.Hash{31: 1}.Bytes(), result.ReturnData)
	result, err = Call(t.Context(), view.Copy(), config, header(), noHashes, message(&revert, []byte("why")))
	require.NoError(t, err)
	require.ErrorIs(t, result.Err, vm.ErrExecutionReverted)
	require.Equal(t, []byte("why"), result.Revert())

	gas, _, err := Estimate(t.Context(), view.Copy(), config, header(), noHashes, message(&count, nil), 0)
	require.NoError(t, err)
	exact := sign(1, &types.LegacyTx{GasPrice: big.NewInt(2 * params.GWei), Gas: gas, To: &count})
	receipts, _ := run(t, store, view.ActiveRoot(), exact)
	require.Equal(t, types.ReceiptStatusSuccessful, receipts[0].Status)
	_, data, err := Estimate(t.Context(), view.Copy(), config, header(), noHashes, message(&revert, []byte("why")), 0)
	require.ErrorIs(t, err, vm.ErrExecutionReverted)
	require.Equal(t, []byte("why"), data)
	require.Equal(t, before, rootOf(t, view), "calls leave no trace")

	// JUMPDEST PUSH0 JUMP: an endless loop, until the context ends.
	_, looped := run(t, store, root, dynamic(0, 0, nil, nil, deployer([]byte{0x5b, 0x5f, 0x56})))
	endless := message(&count, nil)
	endless.GasLimit = 1 << 62
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	_, err = Call(ctx, looped, config, header(), noHashes, endless)
	require.ErrorIs(t, err, enough)
}

func TestBlockHashInstruction(t *testing.T) {
	store, root := genesis(t)
	// BLOCKHASH(NUMBER−1), returned
	code := []byte{0x60, 0x01, 0x43, 0x03, 0x40, 0x5f, 0x52, 0x60, 0x20, 0x5f, 0xf3}
	_, view := run(t, store, root, dynamic(0, 0, nil, nil, deployer(code)))
	at := crypto.CreateAddress(addr(0), 0)
	h := header()
	h.Number = big.NewInt(9)
	hashes := func(n uint64) common.Hash { return common.Hash{byte(n)} }
	result, err := Call(t.Context(), view, config, h, hashes, &core.Message{From: addr(1), To: &at, GasLimit: 100_000, Value: new(uint256.Int), GasPrice: new(uint256.Int), GasFeeCap: new(uint256.Int), GasTipCap: new(uint256.Int)})
	require.NoError(t, err)
	require.Equal(t, common.Hash{8}.Bytes(), result.ReturnData)
}

// The estimator must answer every question that a contract may have about its block.
func TestEstimateAnswersEveryQuestion(t *testing.T) {
	store, root := genesis(t)
	for name, code := range map[string][]byte{
		"BLOBBASEFEE":    {0x4a, 0x00},
		"old BLOCKHASH":  {0x60, 200, 0x43, 0x03, 0x40, 0x5f, 0x52, 0x60, 0x20, 0x5f, 0xf3},
		"no such block":  {0x61, 0x10, 0x00, 0x40, 0x00},
		"PREVRANDAO":     {0x44, 0x00},
		"all of CHAINID": {0x46, 0x00},
	} {
		_, view := run(t, store, root, dynamic(0, 0, nil, nil, deployer(code)))
		at := crypto.CreateAddress(addr(0), 0)
		h := header()
		h.Number = big.NewInt(500)
		msg := &core.Message{From: addr(1), To: &at, GasLimit: 100_000, Value: new(uint256.Int), GasPrice: new(uint256.Int), GasFeeCap: new(uint256.Int), GasTipCap: new(uint256.Int)}
		_, _, err := Estimate(t.Context(), view, config, h, func(n uint64) common.Hash { return common.Hash{byte(n)} }, msg, 0)
		require.NoError(t, err, name)
	}
}

// The roots equal those of go-ethereum's binary trie, for any accounts, storage and code.
func TestRootsEqualGoEthereums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := statedb.NewStore()
		view, err := store.View(statedb.EmptyRoot)
		require.NoError(t, err)
		nodes := triedb.NewDatabase(rawdb.NewMemoryDatabase(), triedb.UBTDefaults)
		theirs, err := bintrie.NewBinaryTrie(types.EmptyBinaryHash, nodes, 1)
		require.NoError(t, err)
		pick := rapid.SampledFrom([]common.Address{{}, {1}, {0x80}, {0xff, 0xff}, addr(1)})
		slots := rapid.SampledFrom([]common.Hash{{}, {31: 1}, {31: 63}, {31: 64}, {30: 1}, {0: 0xff}, {0: 0xff, 31: 1}, {0: 0xfe, 31: 200}, {1: 1}})
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			a := pick.Draw(t, "address")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				account := types.StateAccount{Nonce: rapid.Uint64().Draw(t, "nonce"), Balance: uint256.NewInt(rapid.Uint64().Draw(t, "balance")), CodeHash: types.EmptyCodeHash[:]}
				size := rapid.IntRange(0, 30_000).Draw(t, "size")
				require.NoError(t, theirs.UpdateAccount(a, &account, size))
				require.NoError(t, view.SetAccount(a, statedb.Account{Nonce: account.Nonce, Balance: account.Balance, CodeHash: types.EmptyCodeHash, CodeSize: size}))
			case 1:
				slot, value := slots.Draw(t, "slot"), common.Hash{31: rapid.Byte().Draw(t, "value")}
				require.NoError(t, theirs.UpdateStorage(a, slot[:], common.TrimLeftZeroes(value[:])))
				view.SetStorage(a, slot, value)
			case 2:
				code := bytes.Repeat(rapid.SliceOfN(rapid.SampledFrom([]byte{0x60, 0x7f, 0x7e, 0x00, 0x5b}), 1, 40).Draw(t, "code"), rapid.IntRange(1, 200).Draw(t, "times"))
				require.NoError(t, theirs.UpdateContractCode(a, crypto.Keccak256Hash(code), code))
				_, err := view.SetCode(a, code)
				require.NoError(t, err)
			case 3:
				require.NoError(t, theirs.DeleteAccount(a))
				view.DeleteAccount(a)
			}
			if rapid.Bool().Draw(t, "commit") {
				commit(t, view)
			}
		}
		require.Equal(t, theirs.Hash(), rootOf(t, view))
	})
}

// A host may set an account without a code hash: it runs as one without code.
func TestAccountWithoutCodeHash(t *testing.T) {
	store, root := genesis(t)
	view, err := store.View(root)
	require.NoError(t, err)
	to := common.Address{0xaa}
	for _, a := range []common.Address{addr(3), to} {
		require.NoError(t, view.SetAccount(a, statedb.Account{Balance: uint256.MustFromBig(ether)}))
	}
	_, after := run(t, store, commit(t, view), dynamic(3, 0, &to, big.NewInt(1), nil))
	require.Equal(t, types.EmptyCodeHash, after.Account(to).CodeHash)
	require.Equal(t, new(big.Int).Add(ether, common.Big1), after.Account(to).Balance.ToBig())
}
