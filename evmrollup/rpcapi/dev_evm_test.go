package rpcapi

import (
	"context"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	gethmath "github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/internal/wait"
)

// TestMine: an idle node makes empty blocks when it is asked to. They are latest when the
// call returns, become final, and transactions go on after them. No two have the same time.
func TestMine(t *testing.T) {
	s := serveDev(t)
	c, eth := s.dial(s.server.URL), s.eth(s.server.URL)
	number := func() uint64 {
		n, err := eth.BlockNumber(t.Context())
		require.NoError(t, err)
		return n
	}
	require.NoError(t, c.CallContext(t.Context(), nil, "evm_mine"))
	require.EqualValues(t, 1, number())
	require.NoError(t, c.CallContext(t.Context(), nil, "evm_mine", map[string]any{"blocks": 3}))
	require.EqualValues(t, 4, number())
	require.NoError(t, c.CallContext(t.Context(), nil, "hardhat_mine", "0x2"))
	require.EqualValues(t, 6, number())
	require.ErrorContains(t, c.CallContext(t.Context(), nil, "anvil_mine", "0x1000"), "want at most 256")

	tx := s.sign(0, &common.Address{1}, 1, nil)
	require.NoError(t, eth.SendTransaction(t.Context(), tx))
	wait.Until(t, func() bool {
		r, err := eth.TransactionReceipt(t.Context(), tx.Hash())
		return err == nil && r.BlockNumber.Uint64() == 7
	}, "the transaction is in the next block")
	wait.Until(t, func() bool {
		h, err := eth.HeaderByNumber(t.Context(), big.NewInt(-3)) // finalized
		return err == nil && h.Number.Uint64() == 7
	}, "all are final")
	header := func(n int64) *types.Header {
		h, err := eth.HeaderByNumber(t.Context(), big.NewInt(n))
		require.NoError(t, err)
		return h
	}
	for n := range int64(7) {
		require.Greater(t, header(n+1).Time, header(n).Time)
	}
	require.Equal(t, header(0).Root, header(6).Root)
	require.NotEqual(t, header(0).Root, header(7).Root)
}

// TestMineAtOnce: calls that come at the same time make a block each.
func TestMineAtOnce(t *testing.T) {
	s := serveDev(t)
	c, eth := s.dial(s.server.URL), s.eth(s.server.URL)
	const calls = 8
	errs := make(chan error, calls)
	for range calls {
		go func() { errs <- c.CallContext(t.Context(), nil, "evm_mine") }()
	}
	for range calls {
		require.NoError(t, <-errs)
	}
	n, err := eth.BlockNumber(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, calls, n)
}

// TestBoundOfTime: no call gives a block a time after the year 9999, and a refused call
// changes nothing.
func TestBoundOfTime(t *testing.T) {
	s := serveDev(t)
	c, eth := s.dial(s.server.URL), s.eth(s.server.URL)
	const last = 253_402_300_799
	refused := func(method string, args ...any) {
		t.Helper()
		before, err := eth.HeaderByNumber(t.Context(), nil)
		require.NoError(t, err)
		err = c.CallContext(t.Context(), nil, method, args...)
		require.ErrorContains(t, err, "want", method)
		require.Equal(t, -32602, code(err))
		after, err := eth.HeaderByNumber(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, before.Hash(), after.Hash(), method)
	}
	soon := uint64(time.Now().Unix()) + 1_000_000
	refused("evm_mine", m{"timestamp": soon, "blocks": 257})
	refused("evm_mine", uint64(last+1))
	refused("evm_setNextBlockTimestamp", uint64(math.MaxUint64))
	refused("evm_increaseTime", uint64(last))
	refused("evm_increaseTime", uint64(math.MaxInt64))
	refused("hardhat_mine", "0x100", hexutil.Uint64(last/255))
	refused("hardhat_mine", "0x2", hexutil.Uint64(math.MaxUint64))
	require.NoError(t, c.CallContext(t.Context(), nil, "evm_mine"))
	h, err := eth.HeaderByNumber(t.Context(), nil)
	require.NoError(t, err)
	require.Less(t, h.Time, soon)

	const century = 100 * 365 * 24 * 60 * 60
	for range 4 { // more than fits into a time.Duration
		require.NoError(t, c.CallContext(t.Context(), nil, "evm_increaseTime", int64(century)))
	}
	mine := func(args ...any) uint64 {
		require.NoError(t, c.CallContext(t.Context(), nil, "evm_mine", args...))
		h, err := eth.HeaderByNumber(t.Context(), nil)
		require.NoError(t, err)
		return h.Time
	}
	require.GreaterOrEqual(t, mine(), h.Time+4*century)
	require.Equal(t, uint64(last), mine(uint64(last)))
	require.Greater(t, mine(), uint64(last), "blocks go on")
	refused("evm_increaseTime", 1)
}

// TestAutomine: without it, transactions wait for evm_mine.
func TestAutomine(t *testing.T) {
	s := serveDev(t)
	c, eth := s.dial(s.server.URL), s.eth(s.server.URL)
	require.NoError(t, c.CallContext(t.Context(), nil, "evm_setAutomine", false))
	var txs []*types.Transaction
	for range 3 {
		txs = append(txs, s.sign(0, &common.Address{1}, 1, nil))
		require.NoError(t, eth.SendTransaction(t.Context(), txs[len(txs)-1]))
	}
	began := s.node.JAMSlot()
	wait.Until(t, func() bool { return s.node.JAMSlot() > began+5 }, "slots go by")
	pending, _ := s.node.PoolCounts()
	require.Equal(t, 3, pending)
	require.NoError(t, c.CallContext(t.Context(), nil, "evm_mine"))
	for _, tx := range txs {
		r, err := eth.TransactionReceipt(t.Context(), tx.Hash())
		require.NoError(t, err)
		require.EqualValues(t, 1, r.BlockNumber.Uint64())
	}
	require.NoError(t, c.CallContext(t.Context(), nil, "evm_setAutomine", true))
	tx := s.sign(0, &common.Address{1}, 1, nil)
	require.NoError(t, eth.SendTransaction(t.Context(), tx))
	wait.Until(t, func() bool { _, err := eth.TransactionReceipt(t.Context(), tx.Hash()); return err == nil }, "a block is made")
}

// TestIntervalMining: empty blocks are made until the interval is 0 again.
func TestIntervalMining(t *testing.T) {
	s := serveDev(t)
	c, eth := s.dial(s.server.URL), s.eth(s.server.URL)
	require.NoError(t, c.CallContext(t.Context(), nil, "evm_setIntervalMining", 100))
	wait.Until(t, func() bool {
		n, err := eth.BlockNumber(t.Context())
		return err == nil && n >= 2
	}, "two blocks are latest")
	for method, seconds := range map[string]uint64{"evm_setIntervalMining": 0, "anvil_setIntervalMining": 86_400} {
		require.NoError(t, c.CallContext(t.Context(), nil, method, seconds))
		require.NoError(t, c.CallContext(t.Context(), nil, method, hexutil.Uint64(seconds)))
	}
	for method, n := range map[string]uint64{"evm_setIntervalMining": 99, "anvil_setIntervalMining": 86_401} {
		require.ErrorContains(t, c.CallContext(t.Context(), nil, method, n), "want 0 or 100ms to 24h0m0s", method)
		require.ErrorContains(t, c.CallContext(t.Context(), nil, method, hexutil.Uint64(math.MaxUint64)), "want 0 or 100ms to 24h0m0s", method)
	}
}

// TestImpersonation: accounts without keys send, also contracts, until impersonation ends. All
// methods name them as senders.
func TestImpersonation(t *testing.T) {
	s := serveDev(t)
	c, eth := s.dial(s.server.URL), s.eth(s.server.URL)
	call := func(method string, args ...any) (ok bool) {
		t.Helper()
		require.NoError(t, c.CallContext(t.Context(), &ok, method, args...))
		return ok
	}
	to, whale, contract, stranger := common.Address{0x70}, common.Address{0x3a}, s.counter(0), common.Address{0x51}
	for _, rich := range []common.Address{whale, contract, stranger} {
		call("hardhat_setBalance", rich, hexutil.EncodeBig(big.NewInt(params.Ether)))
	}
	send := func(from common.Address) error {
		var hash common.Hash
		if err := c.CallContext(t.Context(), &hash, "eth_sendTransaction", m{"from": from, "to": to, "value": "0x1"}); err != nil {
			return err
		}
		var receipt struct{ From, To common.Address }
		require.NoError(t, c.CallContext(t.Context(), &receipt, "eth_getTransactionReceipt", hash))
		require.Equal(t, from, receipt.From)
		_, pending, err := eth.TransactionByHash(t.Context(), hash)
		require.NoError(t, err, "a client accepts the signature")
		require.False(t, pending)
		var tx struct{ From common.Address }
		require.NoError(t, c.CallContext(t.Context(), &tx, "eth_getTransactionByHash", hash))
		require.Equal(t, from, tx.From)
		var frame struct{ From common.Address }
		require.NoError(t, c.CallContext(t.Context(), &frame, "debug_traceTransaction", hash, m{"tracer": "callTracer"}))
		require.Equal(t, from, frame.From)
		var flat []struct{ Action struct{ From common.Address } }
		require.NoError(t, c.CallContext(t.Context(), &flat, "trace_transaction", hash))
		require.Equal(t, from, flat[0].Action.From)
		return nil
	}
	require.EqualError(t, send(whale), "unknown account")
	require.True(t, call("hardhat_impersonateAccount", whale))
	require.True(t, call("anvil_impersonateAccount", contract))
	require.NoError(t, send(whale))
	require.NoError(t, send(contract))
	require.NoError(t, send(s.node.Accounts()[0].Address))
	var all []common.Address
	require.NoError(t, c.CallContext(t.Context(), &all, "eth_accounts"))
	require.Subset(t, all, []common.Address{whale, contract})
	require.Len(t, all, len(s.node.Accounts())+2)
	require.EqualError(t, c.CallContext(t.Context(), new(any), "eth_sign", whale, "0x00"), "unknown account")

	require.True(t, call("hardhat_stopImpersonatingAccount", whale))
	require.False(t, call("hardhat_stopImpersonatingAccount", whale))
	require.EqualError(t, send(whale), "unknown account")
	require.NoError(t, send(contract))
	require.True(t, call("anvil_autoImpersonateAccount", true))
	require.NoError(t, send(stranger))
	require.True(t, call("anvil_autoImpersonateAccount", false))
	require.EqualError(t, send(stranger), "unknown account")
	require.NoError(t, send(contract))
	balance, err := eth.BalanceAt(t.Context(), to, nil)
	require.NoError(t, err)
	require.EqualValues(t, 6, balance.Uint64())
}

// TestTimeOfBlocks: the next block has the time that was set, and later ones go on from
// there.
func TestTimeOfBlocks(t *testing.T) {
	s := serveDev(t)
	c, eth := s.dial(s.server.URL), s.eth(s.server.URL)
	latest := func() uint64 {
		h, err := eth.HeaderByNumber(t.Context(), nil)
		require.NoError(t, err)
		return h.Time
	}
	mine := func(args ...any) { require.NoError(t, c.CallContext(t.Context(), nil, "evm_mine", args...)) }
	at := uint64(time.Now().Unix()) + 1_000_000
	require.NoError(t, c.CallContext(t.Context(), nil, "evm_setNextBlockTimestamp", at))
	mine()
	require.Equal(t, at, latest())
	mine(at + 5000)
	require.Equal(t, at+5000, latest())
	require.ErrorContains(t, c.CallContext(t.Context(), nil, "evm_setNextBlockTimestamp", at), "in the past")
	var before, ahead int64
	require.NoError(t, c.CallContext(t.Context(), &before, "evm_increaseTime", hexutil.Uint64(0)))
	require.NoError(t, c.CallContext(t.Context(), &ahead, "evm_increaseTime", hexutil.Uint64(86_400)))
	require.EqualValues(t, before+86_400, ahead)
	mine()
	require.GreaterOrEqual(t, latest(), at+5000+86_400)
	require.NoError(t, c.CallContext(t.Context(), nil, "hardhat_mine", "0x3", "0x3c"))
	first, err := eth.HeaderByNumber(t.Context(), big.NewInt(4))
	require.NoError(t, err)
	require.Equal(t, first.Time+2*60, latest())
}

// TestEstimateForTheNextBlock: the gas of an estimate is enough in the next block, for a contract
// that writes a new slot in each block, or in each second.
func TestEstimateForTheNextBlock(t *testing.T) {
	for name, op := range map[string]string{"number": "43", "time": "42"} {
		t.Run(name, func(t *testing.T) {
			s := serveDev(t)
			c := s.dial(s.server.URL)
			runtime := "6001" + op + "55" // the slot of this key is 1
			init := common.FromHex("63" + runtime + "5f526004601cf3")
			at := s.mined(s.send(0, nil, 0, init)).ContractAddress
			later := time.Now().Unix() + 1000
			require.NoError(t, c.CallContext(t.Context(), nil, "evm_setNextBlockTimestamp", later))
			s.mined(s.send(0, &at, 0, nil))
			for _, block := range [][]any{nil, {"latest"}} {
				var gas hexutil.Uint64
				args := append([]any{m{"from": s.node.Accounts()[0].Address, "to": at}}, block...)
				require.NoError(t, c.CallContext(t.Context(), &gas, "eth_estimateGas", args...))
				require.NoError(t, c.CallContext(t.Context(), nil, "evm_increaseTime", 1))
				var hash common.Hash
				require.NoError(t, c.CallContext(t.Context(), &hash, "eth_sendTransaction", m{
					"from": s.node.Accounts()[0].Address, "to": at, "gas": gas,
				}))
				require.Equal(t, types.ReceiptStatusSuccessful, s.receipt(hash).Status)
			}
			header, err := s.eth(s.server.URL).HeaderByNumber(t.Context(), nil)
			require.NoError(t, err)
			var next, same hexutil.Uint64
			require.NoError(t, c.CallContext(t.Context(), &next, "eth_estimateGas", m{"to": at}))
			block := m{"number": (*hexutil.Big)(header.Number), "time": hexutil.Uint64(header.Time)}
			require.NoError(t, c.CallContext(t.Context(), &same, "eth_estimateGas", m{"to": at}, "latest", nil, block))
			require.Less(t, same, next, "overrides name the block that has written the slot")
		})
	}
}

// TestQuantities: tools send numbers in hex, also with leading zeros such as those of a hash
// that is a slot, and in decimal.
func TestQuantities(t *testing.T) {
	s := serveDev(t)
	c, eth := s.dial(s.server.URL), s.eth(s.server.URL)
	account, slot := common.Address{0x51}, common.Hash{1: 7}
	for i, n := range []any{"0x4d2", "0x04d2", 1234, "1234"} {
		require.NoError(t, c.CallContext(t.Context(), nil, "hardhat_setBalance", account, 0))
		require.NoError(t, c.CallContext(t.Context(), nil, "hardhat_setBalance", account, n))
		balance, err := eth.BalanceAt(t.Context(), account, nil)
		require.NoError(t, err)
		require.EqualValues(t, 1234, balance.Uint64())
		require.NoError(t, c.CallContext(t.Context(), nil, "anvil_setNonce", common.Address{byte(i)}, n))
		nonce, err := eth.NonceAt(t.Context(), common.Address{byte(i)}, nil)
		require.NoError(t, err)
		require.EqualValues(t, 1234, nonce)
	}
	require.NoError(t, c.CallContext(t.Context(), nil, "hardhat_setStorageAt", account, slot, common.Hash{31: 1}))
	value, err := eth.StorageAt(t.Context(), account, slot, nil)
	require.NoError(t, err)
	require.Equal(t, common.Hash{31: 1}.Bytes(), value)
	before, err := eth.BlockNumber(t.Context())
	require.NoError(t, err)
	for _, n := range []any{"0x2", "0x02", 2} {
		require.NoError(t, c.CallContext(t.Context(), nil, "anvil_mine", n, n))
	}
	after, err := eth.BlockNumber(t.Context())
	require.NoError(t, err)
	require.Equal(t, before+6, after)
	var id hexutil.Uint64
	var ok bool
	require.NoError(t, c.CallContext(t.Context(), &id, "evm_snapshot"))
	require.NoError(t, c.CallContext(t.Context(), &ok, "evm_revert", uint64(id)))
	require.True(t, ok)
	for _, n := range []any{-1, "-1", "", 1.5, "0x", "ten", "0x1" + slot.Hex()[2:], true} {
		err := c.CallContext(t.Context(), nil, "hardhat_setBalance", account, n)
		require.Equal(t, -32602, code(err), "%v", n)
	}
}

// TestNoEVMWithoutDev: outside of developer mode no client decides when blocks are made.
func TestNoEVMWithoutDev(t *testing.T) {
	s := serve(t, func(_ *node.Config, c *Config) { c.API = namespaces })
	for _, method := range []string{"evm_mine", "evm_increaseTime", "hardhat_mine", "anvil_mine"} {
		require.ErrorContains(t, s.dial(s.server.URL).CallContext(t.Context(), nil, method), "does not exist", method)
	}
}

// TestEdits: the state has a change of a tool when the call returns, and transactions and
// traces see it.
func TestEdits(t *testing.T) {
	s := serveDev(t)
	c, eth := s.dial(s.server.URL), s.eth(s.server.URL)
	call := func(method string, args ...any) {
		t.Helper()
		var ok bool
		require.NoError(t, c.CallContext(t.Context(), &ok, method, args...))
		require.True(t, ok)
	}
	contract, poor, slot := common.Address{0xc0}, common.Address{0x90}, common.Hash{31: 7}
	call("hardhat_setBalance", poor, "0x1234")
	balance, err := eth.BalanceAt(t.Context(), poor, nil)
	require.NoError(t, err)
	require.EqualValues(t, 0x1234, balance.Uint64())
	call("anvil_setNonce", poor, "0x9")
	nonce, err := eth.NonceAt(t.Context(), poor, nil)
	require.NoError(t, err)
	require.EqualValues(t, 9, nonce)
	pending, err := eth.PendingNonceAt(t.Context(), poor)
	require.NoError(t, err)
	require.EqualValues(t, 9, pending)
	call("hardhat_setStorageAt", contract, "0x7", common.Hash{31: 42})
	code := common.FromHex("60075460005260206000f3") // returns the slot 7
	call("anvil_setCode", contract, hexutil.Bytes(code))
	stored, err := eth.StorageAt(t.Context(), contract, slot, nil)
	require.NoError(t, err)
	require.Equal(t, common.Hash{31: 42}.Bytes(), stored)
	have, err := eth.CodeAt(t.Context(), contract, nil)
	require.NoError(t, err)
	require.Equal(t, code, have)
	balance, err = eth.BalanceAt(t.Context(), poor, nil)
	require.NoError(t, err)
	require.EqualValues(t, 0x1234, balance.Uint64(), "the rest of an account stays")

	require.ErrorContains(t, c.CallContext(t.Context(), nil, "hardhat_setNonce", poor, "0x8"), "want at least the present one, 9")
	require.ErrorContains(t, c.CallContext(t.Context(), nil, "hardhat_setBalance", poor, hexutil.EncodeBig(new(big.Int).Lsh(big.NewInt(1), 120))), "want below 2^120")

	// An edit and a transaction that needs it, traced and final.
	require.NoError(t, c.CallContext(t.Context(), nil, "evm_setAutomine", false))
	tx := s.sign(1, &contract, 0, nil)
	require.NoError(t, eth.SendTransaction(t.Context(), tx))
	call("hardhat_setStorageAt", contract, "0x7", common.Hash{31: 43})
	_, err = eth.TransactionReceipt(t.Context(), tx.Hash())
	require.ErrorIs(t, err, ethereum.NotFound, "automine is off")
	require.NoError(t, c.CallContext(t.Context(), nil, "evm_mine"))
	r, err := eth.TransactionReceipt(t.Context(), tx.Hash())
	require.NoError(t, err)
	var trace struct{ ReturnValue string }
	require.NoError(t, c.CallContext(t.Context(), &trace, "debug_traceTransaction", tx.Hash()))
	require.Equal(t, "2b", trace.ReturnValue[len(trace.ReturnValue)-2:])
	for method, block := range map[string]any{"debug_traceBlockByNumber": "latest", "debug_traceBlockByHash": r.BlockHash} {
		var traces []struct{ Result struct{ ReturnValue string } }
		require.NoError(t, c.CallContext(t.Context(), &traces, method, block))
		require.Len(t, traces, 1)
		require.Equal(t, trace.ReturnValue, traces[0].Result.ReturnValue, method)
	}
	wait.Until(t, func() bool {
		h, err := eth.HeaderByNumber(t.Context(), big.NewInt(-3)) // finalized
		return err == nil && h.Number.Cmp(r.BlockNumber) >= 0
	}, "the block is final")
}

// TestRevertWithoutAutomine: evm_revert mines nothing, and transactions after the snapshot have
// left the pool.
func TestRevertWithoutAutomine(t *testing.T) {
	s := serveDev(t)
	c, eth := s.dial(s.server.URL), s.eth(s.server.URL)
	require.NoError(t, c.CallContext(t.Context(), nil, "evm_setAutomine", false))
	kept, dropped := s.sign(0, &common.Address{1}, 1, nil), s.sign(1, &common.Address{1}, 1, nil)
	require.NoError(t, eth.SendTransaction(t.Context(), kept))
	var id hexutil.Uint64
	require.NoError(t, c.CallContext(t.Context(), &id, "evm_snapshot"))
	require.NoError(t, eth.SendTransaction(t.Context(), dropped))
	var ok bool
	require.NoError(t, c.CallContext(t.Context(), &ok, "evm_revert", id))
	require.True(t, ok)
	b, err := eth.BlockByNumber(t.Context(), nil)
	require.NoError(t, err)
	require.EqualValues(t, 1, b.NumberU64())
	require.Empty(t, b.Transactions())
	_, pending, err := eth.TransactionByHash(t.Context(), kept.Hash())
	require.NoError(t, err)
	require.True(t, pending)
	_, _, err = eth.TransactionByHash(t.Context(), dropped.Hash())
	require.ErrorIs(t, err, ethereum.NotFound)

	require.NoError(t, eth.SendTransaction(t.Context(), dropped))
	require.NoError(t, c.CallContext(t.Context(), nil, "evm_mine"))
	for _, tx := range []*types.Transaction{kept, dropped} {
		r, err := eth.TransactionReceipt(t.Context(), tx.Hash())
		require.NoError(t, err)
		require.EqualValues(t, 2, r.BlockNumber.Uint64())
	}
}

// TestFailedRevert: a refused call of evm_revert changes nothing, so that it can be repeated.
// A snapshot ends with a call that returned true.
func TestFailedRevert(t *testing.T) {
	s := serveDev(t)
	evm := &devEVM{api: &api{node: s.node}}
	for want := range 2 {
		id, err := evm.Snapshot()
		require.NoError(t, err)
		require.EqualValues(t, want+1, id)
	}
	s.mined(s.send(0, &common.Address{1}, 1, nil))
	before := s.node.Head()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := evm.Revert(ended, 1)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, before.Hash(), s.node.Head().Hash())
	for _, id := range []gethmath.HexOrDecimal64{0, 3, 1 << 63, math.MaxUint64} {
		ok, err := evm.Revert(t.Context(), id)
		require.NoError(t, err)
		require.False(t, ok, id)
	}
	ok, err := evm.Revert(t.Context(), 1)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, s.node.BlockByNumber(0).Root(), s.node.Head().Root())
	for _, id := range []gethmath.HexOrDecimal64{1, 2} {
		ok, err := evm.Revert(t.Context(), id)
		require.NoError(t, err)
		require.False(t, ok)
	}
}

// TestFieldsOfTheNextBlock: the next block has the base fee that was set, later ones follow from
// it, and all later ones have the gas limit that was set. A transaction that waits for a lower
// base fee is in the block with one.
func TestFieldsOfTheNextBlock(t *testing.T) {
	s := serveDev(t)
	c, eth := s.dial(s.server.URL), s.eth(s.server.URL)
	call := func(method string, args ...any) {
		t.Helper()
		require.NoError(t, c.CallContext(t.Context(), nil, method, args...), method)
	}
	newest := func() *types.Header {
		h, err := eth.HeaderByNumber(t.Context(), nil)
		require.NoError(t, err)
		return h
	}
	high, low := big.NewInt(100*params.GWei), big.NewInt(params.GWei/2)
	call("evm_setAutomine", false)
	call("hardhat_setNextBlockBaseFeePerGas", hexutil.EncodeBig(high))
	waits := s.send(0, &common.Address{1}, 1, nil) // at most 10 gwei
	call("evm_setBlockGasLimit", "0x989680")
	call("hardhat_setBalance", common.Address{5}, "0x1")
	require.Equal(t, -1, newest().BaseFee.Cmp(high), "a block for an edit is not the next one")
	call("evm_mine")
	require.Equal(t, high, newest().BaseFee)
	require.EqualValues(t, 10_000_000, newest().GasLimit)
	call("evm_mine")
	require.Equal(t, new(big.Int).Div(new(big.Int).Mul(high, big.NewInt(7)), big.NewInt(8)), newest().BaseFee)
	require.EqualValues(t, 10_000_000, newest().GasLimit)
	call("anvil_setNextBlockBaseFeePerGas", hexutil.EncodeBig(low))
	call("evm_setAutomine", true)
	receipt := s.mined(waits)
	b := s.node.BlockByHash(receipt.BlockHash)
	require.Equal(t, low, b.BaseFee())

	require.ErrorContains(t, c.CallContext(t.Context(), nil, "anvil_setNextBlockBaseFeePerGas", "0x10000000000000000"), "want below 2^64")
	for _, gas := range []string{"0x1", "0x3b9aca01"} {
		require.ErrorContains(t, c.CallContext(t.Context(), nil, "evm_setBlockGasLimit", gas), "want 21000 to 1000000000")
	}
}
