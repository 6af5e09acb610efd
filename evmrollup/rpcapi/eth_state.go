package rpcapi

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/stateproof"
	"github.com/jamq/jamq/statedb"
)

// ethState implements the eth methods that read the state after a block. They work for
// every block whose state the node still has.
type ethState struct{ *api }

// view returns a view of the state after a block.
func (a *ethState) view(at *rpc.BlockNumberOrHash) (*statedb.View, error) {
	b, err := a.resolve(latestIfNil(at))
	if err != nil {
		return nil, err
	}
	return a.node.StateAt(b)
}

// GetBalance implements eth_getBalance. The balance is in wei.
func (a *ethState) GetBalance(_ context.Context, addr common.Address, at *rpc.BlockNumberOrHash) (_ *hexutil.Big, err error) {
	defer ledger.Recover(&err)
	view, err := a.view(at)
	if err != nil {
		return nil, err
	}
	return (*hexutil.Big)(view.Account(addr).Balance.ToBig()), nil
}

// GetTransactionCount implements eth_getTransactionCount. For the tag pending, it also
// counts the sender's executable transactions in the pool.
func (a *ethState) GetTransactionCount(ctx context.Context, addr common.Address, at *rpc.BlockNumberOrHash) (_ *hexutil.Uint64, err error) {
	defer ledger.Recover(&err)
	where := latestIfNil(at)
	if number, ok := where.Number(); ok && number == rpc.PendingBlockNumber {
		if answer, asked, err := askLeader[*hexutil.Uint64](ctx, a.api, "eth_getTransactionCount", addr, "pending"); asked {
			return answer, err
		}
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
func (a *ethState) GetCode(_ context.Context, addr common.Address, at *rpc.BlockNumberOrHash) (_ hexutil.Bytes, err error) {
	defer ledger.Recover(&err)
	view, err := a.view(at)
	if err != nil {
		return nil, err
	}
	return view.Code(view.Account(addr).CodeHash), nil
}

// GetStorageAt implements eth_getStorageAt. Like geth, it accepts a slot with or
// without the prefix 0x and with or without leading zeros.
func (a *ethState) GetStorageAt(_ context.Context, addr common.Address, slot string, at *rpc.BlockNumberOrHash) (_ hexutil.Bytes, err error) {
	defer ledger.Recover(&err)
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

// maxStorageValues is the maximum number of slots in one call of
// eth_getStorageValues.
const maxStorageValues = 1024

// GetStorageValues implements eth_getStorageValues. It returns the values of slots
// of several accounts. The values of each account are in the order of its slots.
func (a *ethState) GetStorageValues(ctx context.Context, slots map[common.Address][]common.Hash, at *rpc.BlockNumberOrHash) (_ map[common.Address][]common.Hash, err error) {
	defer ledger.Recover(&err)
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
	slot, err := stateproof.ParseSlot(text)
	if err != nil {
		return slot, invalidParams("%v: %q", err, text)
	}
	return slot, nil
}

// maxProofSlots is the maximum number of slots in one answer with proofs.
const maxProofSlots = 1024

// checkSlots returns an error for too many slots in a proof, or for a malformed slot.
func checkSlots(slots []string) error {
	if len(slots) > maxProofSlots {
		return invalidParams("too many storage keys requested (max %d, got %d)", maxProofSlots, len(slots))
	}
	for _, text := range slots {
		if _, err := decodeSlot(text); err != nil {
			return err
		}
	}
	return nil
}

// GetProof implements eth_getProof. The answer has the form of EIP-1186, but its proofs
// are for a unified binary tree (see package stateproof, which also verifies them).
func (a *ethState) GetProof(ctx context.Context, addr common.Address, slots []string, at *rpc.BlockNumberOrHash) (_ *stateproof.Account, err error) {
	defer ledger.Recover(&err)
	if err := checkSlots(slots); err != nil {
		return nil, err
	}
	if err := a.limits.call(ctx, "eth_getProof", 0); err != nil {
		return nil, err
	}
	b, err := a.resolve(latestIfNil(at))
	if err != nil {
		return nil, err
	}
	return stateproof.Prove(func() (*statedb.View, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return a.node.StateAt(b)
	}, addr, slots)
}
