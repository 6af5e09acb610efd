package mempool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/jamq/jamq/txpool"
)

// ErrRecord is wrapped by the error of ReplayChange if a record was not written by this package.
var ErrRecord = errors.New("mempool: malformed record")

// The first byte of a record is its kind.
const (
	// recordPool is a record of txpool.
	recordPool = 'P'
	// recordReturned is written when a block was undone and the pool has its transactions again. It
	// contains only the number of that undone block, counted from the start of the log, in 8 bytes;
	// the transactions themselves are in the records of the pool. A checkpoint contains the last
	// such number.
	recordReturned = 'R'
)

// history is the list of undone blocks whose transactions the pool must still take back. It is
// computed from the log: the same records and blocks always lead to the same history.
type history struct {
	// undone are the blocks whose transactions may be in no record of the pool, newest first. After
	// a restart the pool takes these transactions back.
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

// read processes a record of the log that is not a record of txpool: the pool has the transactions
// of an undone block again.
func (h *history) read(record []byte) error {
	if len(record) != 9 || record[0] != recordReturned {
		return fmt.Errorf("%w: %.8x", ErrRecord, record)
	}
	count := binary.BigEndian.Uint64(record[1:])
	h.count = max(h.count, count)
	h.undone = slices.DeleteFunc(h.undone, func(u undone) bool { return u.count == count })
	return nil
}

// undo adds a block that was undone. Its transactions must return to the pool.
func (h *history) undo(number uint64, block txpool.Block) {
	h.count++
	h.undone = append(h.undone, undone{h.count, number, block})
}

// returned returns the record by which the log knows that the pool has the transactions of an
// undone block again.
func returned(count uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{recordReturned}, count)
}

// framed returns records of txpool as records of the log.
func framed(records [][]byte) [][]byte {
	all := make([][]byte, len(records))
	for i, record := range records {
		all[i] = append([]byte{recordPool}, record...)
	}
	return all
}
