package main

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// pool is a mempool under test.
type pool interface {
	// add adds one transaction, addAll several; they panic if one is refused, because then the figures would mean nothing.
	add(tx *types.Transaction)
	addAll(txs []*types.Transaction)
	// look brings a transaction into the processor's cache.
	look(tx *types.Transaction)
	// best reads the best n, and returns how many it got.
	best(n int) int
	// commit removes a block, after the chain has executed it.
	commit(block []*types.Transaction)
	size() int
	close()
}

// limits says what a pool must have room for.
type limits struct {
	// accounts are those that the chain knows.
	accounts []common.Address
	// transactions is how many fit; perSender how many of one.
	transactions, perSender int
	// full says that it is about to be full.
	full bool
}

// contender is a kind of pool.
type contender struct {
	name string
	open func(limits) pool
	// evicts says that a full pool makes room for a better one.
	evicts bool
}

var contenders = []contender{
	{"geth", openGeth, true},
	{"cosmos", openCosmos, false},
	{"jamq", openJamq, true},
}

var (
	chainID = big.NewInt(4359)
	signer  = types.NewPragueSigner(chainID)
	// wealth is everybody's balance: 2^100 wei.
	wealth = new(uint256.Int).Lsh(uint256.NewInt(1), 100)
)

const gasLimit = 36_000_000

// look reads all of a transaction.
func look(tx *types.Transaction) {
	tx.Hash()
	tx.Size()
	tx.Cost()
	tx.GasTipCap()
	tx.ChainId()
	sender(tx)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func sender(tx *types.Transaction) common.Address {
	from, err := types.Sender(signer, tx)
	must(err)
	return from
}
