package ledger

import (
	"encoding/binary"
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/jamq/jamq/statedb"
)

// MinKeep is the minimum number of final blocks that a ledger keeps whole. It covers
// the blocks in memory and the blocks that wallets and fee oracles read.
const MinKeep = 256

// pruneStep is the maximum number of blocks that are pruned when a block becomes final.
// If a long chain gets a limit for the first time, it is therefore pruned gradually.
const pruneStep = 16

// Oldest returns the number of the oldest block after the genesis whose body is still
// there. Of older blocks, the ledger has only the header and the progress.
func (l *Ledger) Oldest() uint64 { return l.oldest.Load() }

// pruned reports whether the ledger has only the header of a block.
func (l *Ledger) pruned(number uint64) bool { return number > 0 && number < l.oldest.Load() }

// prune deletes the bodies of old blocks after a block has become final.
func (l *Ledger) prune(final uint64) error {
	from := l.oldest.Load()
	if l.keep == 0 || final+1 < from+l.keep {
		return nil
	}
	to := min(final+1-l.keep, from+pruneStep)
	var records []statedb.Record
	for number := from; number < to; number++ {
		some, err := l.old.pruning(number)
		if err != nil {
			// The block cannot be read. Report the damage to the operator, and keep what is
			// left on the disk.
			l.old.found(err)
			continue
		}
		records = append(records, some...)
	}
	records = append(records, statedb.Record{Key: key(keyOldest), Value: numbered(to)})
	// From here on, readers see only the headers, even before the deletion below.
	l.oldest.Store(to)
	return l.old.disk.Write(records)
}

// bare returns a block that has only a header.
func bare(header *types.Header) *Block {
	return &Block{Block: types.NewBlockWithHeader(header), Pruned: true}
}

// pruning returns the records that replace a block's body by its header.
func (d *database) pruning(number uint64) ([]statedb.Record, error) {
	b, err := d.read(number)
	switch {
	case err != nil:
		return nil, err
	case b == nil:
		return nil, missing(number)
	}
	records, err := d.content(b)
	if err != nil {
		return nil, err
	}
	for i := range records {
		records[i].Value = nil
	}
	header, err := rlp.EncodeToBytes(b.Header())
	return append(records, statedb.Record{Key: key(keyHeader, numbered(number)), Value: header}), err
}

// header returns a pruned block, which has only a header, or nil if there is none.
func (d *database) header(number uint64) (*Block, error) {
	raw, err := d.get(key(keyHeader, numbered(number)))
	if err != nil || raw == nil {
		return nil, err
	}
	header := new(types.Header)
	if err := rlp.DecodeBytes(raw, header); err != nil {
		return nil, fmt.Errorf("%w: header of block %d: %w", ErrDamaged, number, err)
	}
	return bare(header), nil
}

// oldest reads the number of the oldest block after the genesis that has a body.
func (d *database) oldest() (uint64, error) {
	raw, err := d.get(key(keyOldest))
	switch {
	case err != nil:
		return 0, err
	case raw == nil:
		return 1, nil
	case len(raw) != 8:
		return 0, fmt.Errorf("%w: the number of the oldest block has %d bytes, want 8", ErrDamaged, len(raw))
	}
	return binary.BigEndian.Uint64(raw), nil
}
