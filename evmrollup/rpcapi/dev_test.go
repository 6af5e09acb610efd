package rpcapi

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"
)

// TestFirstBlockOfDev: a test of a contract that asks a node without transactions for the time of
// the latest block gets the present one.
func TestFirstBlockOfDev(t *testing.T) {
	present := time.Now().Unix()
	s := serveDev(t)
	h, err := s.eth(s.server.URL).HeaderByNumber(t.Context(), new(big.Int))
	require.NoError(t, err)
	require.InDelta(t, present, h.Time, 100_000)
}

// TestDeployer: forge and others create contracts at equal addresses through a contract that
// exists on all chains.
func TestDeployer(t *testing.T) {
	s := serveDev(t)
	deployer := common.HexToAddress("0x4e59b44847b379578588920cA78FbF26c0B4956C")
	init, salt := common.FromHex("0x600160005360016000f3"), common.Hash{31: 9} // the code is 0x01
	r := s.mined(s.send(0, &deployer, 0, append(salt.Bytes(), init...)))
	require.Equal(t, types.ReceiptStatusSuccessful, r.Status)
	code, err := s.eth(s.server.URL).CodeAt(t.Context(), crypto.CreateAddress2(deployer, salt, crypto.Keccak256(init)), nil)
	require.NoError(t, err)
	require.Equal(t, []byte{1}, code)
}

// TestReset: the state and the pool are those of the start. Snapshots end.
func TestReset(t *testing.T) {
	present := time.Now().Unix()
	for _, method := range []string{"hardhat_reset", "anvil_reset"} {
		s := serveDev(t)
		c, eth := s.dial(s.server.URL), s.eth(s.server.URL)
		call := func(result any, method string, args ...any) {
			t.Helper()
			require.NoError(t, c.CallContext(t.Context(), result, method, args...))
		}
		s.mined(s.send(0, &common.Address{1}, 1, nil))
		call(nil, "evm_setAutomine", false)
		waits := s.sign(0, &common.Address{1}, 1, nil)
		require.NoError(t, eth.SendTransaction(t.Context(), waits))
		var id hexutil.Uint64
		call(&id, "evm_snapshot")
		call(nil, "evm_increaseTime", 1_000_000)
		err := c.CallContext(t.Context(), nil, method, m{"forking": m{"jsonRpcUrl": "http://127.0.0.1:1"}})
		require.Equal(t, CodeUnsupported, code(err))
		for _, args := range [][]any{nil, {nil}, {m{}}, {m{"forking": nil}}} {
			var ok bool
			call(&ok, method, args...)
			require.True(t, ok)
		}
		b, err := eth.BlockByNumber(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, s.node.BlockByNumber(0).Root(), b.Root())
		_, _, err = eth.TransactionByHash(t.Context(), waits.Hash())
		require.ErrorIs(t, err, ethereum.NotFound)
		var ok bool
		call(&ok, "evm_revert", id)
		require.False(t, ok)
		call(nil, "evm_mine")
		h, err := eth.HeaderByNumber(t.Context(), nil)
		require.NoError(t, err)
		require.InDelta(t, present, h.Time, 100_000)
	}
}

// TestGetAutomine: hardhat-ignition asks for it, and otherwise waits for five confirmations,
// which an idle node never has.
func TestGetAutomine(t *testing.T) {
	s := serveDev(t)
	c := s.dial(s.server.URL)
	for _, on := range []bool{true, false, true} {
		require.NoError(t, c.CallContext(t.Context(), nil, "evm_setAutomine", on))
		for _, method := range []string{"hardhat_getAutomine", "anvil_getAutomine"} {
			var have bool
			require.NoError(t, c.CallContext(t.Context(), &have, method))
			require.Equal(t, on, have)
		}
	}
}

// TestDropTransaction: a transaction that waits leaves the pool, and another one does not.
func TestDropTransaction(t *testing.T) {
	s := serveDev(t)
	c, eth := s.dial(s.server.URL), s.eth(s.server.URL)
	require.NoError(t, c.CallContext(t.Context(), nil, "evm_setAutomine", false))
	for _, drop := range []struct {
		method   string
		yes, not any
	}{{"hardhat_dropTransaction", true, false}, {"anvil_dropTransaction", nil, nil}} {
		tx := s.sign(0, &common.Address{1}, 1, nil)
		s.nonces[0]--
		require.NoError(t, eth.SendTransaction(t.Context(), tx))
		if drop.yes == nil {
			drop.yes = tx.Hash().Hex()
		}
		for _, want := range []any{drop.yes, drop.not} {
			var have any
			require.NoError(t, c.CallContext(t.Context(), &have, drop.method, tx.Hash()))
			require.Equal(t, want, have, drop.method)
		}
		_, _, err := eth.TransactionByHash(t.Context(), tx.Hash())
		require.ErrorIs(t, err, ethereum.NotFound)
	}
}

// TestCustomErrors: a test that fails with an error of the contract shows the error, because
// Hardhat prints only the text. The data is geth's.
func TestCustomErrors(t *testing.T) {
	data := common.FromHex("0x5625480000000000000000000000000000000000000000000000000000000000000003e9")
	reverts := hexutil.Bytes(common.FromHex("0x63562548006000526103e96020526024601cfd"))
	for _, c := range []struct {
		s    *served
		text string
	}{
		{serveDev(t), "execution reverted: custom error 0x56254800: 00000000000000000000000000000000000000000000000000000000000003e9"},
		{serve(t, nil), "execution reverted"},
	} {
		client, from := c.s.dial(c.s.server.URL), c.s.node.Accounts()[0].Address
		for _, method := range []string{"eth_call", "eth_estimateGas"} {
			err := client.CallContext(t.Context(), new(any), method, m{"from": from, "data": reverts})
			require.EqualError(t, err, c.text)
			require.Equal(t, 3, code(err))
			require.Equal(t, hexutil.Encode(data), err.(rpc.DataError).ErrorData())
		}
	}
	for data, text := range map[string]string{
		"": "execution reverted", "010203": "execution reverted", "01020304": "execution reverted: custom error 0x01020304",
		"01020304" + strings.Repeat("05", 256): "execution reverted: custom error 0x01020304: " + strings.Repeat("05", 256),
		"01020304" + strings.Repeat("05", 257): "execution reverted: custom error 0x01020304: " + strings.Repeat("05", 256) + "…",
		"08c379a0" + strings.Repeat("00", 31) + "20" + strings.Repeat("00", 31) + "02" + "6e6f" + strings.Repeat("00", 30): "execution reverted: no",
	} {
		require.EqualError(t, devReverted(common.FromHex(data)), text)
	}
}
