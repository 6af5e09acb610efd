// Package ledger keeps the executed blocks of the reference node, from the genesis to
// the newest block. Without a database, all blocks are in memory. With a database, all
// final blocks are stored there, and only the newest blocks are also in memory.
package ledger

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"

	"github.com/jamq/jamq/builder"
)

// Block is an executed block of the rollup together with its receipts. A block
// never changes: its hash stays the same from sealing to finality.
type Block struct {
	*types.Block
	// Receipts are the receipts of the block's transactions. The hash of the block and the
	// indices of the logs are set.
	Receipts types.Receipts
	// Pruned is true if the ledger has only the header of the block left, without
	// transactions and receipts.
	Pruned bool
}

const (
	// window is the number of newest final blocks that stay in memory, so that reading them
	// does not need the database.
	window = 64
	// cached is the number of older blocks that stay in memory after they were read.
	cached = 32
)

// Ledger keeps the executed blocks and finds them by number, by hash and by
// transaction. It is safe for concurrent use. If the database is damaged, methods that
// read panic with an error that wraps ErrDamaged, because any other answer would be
// wrong. [Recover] converts this panic to an error.
type Ledger struct {
	old    *database // nil: all blocks are in memory
	origin uint64
	keep   uint64        // final blocks that are not pruned; 0: all
	oldest atomic.Uint64 // after the genesis; older ones are pruned
	cache  *lru.Cache[uint64, *Block]

	mu     sync.RWMutex
	first  uint64   // number of blocks[0]
	blocks []*Block // up to the newest
	final  uint64   // the last block in the database
	byHash map[common.Hash]*Block
	byTx   map[common.Hash]place
}

// place is the position of a transaction: its block, and its index in that block.
type place struct {
	block *Block
	index int
}

// New returns a ledger in memory that begins with a genesis.
func New(genesis *Block) *Ledger {
	l := &Ledger{byHash: make(map[common.Hash]*Block), byTx: make(map[common.Hash]place), cache: lru.NewCache[uint64, *Block](cached)}
	l.oldest.Store(1)
	l.add(genesis)
	return l
}

// ErrImport is returned if the disk for an import already has blocks, or if a disk is
// opened on which an import was interrupted.
var ErrImport = errors.New("ledger: an import needs an empty data directory")

// Open returns a ledger with the final blocks on a disk. If the disk is empty, the
// ledger begins with the genesis. keep is the number of final blocks that the ledger
// keeps whole. It must be at least MinKeep; 0 means all. Of older blocks, the ledger
// keeps only the header and the progress. The error wraps ErrOtherChain or ErrDamaged,
// or is that of the disk.
func Open(disk Disk, config *params.ChainConfig, genesis *Block, keep uint64, log *slog.Logger) (*Ledger, error) {
	l := New(genesis)
	old := &database{disk: disk, config: config, log: log}
	last, err := old.open(genesis.Block)
	if err != nil {
		return nil, err
	}
	if l.origin, err = old.origin(); err != nil {
		return nil, err
	}
	if l.origin == importing {
		return nil, fmt.Errorf("%w: an earlier one was interrupted", ErrImport)
	}
	oldest, err := old.oldest()
	if err != nil {
		return nil, err
	}
	l.oldest.Store(oldest)
	if l.keep = keep; keep > 0 {
		l.keep = max(keep, MinKeep)
	}
	if l.old = old; last > 0 {
		return l, l.startAt(last)
	}
	return l, nil
}

// importing is stored as the origin during an import, so that Open notices an
// interruption.
const importing = math.MaxUint64

// Import fills an empty ledger with the final blocks after the genesis. The function
// fill must call add for each block, in order. The last block becomes the origin of the
// ledger. After an error, the disk cannot be used any more.
func (l *Ledger) Import(fill func(add func(*Block, builder.Progress) error) error) error {
	if l.old == nil || l.Head().NumberU64() > 0 {
		return fmt.Errorf("%w: it has %d blocks already", ErrImport, l.Head().NumberU64())
	}
	if err := l.old.setOrigin(importing); err != nil {
		return err
	}
	err := fill(func(b *Block, at builder.Progress) error {
		if err := l.Append(b); err != nil {
			return err
		}
		return l.Finalize(b.NumberU64(), at)
	})
	if err != nil {
		return err
	}
	l.origin = l.Head().NumberU64()
	return l.old.setOrigin(l.origin)
}

// Origin returns the number of the ledger's first block: 0 for the genesis, or the
// number of the last imported block.
func (l *Ledger) Origin() uint64 { return l.origin }

// startAt makes a block from the database the newest block. Earlier blocks are read
// from the database when they are needed.
func (l *Ledger) startAt(number uint64) error {
	b, err := l.old.read(number)
	if err == nil && b == nil {
		err = missing(number)
	}
	if err != nil {
		return err
	}
	l.final, l.first, l.blocks = number, number, nil
	clear(l.byHash)
	clear(l.byTx)
	l.add(b)
	return nil
}

// missing returns the error for a block that the database has lost.
func missing(number uint64) error { return fmt.Errorf("%w: block %d is missing", ErrDamaged, number) }

// Rewind makes a final block the newest block after a restart, so that the builder can
// apply the blocks that follow it again. Those blocks stay in the database.
func (l *Ledger) Rewind(number uint64) error {
	if l.old == nil && number == l.Head().NumberU64() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	final := l.final
	if l.old == nil || number > final {
		return fmt.Errorf("%w: the ledger has %d final blocks, want %d", ErrDamaged, final, number)
	}
	err := l.startAt(number)
	l.final = final
	return err
}

// Final returns the number of the last final block in the database. Without a database,
// it returns 0.
func (l *Ledger) Final() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.final
}

// Append adds a block after the newest block. It returns an error if the block is
// not a child of the newest block.
func (l *Ledger) Append(b *Block) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	head := l.blocks[len(l.blocks)-1]
	if b.NumberU64() != head.NumberU64()+1 || b.ParentHash() != head.Hash() {
		return fmt.Errorf("ledger: block %d on %s does not follow %d %s", b.NumberU64(), b.ParentHash(), head.NumberU64(), head.Hash())
	}
	l.add(b)
	return nil
}

func (l *Ledger) add(b *Block) {
	l.blocks = append(l.blocks, b)
	l.byHash[b.Hash()] = b
	for i, tx := range b.Transactions() {
		l.byTx[tx.Hash()] = place{b, i}
	}
}

// forget removes blocks from memory.
func (l *Ledger) forget(blocks []*Block) {
	for _, b := range blocks {
		delete(l.byHash, b.Hash())
		for _, tx := range b.Transactions() {
			delete(l.byTx, tx.Hash())
		}
	}
}

// Truncate removes the block with the given number and all later blocks, and returns
// them, oldest first. None of them may be final.
func (l *Ledger) Truncate(number uint64) []*Block {
	l.mu.Lock()
	defer l.mu.Unlock()
	if number <= l.first || number-l.first >= uint64(len(l.blocks)) {
		return nil
	}
	rest := l.blocks[number-l.first:]
	gone := append([]*Block(nil), rest...)
	l.forget(gone)
	clear(rest)
	l.blocks = l.blocks[:number-l.first]
	return gone
}

// Finalize writes a final block and its progress on JAM to the database. The write
// becomes durable at the next Sync. If the database already has the block, Finalize
// does nothing.
func (l *Ledger) Finalize(number uint64, at builder.Progress) error {
	if l.old == nil || number <= l.Final() {
		return nil
	}
	if err := l.old.write(l.ByNumber(number), at); err != nil {
		return err
	}
	l.moveWindow(number)
	return l.prune(number)
}

// moveWindow records that a block has become final, and removes blocks that are now too
// old from memory.
func (l *Ledger) moveWindow(number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.final = number
	if l.first+window <= number {
		n := number + 1 - window - l.first
		l.forget(l.blocks[:n])
		clear(l.blocks[:n])
		l.blocks, l.first = l.blocks[n:], l.first+n
	}
}

// Stored returns the block with this number and hash if the database already has it as
// a final block, and nil otherwise.
func (l *Ledger) Stored(number uint64, hash common.Hash) *Block {
	if l.old == nil || number > l.Final() {
		return nil
	}
	b, err := l.old.read(number)
	if l.old.check(err); b != nil && !b.Pruned && b.Hash() == hash {
		return b
	}
	return nil
}

// Damage returns the first error that shows a damaged database, or nil. The error wraps
// ErrDamaged.
func (l *Ledger) Damage() error {
	if l.old == nil {
		return nil
	}
	if err := l.old.damage.Load(); err != nil {
		return *err
	}
	return nil
}

// Sync makes all final blocks that were written durable.
func (l *Ledger) Sync() error {
	if l.old == nil {
		return nil
	}
	return l.old.disk.Sync()
}

// Head returns the newest block.
func (l *Ledger) Head() *Block {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.blocks[len(l.blocks)-1]
}

// ByNumber returns the block with the given number, or nil if there is none. The block
// may have only its header left: see Block.Pruned.
func (l *Ledger) ByNumber(number uint64) *Block {
	l.mu.RLock()
	if number >= l.first {
		defer l.mu.RUnlock()
		if number-l.first >= uint64(len(l.blocks)) {
			return nil
		}
		return l.blocks[number-l.first]
	}
	l.mu.RUnlock()
	b, ok := l.cache.Get(number)
	if !ok {
		var err error
		if b, err = l.old.read(number); err == nil && b == nil {
			err = missing(number)
		}
		l.old.check(err)
		l.cache.Add(number, b)
	}
	if l.pruned(number) && !b.Pruned {
		return bare(b.Header())
	}
	return b
}

// ByHash returns the block with the given hash, or nil.
func (l *Ledger) ByHash(hash common.Hash) *Block {
	l.mu.RLock()
	b := l.byHash[hash]
	l.mu.RUnlock()
	if b != nil || l.old == nil {
		return b
	}
	number, ok := l.old.number(hash)
	if !ok || number > l.Head().NumberU64() {
		return nil
	}
	return l.ByNumber(number)
}

// Transaction returns the block that contains a transaction, and the transaction's
// index in that block. It cannot find transactions of pruned blocks.
func (l *Ledger) Transaction(hash common.Hash) (*Block, int, bool) {
	l.mu.RLock()
	at, known := l.byTx[hash]
	l.mu.RUnlock()
	if known || l.old == nil {
		return at.block, at.index, known
	}
	number, index, known := l.old.transaction(hash)
	if !known || number > l.Head().NumberU64() {
		return nil, 0, false
	}
	b := l.ByNumber(number)
	if b == nil || b.Pruned {
		return nil, 0, false
	}
	return b, index, true
}

// Progress returns the progress of a final block on JAM. It returns false if the
// database does not have the block.
func (l *Ledger) Progress(number uint64) (at builder.Progress, known bool) {
	if l.old == nil || number > l.Final() {
		return at, false
	}
	return l.old.progress(number)
}
