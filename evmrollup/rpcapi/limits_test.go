package rpcapi

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/evmrollup"
)

// limits exceeds each limit by the least amount, at both nodes, and returns a
// list of the limits.
func (c *conformance) limits(t *testing.T) string {
	var l evmrollup.Limits
	require.NoError(t, c.ours.CallContext(t.Context(), &l, "jam_getLimits"))
	id, signer := c.api.node.ChainConfig().ChainID, types.LatestSigner(c.api.node.ChainConfig())
	list := ""
	for i, x := range []struct {
		what  string
		limit hexutil.Uint64
		tx    types.TxData
	}{
		{"gas of a transaction", l.TxGas, &types.DynamicFeeTx{Gas: uint64(l.TxGas) + 1, To: &c.stranger}},
		{"nonce above the account's", l.NonceDistance, &types.DynamicFeeTx{Nonce: uint64(l.NonceDistance) + 1, Gas: params.TxGas, To: &c.stranger}},
		{"authorizations in a transaction", l.Authorizations, c.authorizing(t, int(l.Authorizations)+1)},
		{"gas of a block", l.BlockGas, &types.DynamicFeeTx{Gas: uint64(l.BlockGas) + 1, To: &c.stranger}},
		{"bytes of a transaction", l.TxBytes, &types.DynamicFeeTx{Gas: uint64(l.TxGas), To: &c.stranger, Data: make([]byte, int(l.TxBytes))}},
		{"bytes of init code", l.InitCodeBytes, &types.DynamicFeeTx{Gas: uint64(l.TxGas), Data: make([]byte, int(l.InitCodeBytes)+1)}},
	} {
		if d, ok := x.tx.(*types.DynamicFeeTx); ok {
			d.ChainID, d.GasTipCap, d.GasFeeCap = id, big.NewInt(params.GWei), big.NewInt(10*params.GWei)
		}
		// geth accepts some, so each of the first ones has another sender.
		tx := types.MustSignNewTx(c.api.node.Accounts()[min(5+i, 9)].Key, signer, x.tx)
		raw, err := tx.MarshalBinary()
		require.NoError(t, err)
		err = c.ours.CallContext(t.Context(), new(any), "eth_sendRawTransaction", hexutil.Bytes(raw))
		require.Error(t, err, "%s", x.what)
		require.Contains(t, err.Error(), fmt.Sprint(uint64(x.limit)), "%s: the error does not name the limit", x.what)
		answer := "geth accepts it"
		if err := c.geths.CallContext(t.Context(), new(any), "eth_sendRawTransaction", hexutil.Bytes(raw)); err != nil {
			answer = "geth: `" + err.Error() + "`"
		}
		list += wrap("- ", fmt.Sprintf("%s: %s. `%v`; %s.", x.what, digits(uint64(x.limit)), err, answer))
	}
	return list + "\n" + wrap("", fmt.Sprintf("The pool holds at most %s transactions of one sender, %d of a sender that is delegated (EIP-7702), "+
		"%s that can run, and as many behind gaps in the nonces.", digits(uint64(l.PerSender)), l.PerDelegated, digits(uint64(l.Pending))))
}

// authorizing returns a transaction with n authorizations.
func (c *conformance) authorizing(t *testing.T, n int) *types.SetCodeTx {
	id := uint256.MustFromBig(c.api.node.ChainConfig().ChainID)
	list := make([]types.SetCodeAuthorization, n)
	for i := range list {
		key, err := crypto.ToECDSA(common.Hash{31: byte(i + 1)}.Bytes())
		require.NoError(t, err)
		list[i], err = types.SignSetCode(key, types.SetCodeAuthorization{ChainID: *id, Address: c.counter})
		require.NoError(t, err)
	}
	return &types.SetCodeTx{
		ChainID: id, GasTipCap: uint256.NewInt(params.GWei), GasFeeCap: uint256.NewInt(10 * params.GWei), Gas: 10_000_000, To: c.stranger, AuthList: list,
	}
}

// digits groups the digits of a number.
func digits(n uint64) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
