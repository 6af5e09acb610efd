package rpcapi

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/internal/ledger"
)

// stateWitness is the answer of jam_getStateWitness.
type stateWitness struct {
	// BlockNumber, BlockHash and StateRoot identify the block whose state the
	// witness proves.
	BlockNumber hexutil.Uint64 `json:"blockNumber"`
	BlockHash   common.Hash    `json:"blockHash"`
	StateRoot   common.Hash    `json:"stateRoot"`
	// Address is the account. Balance (in wei), Nonce, CodeHash and Storage are the values
	// of the account that the witness proves. CodeHash is zero if the account does not
	// exist.
	Address  common.Address              `json:"address"`
	Balance  *hexutil.Big                `json:"balance"`
	Nonce    hexutil.Uint64              `json:"nonce"`
	CodeHash common.Hash                 `json:"codeHash"`
	Storage  map[common.Hash]common.Hash `json:"storage"`
	// Witness is the proof of the account's values, in the encoding that
	// statedb.ParseWitness decodes. With StateRoot and the witness, statedb.NewStateless
	// opens a view that contains exactly these values.
	Witness hexutil.Bytes `json:"witness"`
}

// GetStateWitness implements jam_getStateWitness. It returns an account and slots of
// its storage. A single proof shows that they belong to the state root of a block; it
// is smaller than the proofs of eth_getProof.
func (a *jamMethods) GetStateWitness(ctx context.Context, addr common.Address, slots []string, at *rpc.BlockNumberOrHash) (_ *stateWitness, err error) {
	defer ledger.Recover(&err)
	if len(slots) > maxProofSlots {
		return nil, invalidParams("%d slots are too many, want at most %d", len(slots), maxProofSlots)
	}
	if err := a.limits.call(ctx, "jam_getStateWitness", 0); err != nil {
		return nil, err
	}
	b, err := a.resolve(latestIfNil(at))
	if err != nil {
		return nil, err
	}
	view, err := a.node.StateAt(b)
	if err != nil {
		return nil, err
	}
	account := view.Account(addr)
	w := &stateWitness{
		BlockNumber: hexutil.Uint64(b.NumberU64()), BlockHash: b.Hash(), StateRoot: b.Root(),
		Address: addr, Balance: (*hexutil.Big)(account.Balance.ToBig()), Nonce: hexutil.Uint64(account.Nonce), CodeHash: account.CodeHash,
		Storage: make(map[common.Hash]common.Hash, len(slots)),
	}
	for _, text := range slots {
		slot, err := decodeSlot(text)
		if err != nil {
			return nil, err
		}
		w.Storage[slot] = view.Storage(addr, slot)
	}
	proof, err := view.Witness()
	if err != nil {
		return nil, err
	}
	w.Witness = proof.Encode()
	return w, nil
}
