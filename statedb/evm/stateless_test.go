package evm

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/statedb"
)

// execute runs transactions as one block, without committing. It leaves out
// those that cannot be in the block.
func execute(t require.TestingT, view *statedb.View, txs []*types.Transaction) (types.Receipts, common.Hash) {
	b, err := NewBlock(view, config, header(), noHashes)
	require.NoError(t, err)
	for _, tx := range txs {
		if _, err := b.Apply(tx); err != nil {
			require.NotErrorIs(t, err, ErrState)
		}
	}
	require.NoError(t, b.Finish())
	return b.Receipts(), rootOf(t, view)
}

// accepted are the transactions that have a receipt.
func accepted(txs []*types.Transaction, receipts types.Receipts) (in []*types.Transaction) {
	for _, tx := range txs {
		if len(in) < len(receipts) && receipts[len(in)].TxHash == tx.Hash() {
			in = append(in, tx)
		}
	}
	return in
}

// Random blocks are executed again on their witness alone, without the refused
// transactions. Receipts and root are the same, and the witness has exactly the
// values that the execution needs.
func TestStatelessExecution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, root := genesis(t)
		var nonces [3]uint64
		var contracts []common.Address
		for range rapid.IntRange(1, 3).Draw(t, "blocks") {
			var txs []*types.Transaction
			for range rapid.IntRange(0, 6).Draw(t, "transactions") {
				from := rapid.IntRange(0, 2).Draw(t, "from")
				txs = append(txs, drawTransaction(t, byte(from), nonces[from], contracts))
				nonces[from]++
			}
			view, err := store.View(root)
			require.NoError(t, err)
			receipts, want := execute(t, view, txs)
			made, err := view.Witness()
			require.NoError(t, err)

			w, err := statedb.ParseWitness(made.Encode())
			require.NoError(t, err)
			post, err := statedb.Verify(w, root, view.Writes())
			require.NoError(t, err)
			require.Equal(t, want, post)
			stateless, err := statedb.NewStateless(w, root)
			require.NoError(t, err)
			again, got := execute(t, stateless, accepted(txs, receipts))
			require.Equal(t, want, got)
			require.Equal(t, receipts, again)
			require.NoError(t, stateless.Matches(w))

			root = commit(t, view)
			for i := range nonces {
				nonces[i] = view.Account(addr(byte(i))).Nonce
			}
			for _, r := range receipts {
				if r.ContractAddress != (common.Address{}) {
					contracts = append(contracts, r.ContractAddress)
				}
			}
		}
	})
}

// A read of a block belongs to the transaction that read it first.
func TestReadsKnowTheirTransaction(t *testing.T) {
	store, root := genesis(t)
	view, err := store.View(root)
	require.NoError(t, err)
	to := []common.Address{{0xaa}, {0xbb}}
	execute(t, view, []*types.Transaction{dynamic(0, 0, &to[0], ether, nil), dynamic(1, 0, &to[1], ether, nil)})
	first := map[common.Address]int{}
	for _, r := range view.Reads() {
		if _, seen := first[r.Address]; !seen {
			first[r.Address] = r.Transaction
		}
	}
	require.Equal(t, map[common.Address]int{addr(0): 0, to[0]: 0, header().Coinbase: 0, addr(1): 1, to[1]: 1}, first)
}

// A missing account in the witness stops the block. The reader's error does not
// pass for an empty account.
func TestBlockStopsAtWhatTheWitnessLacks(t *testing.T) {
	store, root := genesis(t)
	view, err := store.View(root)
	require.NoError(t, err)
	execute(t, view, []*types.Transaction{dynamic(0, 0, &common.Address{0xaa}, ether, nil)})
	w, err := view.Witness()
	require.NoError(t, err)
	stateless, err := statedb.NewStateless(w, root)
	require.NoError(t, err)
	b, err := NewBlock(stateless, config, header(), noHashes)
	require.NoError(t, err)
	_, err = b.Apply(dynamic(1, 0, &common.Address{0xaa}, ether, nil))
	require.ErrorIs(t, err, ErrState)
	require.ErrorIs(t, err, statedb.ErrNotInWitness)
	require.ErrorIs(t, b.Finish(), ErrState)
}

// Values that only a refused transaction has read are in no log. Values that
// others read as well belong to the first of those, although the StateDB had
// cached them.
func TestRefusedTransactionLeavesNoReads(t *testing.T) {
	store, root := genesis(t)
	_, view := run(t, store, root, dynamic(0, 0, nil, nil, deployer(onlooker)))
	root = view.ActiveRoot()
	at, to := crypto.CreateAddress(addr(0), 0), common.Address{0xaa}
	b, err := NewBlock(view, config, header(), noHashes)
	require.NoError(t, err)
	txs := []*types.Transaction{dynamic(0, 1, &to, ether, nil), dynamic(0, 2, &at, nil, nil)}
	_, err = b.Apply(txs[0])
	require.NoError(t, err)
	for _, from := range []byte{1, 2} {
		_, err = b.Apply(dynamic(from, 5, &to, nil, nil))
		require.ErrorIs(t, err, core.ErrNonceTooHigh)
	}
	_, err = b.Apply(txs[1]) // looks at account 1
	require.NoError(t, err)
	require.NoError(t, b.Finish())
	first := map[common.Address]int{}
	for _, r := range view.Reads() {
		if _, seen := first[r.Address]; !seen {
			first[r.Address] = r.Transaction
		}
	}
	require.Equal(t, map[common.Address]int{addr(0): 0, to: 0, header().Coinbase: 0, at: 1, addr(1): 1}, first)

	w, err := view.Witness()
	require.NoError(t, err)
	stateless, err := statedb.NewStateless(w, root)
	require.NoError(t, err)
	execute(t, stateless, txs)
	require.NoError(t, stateless.Matches(w))
}

// A slot that a block changes and restores is read and not written, even if a
// transaction is refused in between.
func TestSlotPutBackIsNotWritten(t *testing.T) {
	store, root := genesis(t)
	_, view := run(t, store, root, dynamic(0, 0, nil, nil, deployer(toggle)))
	root = view.ActiveRoot()
	at, to := crypto.CreateAddress(addr(0), 0), common.Address{0xaa}
	txs := []*types.Transaction{dynamic(0, 1, &at, nil, nil), dynamic(0, 2, &at, nil, nil)}
	b, err := NewBlock(view, config, header(), noHashes)
	require.NoError(t, err)
	_, err = b.Apply(txs[0])
	require.NoError(t, err)
	_, err = b.Apply(dynamic(1, 5, &to, nil, nil))
	require.ErrorIs(t, err, core.ErrNonceTooHigh)
	_, err = b.Apply(txs[1])
	require.NoError(t, err)
	require.NoError(t, b.Finish())
	for _, w := range view.Writes() {
		require.NotEqual(t, statedb.StorageAccess, w.Kind)
	}
	w, err := view.Witness()
	require.NoError(t, err)
	stateless, err := statedb.NewStateless(w, root)
	require.NoError(t, err)
	execute(t, stateless, txs)
	require.NoError(t, stateless.Matches(w))
}

// The size of code is part of the account: asking for it needs no code.
func TestCodeSizeNeedsNoCode(t *testing.T) {
	store, root := genesis(t)
	long := sign(0, &types.DynamicFeeTx{ChainID: config.ChainID, GasTipCap: oneGwei, GasFeeCap: big.NewInt(3e9), Gas: 10_000_000, Data: deployer(make([]byte, 20_000))})
	at, asker := crypto.CreateAddress(addr(0), 0), crypto.CreateAddress(addr(0), 1)
	// SSTORE(0, EXTCODESIZE(at))
	code := append(append([]byte{0x73}, at[:]...), 0x3b, 0x5f, 0x55, 0x00)
	_, view := run(t, store, root, long, dynamic(0, 1, nil, nil, deployer(code)))
	execute(t, view, []*types.Transaction{dynamic(1, 0, &asker, nil, nil)})
	require.Equal(t, common.BigToHash(big.NewInt(20_000)), view.Storage(asker, common.Hash{}))
	w, err := view.Witness()
	require.NoError(t, err)
	require.Less(t, w.Size(), 20_000)
}
