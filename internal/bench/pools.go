package main

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// pool is a mempool under test.
type pool interface {
	// add adds one transaction, and addAll several. They panic if the pool
	// refuses one, because the figures would then be meaningless.
	add(tx *types.Transaction)
	addAll(txs []*types.Transaction)
	// look loads a transaction into the CPU's cache.
	look(tx *types.Transaction)
	// best reads the best n transactions and returns the number that it got.
	best(n int) int
	// commit removes the transactions of a block that the chain has executed.
	commit(block []*types.Transaction)
	size() int
	close()
}

// limits is the capacity that a pool needs.
type limits struct {
	// accounts are the accounts on the chain.
	accounts []common.Address
	// transactions is the capacity of the pool, and perSender the limit for one
	// sender.
	transactions, perSender int
	// full is true if the workload fills the pool.
	full bool
}

// contender is a kind of pool.
type contender struct {
	name string
	open func(limits) pool
	// evicts is true if a full pool replaces a transaction by a better one.
	evicts bool
}

var contenders = []contender{
	{"geth", openGeth, true},
	{"cosmos", openCosmos, false},
	{"bare", openBare, true},
	{"jamq", openJamq, true},
}

// columns returns the names of the contenders.
func columns() (names []string) {
	for _, c := range contenders {
		names = append(names, c.name)
	}
	return names
}

var (
	chainID = big.NewInt(4359)
	signer  = types.NewPragueSigner(chainID)
	// wealth is the balance of every account: 2^100 wei.
	wealth = new(uint256.Int).Lsh(uint256.NewInt(1), 100)
)

const gasLimit = 36_000_000

// look reads all fields of a transaction.
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
