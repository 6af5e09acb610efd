package mempool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/jamq/jamq/txpool"
)

// ErrRecord is wrapped by the error of ReplayChange if the record is malformed
// or was not written by this package, or if it comes after Recovered.
var ErrRecord = errors.New("mempool: malformed record")

// The first byte of each record is one of these kinds.
const (
	// recordPool begins a record that package txpool has made.
	recordPool = 'P'
	// recordReturned begins a record that is written after a block was undone, when the pool
	// has all transactions of the block again. Without this record, a restart takes them from
	// the block once more. The number of the undone block follows in 8 bytes, counted from the
	// start of the log.
	recordReturned = 'R'
)

// history is the list of undone blocks whose transactions the pool must still take
// back. It is computed from the log, so that the same records and blocks always lead to
// the same history.
type history struct {
	// undone has the undone blocks, in the order of undoing, for which the log does not
	// confirm that the pool has their transactions again. After a restart the pool takes these
	// transactions from the blocks.
	undone []undone
	// count is how many blocks were undone so far, which is also the number of the last
	// one. When the log is read again, each block gets the same number.
	count uint64
}

type undone struct {
	count, number uint64
	block         txpool.Block
}

// read processes a record of kind recordReturned.
func (h *history) read(record []byte) error {
	if len(record) != 9 || record[0] != recordReturned {
		return fmt.Errorf("%w: %.8x", ErrRecord, record)
	}
	count := binary.BigEndian.Uint64(record[1:])
	h.count = max(h.count, count)
	// The pool has the transactions of this block again.
	h.undone = slices.DeleteFunc(h.undone, func(u undone) bool { return u.count == count })
	return nil
}

// undo adds a block whose transactions must return to the pool.
func (h *history) undo(number uint64, block txpool.Block) {
	h.count++
	h.undone = append(h.undone, undone{h.count, number, block})
}

// returned returns the record that an undone block's transactions are back.
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
