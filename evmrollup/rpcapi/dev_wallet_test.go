package rpcapi

import (
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/jamq/jamq/evmrollup/node"
)

// serveDev runs a node in developer mode. A request may take as long as the slowest machine
// needs to mine.
func serveDev(t *testing.T) *served {
	return serve(t, func(n *node.Config, c *Config) { n.Dev, c.Dev, c.RequestTime = true, true, 20*time.Minute })
}

// TestWalletSends: a client without keys lists the accounts and sends from them, also
// several transactions of one account at once.
func TestWalletSends(t *testing.T) {
	s := serveDev(t)
	c := s.dial(s.server.URL)
	var all []common.Address
	require.NoError(t, c.CallContext(t.Context(), &all, "eth_accounts"))
	require.Len(t, all, len(s.node.Accounts()))
	require.Equal(t, s.node.Accounts()[0].Address, all[0])

	to := common.Address{0x70}
	var group errgroup.Group
	hashes := make([]common.Hash, 20)
	for i := range hashes {
		group.Go(func() error {
			return c.CallContext(t.Context(), &hashes[i], "eth_sendTransaction", map[string]any{"from": all[0], "to": to, "value": "0x1"})
		})
	}
	require.NoError(t, group.Wait())
	for _, hash := range hashes { // they are mined when the call returns
		var receipt *types.Receipt
		require.NoError(t, c.CallContext(t.Context(), &receipt, "eth_getTransactionReceipt", hash))
		require.NotNil(t, receipt)
		require.Equal(t, types.ReceiptStatusSuccessful, receipt.Status)
	}
	balance, err := s.eth(s.server.URL).BalanceAt(t.Context(), to, nil)
	require.NoError(t, err)
	require.EqualValues(t, len(hashes), balance.Uint64())

	// One behind a gap cannot be mined, so the call does not wait for it.
	var gapped common.Hash
	require.NoError(t, c.CallContext(t.Context(), &gapped, "eth_sendTransaction", map[string]any{"from": all[1], "to": to, "nonce": "0x2", "gas": "0x5208"}))
	_, queued := s.node.PoolCounts()
	require.Equal(t, 1, queued)

	var none common.Hash
	require.EqualError(t, c.CallContext(t.Context(), &none, "eth_sendTransaction", map[string]any{"from": to, "to": to}), "unknown account")
}

// TestWalletSigns: the signatures are those of the account.
func TestWalletSigns(t *testing.T) {
	s := serveDev(t)
	c := s.dial(s.server.URL)
	me, message := s.node.Accounts()[1].Address, hexutil.Bytes("hello")
	signer := func(hash, signature []byte) common.Address {
		require.Len(t, signature, crypto.SignatureLength)
		raw := append([]byte{}, signature...)
		raw[crypto.RecoveryIDOffset] -= 27
		key, err := crypto.SigToPub(hash, raw)
		require.NoError(t, err)
		return crypto.PubkeyToAddress(*key)
	}
	var byEth, byPersonal hexutil.Bytes
	require.NoError(t, c.CallContext(t.Context(), &byEth, "eth_sign", me, message))
	require.NoError(t, c.CallContext(t.Context(), &byPersonal, "personal_sign", message, me))
	require.Equal(t, byEth, byPersonal)
	require.Equal(t, me, signer(accounts.TextHash(message), byEth))
	var recovered common.Address
	require.NoError(t, c.CallContext(t.Context(), &recovered, "personal_ecRecover", message, byEth))
	require.Equal(t, me, recovered)

	typed := apitypes.TypedData{
		Types: apitypes.Types{
			"EIP712Domain": {{Name: "name", Type: "string"}, {Name: "chainId", Type: "uint256"}},
			"Order":        {{Name: "amount", Type: "uint256"}, {Name: "to", Type: "address"}},
		},
		PrimaryType: "Order",
		Domain:      apitypes.TypedDataDomain{Name: "shop", ChainId: (*math.HexOrDecimal256)(big.NewInt(4359))},
		Message:     apitypes.TypedDataMessage{"amount": "7", "to": me.Hex()},
	}
	hash, _, err := apitypes.TypedDataAndHash(typed)
	require.NoError(t, err)
	text, err := json.Marshal(typed)
	require.NoError(t, err)
	for _, argument := range []any{typed, string(text)} { // an object, or text as wallets send it
		var signature hexutil.Bytes
		require.NoError(t, c.CallContext(t.Context(), &signature, "eth_signTypedData_v4", me, argument))
		require.Equal(t, me, signer(hash, signature))
	}

	var signed filledTransaction
	require.NoError(t, c.CallContext(t.Context(), &signed, "eth_signTransaction", map[string]any{"from": me, "to": me, "value": "0x1"}))
	from, err := types.Sender(types.LatestSigner(s.node.ChainConfig()), signed.Tx)
	require.NoError(t, err)
	require.Equal(t, me, from)
	require.NoError(t, c.CallContext(t.Context(), new(common.Hash), "eth_sendRawTransaction", signed.Raw))
}

// TestNoWalletWithoutDev: outside of developer mode the node signs nothing.
func TestNoWalletWithoutDev(t *testing.T) {
	s := serve(t, nil)
	c := s.dial(s.server.URL)
	var all []common.Address
	require.NoError(t, c.CallContext(t.Context(), &all, "eth_accounts"))
	require.Empty(t, all)
	me := s.node.Accounts()[0].Address
	for method, args := range map[string][]any{
		"eth_sendTransaction":  {map[string]any{"from": me, "to": me}},
		"eth_sign":             {me, "0x00"},
		"personal_sign":        {"0x00", me},
		"eth_signTypedData_v4": {me, "{}"},
	} {
		require.ErrorContains(t, c.CallContext(t.Context(), new(any), method, args...), "does not exist", method)
	}
}
