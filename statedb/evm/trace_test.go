package evm

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// A tracer sees each instruction of a call, and the call comes to the same result.
func TestCallTraced(t *testing.T) {
	store, root := genesis(t)
	_, view := run(t, store, root, dynamic(0, 0, nil, nil, deployer(counter)))
	at := crypto.CreateAddress(addr(0), 0)
	msg := func() *core.Message {
		free := new(uint256.Int)
		return &core.Message{From: addr(1), To: &at, GasLimit: 100_000, Value: free, GasPrice: free, GasFeeCap: free, GasTipCap: free}
	}
	var seen []vm.OpCode
	hooks := &tracing.Hooks{OnOpcode: func(_ uint64, op byte, _, _ uint64, _ tracing.OpContext, _ []byte, _ int, _ error) {
		seen = append(seen, vm.OpCode(op))
	}}
	traced, err := CallWith(t.Context(), view, config, header(), noHashes, msg(), Overrides{}, hooks)
	require.NoError(t, err)
	plain, err := Call(t.Context(), view, config, header(), noHashes, msg())
	require.NoError(t, err)
	require.Equal(t, plain, traced)
	require.Equal(t, common.Hash{31: 1}.Bytes(), traced.ReturnData)
	require.Equal(t, []vm.OpCode{
		vm.PUSH0, vm.SLOAD, vm.PUSH1, vm.ADD, vm.DUP1, vm.PUSH0, vm.SSTORE, vm.PUSH0, vm.MSTORE,
		vm.PUSH1, vm.PUSH1, vm.PUSH0, vm.LOG1, vm.PUSH1, vm.PUSH0, vm.RETURN,
	}, seen)
}

// An endless execution stops with ctx, and has no result.
func TestStopped(t *testing.T) {
	store, root := genesis(t)
	view, err := store.View(root)
	require.NoError(t, err)
	over := errors.New("time is over")
	msg := func() *core.Message {
		free := new(uint256.Int)
		return &core.Message{From: addr(1), Data: []byte{0x5b, 0x5f, 0x56}, GasLimit: 1 << 40, Value: free, GasPrice: free, GasFeeCap: free, GasTipCap: free}
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, over)
	defer cancel()
	_, err = Call(ctx, view, config, header(), noHashes, msg())
	require.ErrorIs(t, err, over)
	_, _, err = Estimate(ctx, view, config, header(), noHashes, msg(), 1<<40)
	require.ErrorIs(t, err, over)
}

// The pre-state of a transaction is the state after those before it. The block
// cannot be continued, and changes of that state do not reach the view.
func TestPrestate(t *testing.T) {
	store, root := genesis(t)
	view, err := store.View(root)
	require.NoError(t, err)
	b, err := NewBlock(view, config, header(), noHashes)
	require.NoError(t, err)
	to := common.Address{0xaa}
	_, err = b.Apply(dynamic(0, 0, &to, ether, nil))
	require.NoError(t, err)

	sdb, context, err := b.Prestate()
	require.NoError(t, err)
	require.Equal(t, uint64(1), sdb.GetNonce(addr(0)))
	require.Equal(t, ether.String(), sdb.GetBalance(to).String())
	require.Equal(t, header().Coinbase, context.Coinbase)
	sdb.SetNonce(addr(0), 7, tracing.NonceChangeUnspecified)
	sdb.Finalise(config.Rules(header().Number, true, 1))
	require.Empty(t, view.Writes())
	_, err = b.Apply(dynamic(0, 1, &to, ether, nil))
	require.ErrorIs(t, err, ErrFinished)
	require.ErrorIs(t, b.Finish(), ErrFinished)
	_, _, err = b.Prestate()
	require.ErrorIs(t, err, ErrFinished)
}
