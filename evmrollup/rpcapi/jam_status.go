package rpcapi

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/txpool"
)

// TransactionStatus is the answer of jam_getTransactionStatus. Fields that do not apply
// to the status are null.
type TransactionStatus struct {
	Hash common.Hash `json:"hash"` // of the transaction
	// Status is one of:
	//
	//	pending    in the pool, executable
	//	queued     in the pool, behind a nonce gap
	//	parked     in the pool; the base fee is too high, or the balance too low
	//	locked     being put into a block
	//	held       accepted earlier; currently refused by the pool
	//	included   in a block; BundleStatus is its status on JAM
	//	replaced   replaced by another transaction of its sender
	//	dropped    dropped for Reason; it may be sent again
	Status string `json:"status"`
	// BlockNumber, BlockHash and TransactionIndex are the transaction's position in the
	// chain. They are set if the status is included.
	BlockNumber      *hexutil.Uint64 `json:"blockNumber"`
	BlockHash        *common.Hash    `json:"blockHash"`
	TransactionIndex *hexutil.Uint64 `json:"transactionIndex"`
	// BundleStatus is the state of the block's bundle in the queue. It is set if the status
	// is included.
	BundleStatus *string `json:"bundleStatus"`
	// ReplacedBy is the hash of the transaction that has replaced this one. It is set if
	// the status is replaced.
	ReplacedBy *common.Hash `json:"replacedBy"`
	// Reason explains why the pool dropped the transaction. It is null unless the status is
	// dropped.
	Reason *string `json:"reason"`
	// Time is when the transaction left the pool. It is set if the status is replaced or
	// dropped.
	Time *time.Time `json:"time"`
}

// GetTransactionStatus implements jam_getTransactionStatus. It returns the status of a
// transaction that the node has accepted, or null for an unknown transaction. The node
// remembers for a day why a transaction has left the pool, even across a restart if it
// has a data directory. If a block fails, its transactions become pending again.
func (a *jamMethods) GetTransactionStatus(ctx context.Context, hash common.Hash) (_ *TransactionStatus, err error) {
	defer ledger.Recover(&err)
	found := a.node.TransactionStatus(hash)
	if found.Block == nil {
		if answer, asked, err := askLeader[*TransactionStatus](ctx, a.api, "jam_getTransactionStatus", hash); asked {
			return answer, err
		}
		found = a.node.TransactionStatus(hash) // this node may have begun to lead meanwhile
	}
	s := &TransactionStatus{Hash: hash, Status: found.Pool.String()}
	switch d := found.Departure; {
	case found.Block != nil:
		number, blockHash, index := hexutil.Uint64(found.Block.NumberU64()), found.Block.Hash(), hexutil.Uint64(found.Index)
		status := a.node.Progress(found.Block.NumberU64()).Status
		s.Status = "included"
		s.BlockNumber, s.BlockHash, s.TransactionIndex, s.BundleStatus = &number, &blockHash, &index, &status
	case d != nil:
		s.Status, s.Time = d.Kind.String(), &d.At
		if d.Kind == txpool.Replaced {
			s.ReplacedBy = &d.By
			break
		}
		reason := d.Reason.Error()
		s.Reason = &reason
	case found.Pool == txpool.StatusUnknown:
		return nil, nil
	}
	return s, nil
}
