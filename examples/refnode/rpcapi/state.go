package rpcapi

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/statedb"
)

// State implements the eth methods that read the state after a block. They work
// for every block whose state is retained.
type State struct{ *api }

// view returns a view of the state after a block.
func (a *State) view(at *rpc.BlockNumberOrHash) (*statedb.View, error) {
	b, err := a.resolve(latestIfNil(at))
	if err != nil {
		return nil, err
	}
	return a.node.StateAt(b)
}

// GetBalance implements eth_getBalance. The balance is in wei.
func (a *State) GetBalance(_ context.Context, addr common.Address, at *rpc.BlockNumberOrHash) (*hexutil.Big, error) {
	view, err := a.view(at)
	if err != nil {
		return nil, err
	}
	return (*hexutil.Big)(view.Account(addr).Balance.ToBig()), nil
}

// GetTransactionCount implements eth_getTransactionCount. At the tag pending
// the count includes the executable transactions in the pool.
func (a *State) GetTransactionCount(_ context.Context, addr common.Address, at *rpc.BlockNumberOrHash) (*hexutil.Uint64, error) {
	where := latestIfNil(at)
	if number, ok := where.Number(); ok && number == rpc.PendingBlockNumber {
		nonce, err := a.node.NextNonce(addr)
		return (*hexutil.Uint64)(&nonce), err
	}
	view, err := a.view(&where)
	if err != nil {
		return nil, err
	}
	nonce := view.Account(addr).Nonce
	return (*hexutil.Uint64)(&nonce), nil
}

// GetCode implements eth_getCode.
func (a *State) GetCode(_ context.Context, addr common.Address, at *rpc.BlockNumberOrHash) (hexutil.Bytes, error) {
	view, err := a.view(at)
	if err != nil {
		return nil, err
	}
	return view.Code(view.Account(addr).CodeHash), nil
}

// GetStorageAt implements eth_getStorageAt. Like geth it accepts a slot with or
// without leading zeros and 0x.
func (a *State) GetStorageAt(_ context.Context, addr common.Address, slot string, at *rpc.BlockNumberOrHash) (hexutil.Bytes, error) {
	view, err := a.view(at)
	if err != nil {
		return nil, err
	}
	key, err := decodeSlot(slot)
	if err != nil {
		return nil, err
	}
	value := view.Storage(addr, key)
	return value[:], nil
}

// maxStorageValues is the maximum number of slots of one eth_getStorageValues.
const maxStorageValues = 1024

// GetStorageValues implements eth_getStorageValues. It returns the values of
// slots of several accounts, in the order of the slots.
func (a *State) GetStorageValues(ctx context.Context, slots map[common.Address][]common.Hash, at *rpc.BlockNumberOrHash) (map[common.Address][]common.Hash, error) {
	count := 0
	for _, of := range slots {
		count += len(of)
	}
	switch {
	case count > maxStorageValues:
		return nil, codedError{fmt.Errorf("too many slots (max %d)", maxStorageValues), codeTooMany}
	case count == 0:
		return nil, invalidParams("empty request")
	}
	if err := a.limits.call(ctx, "eth_getStorageValues", 0); err != nil {
		return nil, err
	}
	view, err := a.view(at)
	if err != nil {
		return nil, err
	}
	values := make(map[common.Address][]common.Hash, len(slots))
	for addr, of := range slots {
		values[addr] = make([]common.Hash, len(of))
		for i, slot := range of {
			values[addr][i] = view.Storage(addr, slot)
		}
	}
	return values, nil
}

func decodeSlot(text string) (common.Hash, error) {
	digits := strings.TrimPrefix(strings.TrimPrefix(text, "0x"), "0X")
	if len(digits)%2 == 1 {
		digits = "0" + digits
	}
	if len(digits) > 2*common.HashLength {
		return common.Hash{}, invalidParams("storage key too long (want at most 32 bytes): %q", text)
	}
	raw, err := hex.DecodeString(digits)
	if err != nil {
		return common.Hash{}, invalidParams("invalid hex in storage key: %q", text)
	}
	return common.BytesToHash(raw), nil
}

// GetProof implements eth_getProof. It always returns an error with code
// [CodeUnsupported]: the answer would consist of Merkle Patricia proofs, and
// the state has no Merkle Patricia trie.
func (a *State) GetProof(common.Address, []string, *rpc.BlockNumberOrHash) (any, error) {
	return nil, codedError{errNoPatricia, CodeUnsupported}
}

var errNoPatricia = errors.New("eth_getProof is not supported: the state is a unified binary tree (EIP-7864) and has no Merkle Patricia proofs; " +
	"jam_getStateWitness proves the same values against the block's state root, and jam_getFinalityProof proves that a transaction is final")
