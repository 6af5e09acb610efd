package evmrollup

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/evmrollup/store"
	"github.com/jamq/jamq/txpool"
)

// unsigned returns a transaction without a signature.
func unsigned(id *big.Int, nonce uint64) *types.Transaction {
	return types.NewTx(&types.DynamicFeeTx{
		ChainID: id, Nonce: nonce, GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(20 * params.GWei), Gas: params.TxGas, To: &common.Address{0x70}, Value: common.Big1,
	})
}

// The transaction of an impersonated account goes through a block, out of a block that is undone
// and into another, also when the account is no longer impersonated.
func TestImpersonatedTransactionReturns(t *testing.T) {
	r := recovered(t, keepNothing)
	whale := common.Address{0x3a}
	_, err := r.Edit(Edit{Address: whale, Balance: uint256.NewInt(params.Ether)})
	require.NoError(t, err)
	require.NoError(t, r.Apply(t.Context(), r.propose(t)))

	_, err = r.SignAs(unsigned(chainID, 0), whale)
	require.ErrorIs(t, err, ErrNotImpersonated)
	require.False(t, r.Impersonate(whale, true))
	tx, err := r.SignAs(unsigned(chainID, 0), whale)
	require.NoError(t, err)
	require.NoError(t, r.SendTransaction(tx))
	b := r.propose(t)
	require.Equal(t, tx.Hash(), b.Body.Transactions()[0].Hash())
	require.NoError(t, r.Apply(t.Context(), b))
	_, err = r.Payload(t.Context(), b)
	require.NoError(t, err, "it is executed again")
	require.True(t, r.Impersonate(whale, false))
	require.NoError(t, r.Undo(t.Context(), b))
	require.Equal(t, []common.Hash{tx.Hash()}, hashes(r.waiting()...))
	b = r.propose(t)
	require.NoError(t, r.Apply(t.Context(), b))
	require.Equal(t, tx.Hash(), b.Body.Transactions()[0].Hash())
}

// Transactions in the form of an impersonated account that the chain must refuse.
func TestForgedImpersonation(t *testing.T) {
	c := recovered(t, keepNothing).Chain
	whale, other := common.Address{0x3a}, common.Address{0x3b}
	c.Impersonate(whale, true)
	forged := func(tx *types.Transaction, from common.Address) *types.Transaction {
		rules := types.LatestSignerForChainID(tx.ChainId())
		tx, err := tx.WithSignature(rules, append(append(impersonated[:], from[:]...), one[:]...))
		require.NoError(t, err)
		return tx
	}
	require.ErrorIs(t, c.SendTransaction(forged(unsigned(chainID, 0), other)), ErrNotImpersonated)
	require.ErrorIs(t, c.SendTransaction(forged(unsigned(big.NewInt(1), 0), whale)), types.ErrInvalidChainId)
	legacy := types.NewTx(&types.LegacyTx{GasPrice: big.NewInt(20 * params.GWei), Gas: params.TxGas, To: &whale})
	unprotected, err := legacy.WithSignature(types.HomesteadSigner{}, append(append(impersonated[:], whale[:]...), one[:]...))
	require.NoError(t, err)
	require.ErrorIs(t, c.SendTransaction(unprotected), types.ErrInvalidChainId)
	require.ErrorIs(t, c.SendTransaction(forged(unsigned(chainID, 0), whale)), txpool.ErrInsufficientFunds, "this one is allowed")
}

// On a chain on a disk such a signature is one of Ethereum's: the sender has the key of the
// signature.
func TestNoImpersonationOnDisk(t *testing.T) {
	cfg := testConfig()
	cfg.Ledger, cfg.States = store.NewKeys(), store.NewKeys()
	disk, err := New(cfg)
	require.NoError(t, err)
	whale := common.Address{0x3a}
	disk.Impersonate(whale, true)
	tx, err := disk.SignAs(unsigned(chainID, 0), whale)
	require.NoError(t, err)
	from, err := types.Sender(newSigner(disk.Signer(), true), tx)
	require.NoError(t, err)
	require.Equal(t, whale, from)
	if from, err = types.Sender(disk.Signer(), tx); err == nil {
		require.NotEqual(t, whale, from)
	}
	v, r, s := tx.RawSignatureValues()
	require.True(t, crypto.ValidateSignatureValues(byte(v.Uint64()), r, s, true), "clients decode it")
}
