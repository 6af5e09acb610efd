package evmrollup

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/jamq/jamq/submit/journal"
	"github.com/jamq/jamq/txpool"
)

// The first byte of a record is its kind. The records of a checkpoint are the number
// of the last final block, the blocks after it, and the content of the pool.
const (
	recordPool     = 'P' // of the pool
	recordReturned = 'R' // 32 bytes: hash of a block that was undone; the pool has its transactions
	recordFinal    = 'F' // 8 bytes: the last final block
	recordBlock    = 'B' // RLP of a block
)

// errRecord is wrapped by the error of a record that this package did not write.
var errRecord = errors.New("evmrollup: malformed record")

// recovery collects the records of the pool while the log is read.
type recovery struct {
	pool   [][]byte       // records
	undone []*types.Block // whose transactions may be in no record of the pool
}

func (f *recovery) forget(block common.Hash) {
	f.undone = slices.DeleteFunc(f.undone, func(b *types.Block) bool { return b.Hash() == block })
}

// replay passes on the records of the pool.
func (f *recovery) replay(step func([]byte) error) error {
	for _, record := range f.pool {
		if err := step(record); err != nil {
			return err
		}
	}
	return nil
}

// poolJournal writes the records of the pool to the builder's log.
type poolJournal struct{ *Chain }

// Append implements txpool.Journal.
func (j poolJournal) Append(records ...[]byte) error { return j.record(framed(records)...) }

func framed(records [][]byte) [][]byte {
	all := make([][]byte, len(records))
	for i, record := range records {
		all[i] = append([]byte{recordPool}, record...)
	}
	return all
}

// Replay implements builder.Recorder.
func (r *rollup) Replay(_ context.Context, record []byte) error {
	switch {
	case len(record) > 0 && record[0] == recordPool:
		r.found.pool = append(r.found.pool, record[1:])
	case len(record) == 1+common.HashLength && record[0] == recordReturned:
		r.found.forget(common.Hash(record[1:]))
	default:
		return fmt.Errorf("%w: %.8x", errRecord, record)
	}
	return nil
}

// Recovered implements builder.Recorder. It restores the pool. It forgets none of its
// transactions: the pool holds those aside that it cannot admit now. Leases are released,
// because the transactions of blocks are not in the pool any more.
func (r *rollup) Recovered(_ context.Context, record func(records ...[]byte) error) error {
	r.recorder.Store(&record)
	restored, err := r.pool.Restore(r.found.replay)
	if err != nil {
		return err
	}
	for _, lease := range r.pool.Leases() {
		if err := lease.Release(); err != nil {
			return err
		}
	}
	r.archive.found = nil
	r.logDisplaced(restored.Displaced)
	undone := r.found.undone
	r.found = nil
	if err := r.returned(undone...); err != nil {
		return err
	}
	if head := r.ledger.head().NumberU64(); head > 0 || r.pool.Size() > 0 {
		r.log.Info("recovered", "blocks", head, "transactions", r.pool.Size(), "held aside", len(r.pool.Held()), "poisoned", len(restored.Poisoned))
	}
	return nil
}

// returned gives the transactions of blocks that were undone back to the pool, and records
// that the pool has them.
func (r *rollup) returned(blocks ...*types.Block) error {
	head := txpool.Head{BaseFee: r.nextHeader(r.ledger.head()).BaseFee}
	var records [][]byte
	for _, b := range slices.Backward(blocks) { // undone newest first
		head.Reverted = append(head.Reverted, poolBlock(&Block{Block: b}))
		records = append(records, append([]byte{recordReturned}, b.Hash().Bytes()...))
		r.log.Warn("a block failed; its transactions are executed again", "block", b.Number(), "transactions", len(b.Transactions()))
	}
	r.logDisplaced(r.pool.Reset(head))
	if err := r.pool.Flush(); err != nil || len(records) == 0 {
		return err
	}
	return r.record(records...)
}

// Checkpoint implements builder.Checkpointer. Final blocks go to the archive.
func (r *rollup) Checkpoint(context.Context) ([][]byte, error) {
	if err := r.archive.save(); err != nil {
		return nil, err
	}
	final := r.archive.last
	records := [][]byte{binary.BigEndian.AppendUint64([]byte{recordFinal}, final)}
	for b := r.ledger.byNumber(final + 1); b != nil; b = r.ledger.byNumber(b.NumberU64() + 1) {
		raw, err := rlp.EncodeToBytes(b.Block)
		if err != nil {
			return nil, err
		}
		records = append(records, append([]byte{recordBlock}, raw...))
	}
	return append(records, framed(r.pool.Records())...), nil
}

// Restore implements builder.Checkpointer. It executes all blocks again.
func (r *rollup) Restore(_ context.Context, records [][]byte) error {
	for _, record := range records {
		if len(record) == 0 {
			return fmt.Errorf("%w: empty", errRecord)
		}
		kind, body := record[0], record[1:]
		switch {
		case kind == recordPool:
			r.found.pool = append(r.found.pool, body)
		case kind == recordFinal && len(body) == 8:
			if err := r.restoreFinal(binary.BigEndian.Uint64(body)); err != nil {
				return err
			}
		case kind == recordBlock:
			b, err := Codec{}.Decode(body)
			if err != nil {
				return err
			}
			if err := r.again(b.Block); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%w: a checkpoint has %.8x", errRecord, record)
		}
	}
	return nil
}

// restoreFinal executes the blocks of the archive up to a number.
func (r *rollup) restoreFinal(last uint64) error {
	blocks := r.archive.found
	if r.archive.found = nil; uint64(len(blocks)) < last {
		return fmt.Errorf("%w: the archive has %d blocks, want %d; restore the data directory as a whole", errRecord, len(blocks), last)
	}
	for _, b := range blocks[:last] {
		if err := r.again(b); err != nil {
			return err
		}
		if err := r.finalize(r.ledger.head()); err != nil {
			return err
		}
	}
	return nil
}

// ErrOtherChain is returned if the archive is that of a chain with another genesis.
var ErrOtherChain = errors.New("evmrollup: the archive of another chain")

// archive has the final blocks from the genesis on. It may have more than the last
// checkpoint knows of.
type archive struct {
	journal journal.Journal // may be nil
	found   []*types.Block  // at the start, without the genesis
	saved   uint64          // number of the last block in the journal
	last    uint64          // final block
	unsaved []*types.Block  // final, and not in the journal
}

// open reads the blocks of a journal, which may be nil.
func (a *archive) open(j journal.Journal, genesis *types.Block) error {
	if a.journal = j; j == nil {
		return nil
	}
	var all []*types.Block
	err := j.Replay(func(record []byte) error {
		b, err := Codec{}.Decode(record)
		switch {
		case err != nil:
			return err
		case b.NumberU64() != uint64(len(all)):
			return fmt.Errorf("%w: block %d in the archive, want %d", errRecord, b.NumberU64(), len(all))
		case len(all) == 0 && b.Hash() != genesis.Hash():
			return fmt.Errorf("%w: the genesis is %s, want %s", ErrOtherChain, b.Hash(), genesis.Hash())
		}
		all = append(all, b.Block)
		return nil
	})
	if err != nil {
		return err
	}
	if len(all) == 0 {
		a.unsaved = []*types.Block{genesis}
		return a.save()
	}
	a.found, a.saved = all[1:], uint64(len(all))-1
	return nil
}

// add adds a final block.
func (a *archive) add(b *types.Block) {
	if a.last = b.NumberU64(); a.journal != nil && a.last > a.saved {
		a.unsaved = append(a.unsaved, b)
	}
}

// save makes the blocks durable.
func (a *archive) save() error {
	const most = 64 // blocks in one write
	for some := range slices.Chunk(a.unsaved, most) {
		records := make([][]byte, len(some))
		for i, b := range some {
			var err error
			if records[i], err = rlp.EncodeToBytes(b); err != nil {
				return err
			}
		}
		if err := a.journal.Append(records...); err != nil {
			return err
		}
		a.saved = some[len(some)-1].NumberU64()
	}
	a.unsaved = nil
	return nil
}
