package evmrollup

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/jamq/jamq/builder/mempool"
)

// The kinds of records in a checkpoint, each of which is a record's first byte. A
// checkpoint consists of the number of the last final block, the blocks after it, and
// the records of the pool.
const (
	recordFinal = 'F' // 8 bytes: the last final block
	recordBlock = 'B' // RLP of a block
)

// errRecord is returned if the log has a record that this package cannot have written.
var errRecord = errors.New("evmrollup: malformed record")

// TakeChanges implements builder.Operations. It returns the changes of the pool. The
// first call after an import also returns the imported transactions.
func (r *rollup) TakeChanges() [][]byte {
	imported := r.imported
	r.imported = nil
	return append(imported, r.pool.TakeChanges()...)
}

// ReplayChange implements builder.Operations.
func (r *rollup) ReplayChange(ctx context.Context, change []byte) error {
	return r.pool.ReplayChange(ctx, change)
}

// Recovered implements builder.Operations. At the first start after an import,
// Recovered also writes the imported transactions to the log.
func (r *rollup) Recovered(ctx context.Context, save func() error) error {
	imported, err := r.ledger.Imported()
	if err != nil {
		return err
	}
	for _, some := range imported {
		if err := r.pool.ReplayChange(ctx, some); err != nil {
			return err
		}
	}
	if err := r.pool.Recovered(ctx, save); err != nil {
		return err
	}
	if len(imported) > 0 {
		r.imported = r.pool.Records()
		if err := save(); err != nil {
			return err
		}
		if err := r.ledger.ForgetImported(); err != nil {
			return err
		}
	}
	if head := r.ledger.Head().NumberU64(); head > 0 || r.pool.Size() > 0 {
		r.log.Info("recovered", "blocks", head, "transactions", r.pool.Size(), "held aside", len(r.pool.Held()))
	}
	return nil
}

// Checkpoint implements builder.Checkpointer. The checkpoint contains no states and no
// final blocks, because these are in the database.
func (r *rollup) Checkpoint(context.Context) ([][]byte, error) {
	if err := r.repin(&r.offered, r.ledger.ByNumber(r.final).Root()); err != nil {
		return nil, err
	}
	if err := r.ledger.Sync(); err != nil { // of the whole database
		return nil, err
	}
	records := [][]byte{binary.BigEndian.AppendUint64([]byte{recordFinal}, r.final)}
	for b := r.ledger.ByNumber(r.final + 1); b != nil; b = r.ledger.ByNumber(b.NumberU64() + 1) {
		raw, err := rlp.EncodeToBytes(b.Block)
		if err != nil {
			return nil, err
		}
		records = append(records, append([]byte{recordBlock}, raw...))
	}
	return append(records, r.pool.Records()...), nil
}

// Prune implements builder.Pruner.
func (r *rollup) Prune(context.Context) error { return r.repin(&r.logged, r.offered) }

// repin makes the store keep the state with the given root, and lets it drop the state in
// pin, which was kept before. pin then has the new root.
func (r *rollup) repin(pin *common.Hash, root common.Hash) error {
	if err := r.states.Pin(root); err != nil {
		return err
	}
	old := *pin
	if *pin = root; old == (common.Hash{}) {
		return nil
	}
	return r.states.Unpin(old)
}

// Restore implements builder.Checkpointer.
func (r *rollup) Restore(ctx context.Context, records [][]byte) error {
	for _, record := range records {
		if len(record) == 0 {
			return fmt.Errorf("%w: empty", errRecord)
		}
		kind, body := record[0], record[1:]
		switch {
		case mempool.Owns(record):
			if err := r.pool.ReplayChange(ctx, record); err != nil {
				return err
			}
		case kind == recordFinal && len(body) == 8:
			r.final = binary.BigEndian.Uint64(body)
			if err := r.ledger.Rewind(r.final); err != nil {
				return err
			}
			if err := r.repin(&r.logged, r.ledger.ByNumber(r.final).Root()); err != nil {
				return err
			}
		case kind == recordBlock:
			b, err := r.Decode(body)
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
