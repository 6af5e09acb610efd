package mempool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/jamq/jamq/txpool"
)

// ErrRecord is wrapped by the error of ReplayChange if this package has not written
// the record.
var ErrRecord = errors.New("mempool: malformed record")

// The first byte of each record is its kind.
const (
	// recordPool is a record of txpool.
	recordPool = 'P'
	// recordReturned confirms that a block was undone and that the pool has its transactions
	// again. The record contains only the number of that undone block, counted from the start
	// of the log, in 8 bytes; the transactions themselves are in the records of the pool. A
	// checkpoint contains the last such number.
	recordReturned = 'R'
)

// history is the list of undone blocks whose transactions the pool must still take
// back. It is computed from the log, so the same records and blocks always lead to
// the same history.
type history struct {
	// undone contains the blocks whose transactions may be in no record of the pool, in the
	// order in which they were undone. After a restart the pool takes these transactions back.
	undone []undone
	// count is the number of blocks that were undone so far, which also identifies the last of
	// them. A block has the same number when the log is read again, because the rollup follows the
	// log in the same order.
	count uint64
}

type undone struct {
	count, number uint64
	block         txpool.Block
}

// read processes a record of kind recordReturned: the pool has the transactions of
// an undone block again, so the block is no longer in the history.
func (h *history) read(record []byte) error {
	if len(record) != 9 || record[0] != recordReturned {
		return fmt.Errorf("%w: %.8x", ErrRecord, record)
	}
	count := binary.BigEndian.Uint64(record[1:])
	h.count = max(h.count, count)
	h.undone = slices.DeleteFunc(h.undone, func(u undone) bool { return u.count == count })
	return nil
}

// undo adds a block that was undone, whose transactions must return to the pool.
func (h *history) undo(number uint64, block txpool.Block) {
	h.count++
	h.undone = append(h.undone, undone{h.count, number, block})
}

// returned returns the record that confirms that the pool has the transactions of
// an undone block again.
func returned(count uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{recordReturned}, count)
}

// framed converts records of txpool to records of the log.
func framed(records [][]byte) [][]byte {
	all := make([][]byte, len(records))
	for i, record := range records {
		all[i] = append([]byte{recordPool}, record...)
	}
	return all
}
