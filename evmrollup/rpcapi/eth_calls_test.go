package rpcapi

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient/gethclient"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/evmrollup/stateproof"
	"github.com/jamq/jamq/statedb"
)

// eth_getProof proves an account and its slots to a verifier that has only the block's root, in a
// form that geth's client decodes.
func TestProof(t *testing.T) {
	s := serve(t, nil)
	at := s.counter(0)
	receipt := s.mined(s.send(1, &at, 0, nil))
	c := s.dial(s.server.URL)
	for address, exists := range map[common.Address]bool{at: true, s.node.Accounts()[1].Address: true, {0xee}: false} {
		slots := []string{"0x0", common.Hash{31: 7}.Hex(), "01"}
		var have stateproof.Account
		require.NoError(t, c.CallContext(t.Context(), &have, "eth_getProof", address, slots, m{"blockHash": receipt.BlockHash}))
		require.NoError(t, have.Verify(s.node.BlockByHash(receipt.BlockHash).Root()))
		require.Equal(t, exists, have.CodeHash != common.Hash{})
		geths, err := gethclient.New(c).GetProof(t.Context(), address, slots, receipt.BlockNumber)
		require.NoError(t, err)
		require.Equal(t, address, geths.Address)
		require.Equal(t, have.Balance.ToInt(), geths.Balance)
		require.Equal(t, []string{"0x0", slots[1], "0x1"}, []string{geths.StorageProof[0].Key, geths.StorageProof[1].Key, geths.StorageProof[2].Key})
		if address == at {
			require.EqualValues(t, 1, geths.StorageProof[0].Value.Uint64())
		}
	}
}

// The witness of jam_getStateWitness proves the same values.
func TestStateWitness(t *testing.T) {
	s := serve(t, nil)
	at := s.counter(0)
	receipt := s.mined(s.send(1, &at, 0, nil))
	c := s.dial(s.server.URL)
	for _, x := range []struct {
		address common.Address
		slots   []string
		exists  bool
	}{
		{at, []string{"0x0", "0x1"}, true}, {s.node.Accounts()[1].Address, []string{}, true}, {common.Address{0xee}, []string{"0x7"}, false},
	} {
		var w stateWitness
		require.NoError(t, c.CallContext(t.Context(), &w, "jam_getStateWitness", x.address, x.slots, map[string]any{"blockHash": receipt.BlockHash}))
		require.Equal(t, s.node.BlockByHash(receipt.BlockHash).Root(), w.StateRoot)
		witness, err := statedb.ParseWitness(w.Witness)
		require.NoError(t, err)
		view, err := statedb.NewStateless(witness, w.StateRoot)
		require.NoError(t, err)
		account := view.Account(x.address)
		require.NoError(t, view.Err())
		require.Equal(t, x.exists, account.Exists)
		require.Equal(t, account.Balance.ToBig().String(), w.Balance.ToInt().String())
		require.EqualValues(t, account.Nonce, w.Nonce)
		require.Equal(t, account.CodeHash, w.CodeHash)
		for slot, value := range w.Storage {
			require.Equal(t, value, view.Storage(x.address, slot))
		}
		require.Len(t, w.Storage, len(x.slots))
		require.NoError(t, view.Err())
		_, err = statedb.NewStateless(witness, common.Hash{1})
		require.Error(t, err, "of another state")
	}
	var w stateWitness
	require.NoError(t, c.CallContext(t.Context(), &w, "jam_getStateWitness", at, []string{"0x0"}, nil))
	require.Equal(t, common.Hash{31: 1}, w.Storage[common.Hash{}])
	require.ErrorContains(t, c.CallContext(t.Context(), &w, "jam_getStateWitness", at, make([]string, 1025), nil), "1025 slots are too many")
	require.ErrorContains(t, c.CallContext(t.Context(), &w, "jam_getStateWitness", at, []string{"0xzz"}, nil), "invalid hex in storage key")
}

// Overrides that cannot be are refused, and nothing of one is left for the next call.
func TestOverrides(t *testing.T) {
	s := serve(t, nil)
	at := s.counter(0)
	c := s.dial(s.server.URL)
	call := func(fields map[string]any) (result hexutil.Bytes, err error) {
		err = c.CallContext(t.Context(), &result, "eth_call", map[string]any{"to": at}, "latest", map[string]any{at.Hex(): fields})
		return result, err
	}
	_, err := call(map[string]any{"movePrecompileToAddress": at})
	require.ErrorContains(t, err, "is not a precompile")
	result, err := call(map[string]any{"stateDiff": map[string]any{common.Hash{}.Hex(): common.Hash{31: 9}.Hex()}})
	require.NoError(t, err)
	require.Equal(t, common.Hash{31: 10}.Bytes(), []byte(result))
	result, err = call(map[string]any{})
	require.NoError(t, err)
	require.Equal(t, common.Hash{31: 1}.Bytes(), []byte(result))
	result, err = call(map[string]any{"code": "0x"})
	require.NoError(t, err)
	require.Empty(t, result)
}

// An endless call is stopped with a time-out error, and so is an endless trace.
func TestCallTime(t *testing.T) {
	s := serve(t, func(_ *node.Config, c *Config) { c.CallTime, c.GasCap = 50*time.Millisecond, 1<<40 })
	c := s.dial(s.server.URL)
	endless := map[string]any{"data": "0x5b5f56"} // JUMPDEST PUSH0 JUMP
	for method, want := range map[string]string{
		"eth_call": "execution aborted (timeout = 50ms)", "eth_createAccessList": "execution aborted (timeout = 50ms)",
		"debug_traceCall": "execution timeout",
	} {
		args := []any{endless, "latest"}
		if method == "debug_traceCall" {
			args = append(args, map[string]any{"tracer": "callTracer", "timeout": "1h"})
		}
		require.ErrorContains(t, c.CallContext(t.Context(), new(any), method, args...), want)
	}
	// One that makes much of little time is cut.
	s = serve(t, func(_ *node.Config, c *Config) { c.BatchBytes = 10_000 })
	c = s.dial(s.server.URL)
	var trace struct {
		StructLogs []any `json:"structLogs"`
	}
	endless["gas"] = "0xf4240"
	require.NoError(t, c.CallContext(t.Context(), &trace, "debug_traceCall", endless, "latest", map[string]any{"limit": math.MaxInt}))
	require.NotEmpty(t, trace.StructLogs)
	require.Less(t, len(trace.StructLogs), 10_000)
}

// The estimator knows the limit of the pool: a transaction that needs more gas
// could not be sent.
func TestEstimateKnowsThePool(t *testing.T) {
	s := serve(t, nil)
	c := s.dial(s.server.URL)
	// One MSTORE that pays 20 million gas for memory.
	long := hexutil.MustDecode("0x5f623100005200")
	var gas hexutil.Uint64
	err := c.CallContext(t.Context(), &gas, "eth_estimateGas", map[string]any{"from": s.node.Accounts()[0].Address, "data": hexutil.Bytes(long)})
	require.ErrorContains(t, err, "gas required exceeds allowance (16777216)")
	signer := types.LatestSigner(s.node.ChainConfig())
	for gas, want := range map[uint64]string{1<<24 + 1: "transaction gas limit too high (cap: 16777216, tx: 16777217)", 31_000_000: "exceeds block gas limit: gas 31000000, limit 30000000"} {
		tx := types.MustSignNewTx(s.node.Accounts()[0].Key, signer, &types.LegacyTx{GasPrice: big.NewInt(params.GWei), Gas: gas, Data: long})
		require.ErrorContains(t, s.node.SendTransaction(tx), want)
	}
}

// A transaction is sent and its receipt comes back, or word that it takes longer (EIP-7966).
func TestSendAndWait(t *testing.T) {
	s := serve(t, nil)
	c := s.dial(s.server.URL)
	send := func(tx *types.Transaction, milliseconds ...any) (*types.Receipt, error) {
		raw, err := tx.MarshalBinary()
		require.NoError(t, err)
		var receipt *types.Receipt
		err = c.CallContext(t.Context(), &receipt, "eth_sendRawTransactionSync", append([]any{hexutil.Bytes(raw)}, milliseconds...)...)
		return receipt, err
	}
	tx := s.sign(0, &common.Address{1}, 1, nil)
	receipt, err := send(tx)
	require.NoError(t, err)
	require.Equal(t, tx.Hash(), receipt.TxHash)
	_, err = send(tx)
	require.ErrorContains(t, err, "already known")
	s.nonces[0]++ // a gap
	late := s.sign(0, &common.Address{1}, 1, nil)
	_, err = send(late, 1)
	require.Equal(t, CodeTimeout, code(err))
	require.ErrorContains(t, err, "wasn't processed in time")
	require.Equal(t, late.Hash().Hex(), err.(rpc.DataError).ErrorData())
	_, pooled := s.node.Pooled(late.Hash())
	require.True(t, pooled, "it was sent all the same")
	s.nonces[0]++
	_, err = send(s.sign(0, &common.Address{1}, 1, nil), "0x1")
	require.Equal(t, CodeTimeout, code(err), "the form of the drafts")
	for _, wrong := range []any{-1, 1.5, "soon", true, "-0x1"} {
		_, err = send(s.sign(1, &common.Address{1}, 1, nil), wrong)
		require.Equal(t, -32602, code(err), "%v", wrong)
		require.NotContains(t, err.Error(), "wasn't processed in time")
	}
	// 0 means the default: as long as a request may take.
	for _, none := range []any{0, "0x0", nil} {
		tx := s.sign(2, &common.Address{1}, 1, nil)
		receipt, err := send(tx, none)
		require.NoError(t, err, "%v", none)
		require.Equal(t, tx.Hash(), receipt.TxHash)
	}
}
