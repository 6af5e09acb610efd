package mempool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/jamq/jamq/txpool"
)

// ErrRecord is wrapped by the error of a record that this package did not write.
var ErrRecord = errors.New("mempool: malformed record")

// The first byte of a record is its kind.
const (
	// recordPool is a record of txpool.
	recordPool = 'P'
	// recordReturned has the count of a block that was undone, in 8 bytes. The pool has its
	// transactions. A checkpoint has the last count.
	recordReturned = 'R'
)

// history holds the undone blocks that a log has for a pool. It is a fold of the log: the same
// records and blocks always lead to the same history.
type history struct {
	// undone are the blocks whose transactions may be in no record of the pool, newest
	// first.
	undone []undone
	// count numbers the blocks that were undone. Each has the same count when the log is read
	// again, because the rollup follows the log in the same order.
	count uint64
}

type undone struct {
	count, number uint64
	block         txpool.Block
}

// read takes a record that is not one of txpool.
func (h *history) read(record []byte) error {
	if len(record) != 9 || record[0] != recordReturned {
		return fmt.Errorf("%w: %.8x", ErrRecord, record)
	}
	count := binary.BigEndian.Uint64(record[1:])
	h.count = max(h.count, count)
	h.undone = slices.DeleteFunc(h.undone, func(u undone) bool { return u.count == count })
	return nil
}

// undo takes a block that was undone.
func (h *history) undo(number uint64, block txpool.Block) {
	h.count++
	h.undone = append(h.undone, undone{h.count, number, block})
}

// returned returns the record that the pool has the transactions of a block.
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
