package rpcapi

import (
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/jamq/jamq/txpool"
)

// TransactionStatus is the answer of jam_getTransactionStatus. Fields that do
// not belong to the status are null.
type TransactionStatus struct {
	Hash common.Hash `json:"hash"`
	// Status is one of
	//
	//	pending    in the pool, and can run
	//	queued     in the pool, behind a nonce gap
	//	parked     in the pool, and does not pay the base fee now, or its sender cannot
	//	leased     being put into a block
	//	held       accepted once, and cannot be taken into the pool again now
	//	included   in a block; BundleStatus says where that stands on JAM
	//	replaced   another transaction of its sender took its place
	//	dropped    it left for Reason, and may be sent again
	Status string `json:"status"`
	// BlockNumber, BlockHash and TransactionIndex name the block, for included.
	BlockNumber      *hexutil.Uint64 `json:"blockNumber"`
	BlockHash        *common.Hash    `json:"blockHash"`
	TransactionIndex *hexutil.Uint64 `json:"transactionIndex"`
	// BundleStatus is the state of the block's bundle in the queue, for included.
	BundleStatus *string `json:"bundleStatus"`
	// ReplacedBy is the hash of the other transaction, for replaced.
	ReplacedBy *common.Hash `json:"replacedBy"`
	// Reason is why it was dropped, for dropped.
	Reason *string `json:"reason"`
	// Time is when it left the pool, for replaced and dropped.
	Time *time.Time `json:"time"`
}

// GetTransactionStatus is jam_getTransactionStatus: where a transaction is that
// the node has accepted; null for one that it does not know. The node remembers
// for a day why a transaction left, with a data directory also across restarts.
// A block can fail; its transactions are pending again then.
func (a *JAM) GetTransactionStatus(hash common.Hash) *TransactionStatus {
	found := a.node.TransactionStatus(hash)
	s := &TransactionStatus{Hash: hash, Status: found.Pool.String()}
	switch d := found.Departure; {
	case found.Block != nil:
		number, blockHash, index := hexutil.Uint64(found.Block.NumberU64()), found.Block.Hash(), hexutil.Uint64(found.Index)
		s.Status = "included"
		s.BlockNumber, s.BlockHash, s.TransactionIndex, s.BundleStatus = &number, &blockHash, &index, &found.Progress.Status
	case d != nil:
		s.Status, s.Time = d.Kind.String(), &d.At
		if d.Kind == txpool.Replaced {
			s.ReplacedBy = &d.By
			break
		}
		reason := d.Reason.Error()
		s.Reason = &reason
	case found.Pool == txpool.StatusUnknown:
		return nil
	}
	return s
}
