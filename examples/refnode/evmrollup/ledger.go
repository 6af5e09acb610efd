package evmrollup

import (
	"fmt"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Block is an executed rollup block. It is immutable: its hash is the same from
// sealing to finality.
type Block struct {
	*types.Block
	// Receipts are the receipts of its transactions, with block hash and log
	// indices.
	Receipts types.Receipts
}

// ledger has the executed blocks from genesis to the newest, by number, hash
// and transaction. It is safe for concurrent use.
type ledger struct {
	mu     sync.RWMutex
	blocks []*Block
	byHash map[common.Hash]*Block
	byTx   map[common.Hash]txPlace
}

type txPlace struct {
	block *Block
	index int
}

func newLedger(genesis *Block) *ledger {
	l := &ledger{byHash: make(map[common.Hash]*Block), byTx: make(map[common.Hash]txPlace)}
	l.add(genesis)
	return l
}

// append adds a block. It must follow the newest block.
func (l *ledger) append(b *Block) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	head := l.blocks[len(l.blocks)-1]
	if b.NumberU64() != head.NumberU64()+1 || b.ParentHash() != head.Hash() {
		return fmt.Errorf("evmrollup: block %d on %s does not follow %d %s", b.NumberU64(), b.ParentHash(), head.NumberU64(), head.Hash())
	}
	l.add(b)
	return nil
}

func (l *ledger) add(b *Block) {
	l.blocks = append(l.blocks, b)
	l.byHash[b.Hash()] = b
	for i, tx := range b.Transactions() {
		l.byTx[tx.Hash()] = txPlace{b, i}
	}
}

// truncate removes the blocks from number on and returns them, oldest first.
func (l *ledger) truncate(number uint64) []*Block {
	l.mu.Lock()
	defer l.mu.Unlock()
	if number == 0 || number >= uint64(len(l.blocks)) {
		return nil
	}
	gone := append([]*Block(nil), l.blocks[number:]...)
	for _, b := range gone {
		delete(l.byHash, b.Hash())
		for _, tx := range b.Transactions() {
			delete(l.byTx, tx.Hash())
		}
	}
	clear(l.blocks[number:])
	l.blocks = l.blocks[:number]
	return gone
}

func (l *ledger) head() *Block {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.blocks[len(l.blocks)-1]
}

func (l *ledger) byNumber(number uint64) *Block {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if number >= uint64(len(l.blocks)) {
		return nil
	}
	return l.blocks[number]
}

func (l *ledger) blockByHash(hash common.Hash) *Block {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.byHash[hash]
}

func (l *ledger) transaction(hash common.Hash) (*Block, int, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	place, ok := l.byTx[hash]
	return place.block, place.index, ok
}
