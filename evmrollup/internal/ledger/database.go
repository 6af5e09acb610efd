package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/statedb"
)

var (
	// ErrOtherChain is returned if the data directory belongs to a different chain: its
	// genesis block is not the genesis block of this one.
	ErrOtherChain = errors.New("ledger: the data directory is of another chain")
	// ErrDamaged is returned if the database has lost or changed the data that was written.
	ErrDamaged = errors.New("ledger: the database is damaged")
)

// These are the kinds of keys in the database. A number in a key has 8 bytes in
// big-endian order, so that the order of keys is the order of blocks.
//
//	b ‖ number            RLP of the block
//	r ‖ number            RLP of the receipts, without logs
//	g ‖ number            RLP of the logs with their transactions; missing if there are none
//	p ‖ number            RLP of the progress
//	h ‖ hash              number of the block
//	t ‖ hash              number of the transaction's block, and its index, 4 bytes
//	a ‖ address ‖ number  nothing: the block has a log with the address
//	l ‖ topic ‖ number    nothing: the block has a log with the topic
//	m                     number of the last block
//	s ‖ number            RLP of the header of a pruned block, which has no b, r, g, t, a and l
//	x                     number of the oldest block after the genesis that is not pruned
//	o                     number of the block with which the directory began, if it was imported
//	i                     RLP of the imported records of the pool, until the first start
const (
	keyBlock       = 'b'
	keyReceipts    = 'r'
	keyLogs        = 'g'
	keyProgress    = 'p'
	keyHash        = 'h'
	keyTransaction = 't'
	keyAddress     = 'a'
	keyTopic       = 'l'
	keyLast        = 'm'
	keyOrigin      = 'o'
	keyImported    = 'i'
	keyHeader      = 's'
	keyOldest      = 'x'
)

// Disk is an ordered key-value store. Several goroutines use it at the same time.
type Disk interface {
	// Get returns the value of a key, or nil if the key has none. The caller may keep and change
	// the result.
	Get(key []byte) ([]byte, error)
	// Write stores all records or none of them. The records may become durable later, at
	// the latest during Sync, but always in the order in which they were written.
	Write(records []statedb.Record) error
	// Sync makes all records durable.
	Sync() error
	// Scan calls f for the keys from the first argument (inclusive) to the second
	// (exclusive), in order. It stops at the first error and returns it. The slice that f
	// receives is valid only during that call of f.
	Scan(from, to []byte, f func(key []byte) error) error
}

// database keeps the final blocks of a ledger on a disk.
type database struct {
	disk   Disk
	config *params.ChainConfig
	log    *slog.Logger
	damage atomic.Pointer[error] // the first one that was found
}

// check panics if err is not nil, because a caller must not mistake a damaged database
// for a missing block. It first records and logs the error.
func (d *database) check(err error) {
	if err == nil {
		return
	}
	d.found(err)
	panic(err)
}

// found stores the first error that shows a damaged database, so that Ledger.Damage can
// return it, and logs it. It ignores later errors.
func (d *database) found(err error) {
	if d.damage.CompareAndSwap(nil, &err) {
		d.log.Error("the database is damaged", "err", err)
	}
}

// Recover converts the panic of a damaged ledger to an error that wraps ErrDamaged. It
// must be called with defer. It does not stop other panics.
func Recover(err *error) {
	p := recover()
	if p == nil {
		return
	}
	damage, ok := p.(error)
	if !ok || !errors.Is(damage, ErrDamaged) {
		panic(p)
	}
	*err = damage
}

func key(kind byte, parts ...[]byte) []byte {
	return slices.Concat(append([][]byte{{kind}}, parts...)...)
}

func numbered(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// get returns the value of a key, or nil if the key has none.
func (d *database) get(key []byte) ([]byte, error) {
	value, err := d.disk.Get(key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return value, nil
}

// open compares the genesis with that in the database, or writes it to an empty
// database. It returns the number of the last block.
func (d *database) open(genesis *types.Block) (last uint64, err error) {
	raw, err := d.get(key(keyLast))
	switch {
	case err != nil:
		return 0, err
	case raw == nil:
		if err := d.write(&Block{Block: genesis}, builder.Progress{State: bundlequeue.Finalized}); err != nil {
			return 0, err
		}
		return 0, d.disk.Sync()
	case len(raw) != 8:
		return 0, fmt.Errorf("%w: the number of the last block has %d bytes, want 8", ErrDamaged, len(raw))
	}
	first, err := d.read(0)
	if err == nil && (first == nil || first.Hash() != genesis.Hash()) {
		err = fmt.Errorf("%w: want the genesis %s", ErrOtherChain, genesis.Hash())
	}
	return binary.BigEndian.Uint64(raw), err
}

// origin returns the number of the ledger's first block: the last imported block or, if
// nothing was imported, block 0.
func (d *database) origin() (uint64, error) {
	raw, err := d.get(key(keyOrigin))
	switch {
	case err != nil || raw == nil:
		return 0, err
	case len(raw) != 8:
		return 0, fmt.Errorf("%w: the number of the first block has %d bytes, want 8", ErrDamaged, len(raw))
	}
	return binary.BigEndian.Uint64(raw), nil
}

// setOrigin stores the origin and makes everything written so far durable.
func (d *database) setOrigin(number uint64) error {
	if err := d.disk.Write([]statedb.Record{{Key: key(keyOrigin), Value: numbered(number)}}); err != nil {
		return err
	}
	return d.disk.Sync()
}

// storedProgress is the RLP of a progress.
type storedProgress struct {
	State   uint8
	Version uint64
	Package jamq.PackageHash
	Core    uint16
	Hash    jamq.HeaderHash
	Slot    uint32
	Height  uint64
}

// write writes a block and its progress to the database, and index entries for its
// hash, its transactions and its logs.
func (d *database) write(b *Block, at builder.Progress) error {
	number := numbered(b.NumberU64())
	progress := storedProgress{
		State: uint8(at.State), Version: uint64(at.Version), Package: at.Package, Core: uint16(at.Core),
		Hash: at.At.Hash, Slot: uint32(at.At.Slot), Height: at.At.Height,
	}
	raw, err := rlp.EncodeToBytes(&progress)
	if err != nil {
		return err
	}
	records, err := d.content(b)
	if err != nil {
		return err
	}
	return d.disk.Write(append(records, statedb.Record{Key: key(keyHash, b.Hash().Bytes()), Value: number},
		statedb.Record{Key: key(keyProgress, number), Value: raw}, statedb.Record{Key: key(keyLast), Value: number}))
}

// content returns the records of a block that pruning will delete later: body,
// receipts, logs and index.
func (d *database) content(b *Block) (records []statedb.Record, err error) {
	number := numbered(b.NumberU64())
	for kind, value := range map[byte]any{keyBlock: b.Block, keyReceipts: withoutLogs(b.Receipts)} {
		raw, err := rlp.EncodeToBytes(value)
		if err != nil {
			return nil, err
		}
		records = append(records, statedb.Record{Key: key(kind, number), Value: raw})
	}
	for i, tx := range b.Transactions() {
		at := binary.BigEndian.AppendUint32(bytes.Clone(number), uint32(i))
		records = append(records, statedb.Record{Key: key(keyTransaction, tx.Hash().Bytes()), Value: at})
	}
	if logs := b.Logs(); len(logs) > 0 {
		record, err := logRecord(b)
		if err != nil {
			return nil, err
		}
		records = append(append(records, record), indexOf(logs, number)...)
	}
	return records, nil
}

// read returns the block with the given number, or nil if there is none. Another
// goroutine may prune the block at the same time. read therefore reads the receipts
// last, and returns only the header if they are missing.
func (d *database) read(number uint64) (*Block, error) {
	raw, err := d.get(key(keyBlock, numbered(number)))
	switch {
	case err != nil:
		return nil, err
	case raw == nil:
		return d.header(number)
	}
	b := &Block{Block: new(types.Block)}
	if err := rlp.DecodeBytes(raw, b.Block); err != nil {
		return nil, fmt.Errorf("%w: block %d: %w", ErrDamaged, number, err)
	}
	if b.Receipts, err = d.receipts(number); err != nil {
		return nil, err
	}
	if b.Receipts == nil {
		return d.header(number)
	}
	if err := b.Receipts.DeriveFields(d.config, b.Hash(), number, b.Time(), b.BaseFee(), nil, b.Transactions()); err != nil {
		return nil, fmt.Errorf("%w: receipts of block %d: %w", ErrDamaged, number, err)
	}
	return b, nil
}

// receipts returns the receipts of a block with their logs, or nil if there is no such
// block. It does not set fields that can be computed from the block.
func (d *database) receipts(number uint64) (types.Receipts, error) {
	logs, err := d.logsOf(number)
	if err != nil {
		return nil, err
	}
	raw, err := d.get(key(keyReceipts, numbered(number)))
	if err != nil || raw == nil {
		return nil, err
	}
	var stored []*types.ReceiptForStorage
	if err := rlp.DecodeBytes(raw, &stored); err != nil {
		return nil, fmt.Errorf("%w: receipts of block %d: %w", ErrDamaged, number, err)
	}
	receipts := Receipts(stored)
	for _, l := range logs {
		if l.TxIndex >= uint(len(receipts)) {
			return nil, fmt.Errorf("%w: block %d has %d receipts, and a log of transaction %d", ErrDamaged, number, len(receipts), l.TxIndex)
		}
		r := receipts[l.TxIndex]
		r.Logs = append(r.Logs, l)
	}
	return receipts, nil
}

// withoutLogs returns receipts without logs, which the database stores separately.
func withoutLogs(receipts types.Receipts) []*types.ReceiptForStorage {
	stored := StoredReceipts(receipts)
	for i, r := range stored {
		bare := *r
		bare.Logs = nil
		stored[i] = &bare
	}
	return stored
}

// StoredReceipts converts receipts to the type in which go-ethereum stores them. This
// type leaves out fields that can be computed from the block.
func StoredReceipts(receipts types.Receipts) []*types.ReceiptForStorage {
	stored := make([]*types.ReceiptForStorage, len(receipts))
	for i, r := range receipts {
		stored[i] = (*types.ReceiptForStorage)(r)
	}
	return stored
}

// Receipts is the inverse of StoredReceipts. It does not set fields that can be
// computed from the block.
func Receipts(stored []*types.ReceiptForStorage) types.Receipts {
	receipts := make(types.Receipts, len(stored))
	for i, r := range stored {
		if receipts[i] = (*types.Receipt)(r); len(r.Logs) == 0 {
			r.Logs = nil // as execution leaves it
		}
	}
	return receipts
}

// number returns the number of the block with the given hash, or false if there is
// none.
func (d *database) number(hash common.Hash) (uint64, bool) {
	raw, err := d.get(key(keyHash, hash[:]))
	d.check(err)
	if len(raw) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(raw), true
}

// transaction returns the number of a transaction's block, and its index in that block.
func (d *database) transaction(hash common.Hash) (number uint64, index int, known bool) {
	raw, err := d.get(key(keyTransaction, hash[:]))
	d.check(err)
	if len(raw) != 12 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(raw), int(binary.BigEndian.Uint32(raw[8:])), true
}

// progress returns the progress of a block.
func (d *database) progress(number uint64) (at builder.Progress, known bool) {
	raw, err := d.get(key(keyProgress, numbered(number)))
	d.check(err)
	if raw == nil {
		return at, false
	}
	var p storedProgress
	if err := rlp.DecodeBytes(raw, &p); err != nil {
		d.check(fmt.Errorf("%w: progress of block %d: %w", ErrDamaged, number, err))
	}
	return builder.Progress{
		State: bundlequeue.State(p.State), Version: int(p.Version), Package: p.Package, Core: jamq.CoreIndex(p.Core),
		At: anchor.Point{Hash: p.Hash, Slot: jamq.Slot(p.Slot), Height: p.Height},
	}, true
}
