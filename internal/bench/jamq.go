package main

import (
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/jamq/jamq/txpool"
)

// jamq is this project's pool. The host's state holds the nonces after the last
// block, and all accounts have a high balance.
type jamq struct {
	*txpool.Pool
	nonces atomic.Pointer[map[common.Address]uint64]
	// The following fields are set by prepare. seal applies the block to the
	// state, session has the transactions of the block, and touched are their
	// senders.
	seal    func()
	session *txpool.Session
	touched []common.Address
}

func jamqConfig(l limits) txpool.Config {
	cfg := txpool.DefaultConfig(chainID)
	cfg.BlockGasLimit = gasLimit
	cfg.MaxPending, cfg.MaxQueued, cfg.MaxParked = l.transactions, l.transactions, l.transactions
	cfg.MaxBytes, cfg.MaxPerSender = 1<<40, l.perSender
	cfg.SurgeSlope = 0 // no peer has one
	return cfg
}

func openJamq(l limits) pool { return newJamq(jamqConfig(l)) }

func newJamq(cfg txpool.Config) *jamq {
	j := new(jamq)
	j.nonces.Store(new(map[common.Address]uint64))
	var err error
	j.Pool, err = txpool.New(cfg, txpool.StateFunc(func(a common.Address) (txpool.Account, error) {
		return txpool.Account{Nonce: (*j.nonces.Load())[a], Balance: *wealth}, nil
	}))
	must(err)
	return j
}

func (j *jamq) add(tx *types.Transaction) { must(j.Add(tx)) }

func (j *jamq) addAll(txs []*types.Transaction) {
	for _, err := range j.AddAll(txs) {
		must(err)
	}
}

func (j *jamq) best(n int) (count int) {
	for range j.Snapshot().All() {
		if count++; count == n {
			break
		}
	}
	return count
}

// first returns when a snapshot has returned its first transaction.
func (j *jamq) first() {
	for range j.Snapshot().All() {
		return
	}
}

// prepare creates the state after the block.
func (j *jamq) prepare(block []*types.Transaction) {
	nonces := make(map[common.Address]uint64, len(block))
	j.touched = make([]common.Address, len(block))
	for i, tx := range block {
		j.touched[i] = sender(tx)
		nonces[j.touched[i]] = tx.Nonce() + 1
	}
	j.seal = func() { j.nonces.Store(&nonces) }
}

// commit acts like a builder: the block of the session becomes the head.
func (j *jamq) commit(block []*types.Transaction) {
	j.seal()
	j.Reset(txpool.Head{Included: []txpool.Block{{Transactions: block}}, Touched: j.touched})
}

func (j *jamq) look(tx *types.Transaction) { look(tx) }

func (j *jamq) size() int { return j.Size() }
func (j *jamq) close()    {}
