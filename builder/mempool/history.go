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
	// recordReturned has the number of a block that was undone, in 8 bytes. The pool has
	// its transactions.
	recordReturned = 'R'
)

// history holds the records and blocks that a log has for a pool. It is a fold of the log:
// the same records and blocks always lead to the same history.
type history struct {
	records [][]byte // of txpool
	// undone are the blocks whose transactions may be in no record of the pool, newest
	// first. The number of a block identifies it: there is no other one of this number
	// before the pool has recorded that it has the transactions.
	undone []undone
}

type undone struct {
	number uint64
	block  txpool.Block
}

// read takes a record.
func (h *history) read(record []byte) error {
	switch {
	case len(record) > 0 && record[0] == recordPool:
		h.records = append(h.records, record[1:])
	case len(record) == 9 && record[0] == recordReturned:
		h.forget(binary.BigEndian.Uint64(record[1:]))
	default:
		return fmt.Errorf("%w: %.8x", ErrRecord, record)
	}
	return nil
}

// undo takes a block that was undone.
func (h *history) undo(number uint64, block txpool.Block) {
	h.undone = append(h.undone, undone{number, block})
}

// forget forgets an undone block, because the pool has its transactions, or because it is
// applied again.
func (h *history) forget(number uint64) {
	h.undone = slices.DeleteFunc(h.undone, func(u undone) bool { return u.number == number })
}

// replay passes on the records of the pool.
func (h *history) replay(step func([]byte) error) error {
	for _, record := range h.records {
		if err := step(record); err != nil {
			return err
		}
	}
	return nil
}

// returned returns the record that the pool has the transactions of a block.
func returned(number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{recordReturned}, number)
}

// framed returns records of txpool as records of the log.
func framed(records [][]byte) [][]byte {
	all := make([][]byte, len(records))
	for i, record := range records {
		all[i] = append([]byte{recordPool}, record...)
	}
	return all
}
