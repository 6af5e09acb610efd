package node

import (
	"fmt"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
)

// Block is an executed rollup block. It is immutable: its hash is the same from
// sealing to finality.
type Block struct {
	*types.Block
	// Receipts are the receipts of its transactions, with block hash and log
	// indices.
	Receipts types.Receipts
}

// Progress is the position of a block on its way through JAM.
type Progress struct {
	// Status is the name of a bundlequeue.State, or "pooled" for a transaction
	// that is in no block.
	Status string
	// Version is the number of packages that were built for the block. Package
	// is the latest, or the one that the chain accumulated.
	Version int
	Package jamq.PackageHash
	// Core is the core that the package was sent to.
	Core jamq.CoreIndex
	// At is the JAM block that is the evidence for Status, or zero.
	At anchor.Point
	// Slots are the JAM slots at which the block last entered each state, by
	// the name of the state.
	Slots map[string]jamq.Slot
}

// ledger has the executed blocks from genesis to the newest, by number, hash
// and transaction. It is safe for concurrent use.
type ledger struct {
	mu       sync.RWMutex
	blocks   []*Block
	progress []Progress // by number
	byHash   map[common.Hash]*Block
	byTx     map[common.Hash]txPlace
}

type txPlace struct {
	block *Block
	index int
}

func newLedger(genesis *Block) *ledger {
	l := &ledger{byHash: make(map[common.Hash]*Block), byTx: make(map[common.Hash]txPlace)}
	l.add(genesis, 0)
	l.progress[0].Status = bundlequeue.Finalized.String()
	return l
}

// append adds a block at a JAM slot. It must follow the newest block.
func (l *ledger) append(b *Block, slot jamq.Slot) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	head := l.blocks[len(l.blocks)-1]
	if b.NumberU64() != head.NumberU64()+1 || b.ParentHash() != head.Hash() {
		return fmt.Errorf("node: block %d on %s does not follow %d %s", b.NumberU64(), b.ParentHash(), head.NumberU64(), head.Hash())
	}
	l.add(b, slot)
	return nil
}

func (l *ledger) add(b *Block, slot jamq.Slot) {
	l.blocks = append(l.blocks, b)
	l.progress = append(l.progress, Progress{Status: bundlequeue.Queued.String(), Slots: map[string]jamq.Slot{bundlequeue.Queued.String(): slot}})
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
	l.blocks, l.progress = l.blocks[:number], l.progress[:number]
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

// note records that a bundle entered a state at a JAM slot.
func (l *ledger) note(c bundlequeue.Changed, slot jamq.Slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.Number >= uint64(len(l.progress)) {
		return
	}
	p := &l.progress[c.Number]
	p.Status, p.Core, p.At = c.To.String(), c.Core, c.At
	if !c.Package.IsZero() {
		p.Version, p.Package = c.Version, c.Package
	}
	if !c.At.IsZero() && c.To != bundlequeue.Finalized {
		slot = c.At.Slot
	}
	// The map is replaced instead of changed, because readers may hold the old
	// one.
	slots := make(map[string]jamq.Slot, len(p.Slots)+1)
	for state, s := range p.Slots {
		slots[state] = s
	}
	slots[p.Status] = slot
	p.Slots = slots
}

func (l *ledger) progressOf(number uint64) Progress {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if number >= uint64(len(l.progress)) {
		return Progress{}
	}
	return l.progress[number]
}

// recovered appends a block that was executed before the process started.
func (l *ledger) recovered(b *Block, final bool) error {
	if err := l.append(b, 0); err != nil || !final {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.progress[b.NumberU64()].Status = bundlequeue.Finalized.String()
	return nil
}
