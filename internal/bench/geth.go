package main

import (
	"container/heap"
	"math/big"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/txpool"
	"github.com/ethereum/go-ethereum/core/txpool/legacypool"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// geth is go-ethereum's pool on a chain with two states: before and after a
// block.
type geth struct {
	*legacypool.LegacyPool
	config *params.ChainConfig
	state  atomic.Pointer[state.StateDB]
	after  *state.StateDB
	head   *types.Header
}

func openGeth(l limits) pool {
	config := *params.MergedTestChainConfig
	config.ChainID = chainID
	g := &geth{config: &config, head: &types.Header{Number: big.NewInt(1), GasLimit: gasLimit, BaseFee: new(big.Int), Difficulty: new(big.Int)}}
	db, err := state.New(types.EmptyRootHash, state.NewDatabaseForTesting())
	must(err)
	for _, a := range l.accounts {
		db.SetBalance(a, wealth, tracing.BalanceChangeUnspecified)
	}
	g.state.Store(db)
	slots, queue := l.transactions, l.transactions
	if l.full { // its capacity is the sum
		queue = min(1024, slots/2)
		slots -= queue
	}
	g.LegacyPool = legacypool.New(legacypool.Config{
		NoLocals: true, PriceLimit: 1, PriceBump: 10,
		AccountSlots: uint64(l.perSender), AccountQueue: uint64(l.perSender),
		GlobalSlots: uint64(slots), GlobalQueue: uint64(queue),
		Lifetime: legacypool.DefaultConfig.Lifetime, Rejournal: legacypool.DefaultConfig.Rejournal,
	}, g)
	must(g.Init(1, g.head, txpool.NewReservationTracker().NewHandle(0)))
	return g
}

// The chain that the pool asks.

func (g *geth) Config() *params.ChainConfig               { return g.config }
func (g *geth) CurrentBlock() *types.Header               { return g.head }
func (g *geth) GetBlock(common.Hash, uint64) *types.Block { return nil } // only reorgs ask
func (g *geth) StateAt(common.Hash, *big.Int, uint64) (*state.StateDB, error) {
	return g.state.Load(), nil
}

func (g *geth) add(tx *types.Transaction) { g.addAll([]*types.Transaction{tx}) }

func (g *geth) addAll(txs []*types.Transaction) {
	for _, err := range g.Add(txs, true) {
		must(err)
	}
}

// best selects transactions like geth's miner: it gets all pending transactions
// and keeps a heap of the next one of each sender.
func (g *geth) best(n int) int {
	pending, _ := g.Pending(txpool.PendingFilter{BaseFee: new(uint256.Int)})
	heads := make(byPrice, 0, len(pending))
	for _, txs := range pending {
		heads = append(heads, txs)
	}
	heap.Init(&heads)
	got := 0
	for ; got < n && len(heads) > 0; got++ {
		heads[0][0].Resolve()
		if heads[0] = heads[0][1:]; len(heads[0]) == 0 {
			heap.Pop(&heads)
		} else {
			heap.Fix(&heads, 0)
		}
	}
	return got
}

// byPrice is a heap of senders' transactions, ordered by the tip of the next
// one, then by arrival.
type byPrice [][]*txpool.LazyTransaction

func (h byPrice) Len() int { return len(h) }
func (h byPrice) Less(i, j int) bool {
	if c := h[i][0].GasTipCap.Cmp(h[j][0].GasTipCap); c != 0 {
		return c > 0
	}
	return h[i][0].Time.Before(h[j][0].Time)
}
func (h byPrice) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *byPrice) Push(x any)   { *h = append(*h, x.([]*txpool.LazyTransaction)) }
func (h *byPrice) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// prepare creates the state after the block.
func (g *geth) prepare(block []*types.Transaction) {
	g.after = g.state.Load().Copy()
	for _, tx := range block {
		g.after.SetNonce(sender(tx), tx.Nonce()+1, tracing.NonceChangeUnspecified)
	}
}

// commit resets the pool to the head that contains the block.
func (g *geth) commit([]*types.Transaction) {
	old := g.head
	g.head = &types.Header{ParentHash: old.Hash(), Number: big.NewInt(2), GasLimit: gasLimit, BaseFee: new(big.Int), Difficulty: new(big.Int)}
	g.state.Store(g.after)
	g.Reset(old, g.head)
}

func (g *geth) look(tx *types.Transaction) { look(tx) }

func (g *geth) size() int {
	pending, queued := g.Stats()
	return pending + queued
}

func (g *geth) close() { must(g.Close()) }
