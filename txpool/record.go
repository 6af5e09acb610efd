package txpool

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// These are the kinds of records from which a pool is restored after a restart. A
// record is one byte for its kind and an RLP list of the fields that the comment names.
// Times are in Unix nanoseconds.
const (
	// recordAdded means that a transaction was added. Fields: private, exempt, ran,
	// held (see past), time of admission, transaction.
	recordAdded = 'A'
	// recordRoom means that the caps begin or cease to apply to a transaction. Fields:
	// its hash, exempt, ran (see past).
	recordRoom = 'K'
	// recordLeft means that a transaction was included in a block. Field: its hash.
	recordLeft = 'L'
	// recordDeparted means that a transaction was replaced or dropped. Fields: its
	// hash, the time, the hash of the replacement or 0, the label of the error (see
	// labels), the text of the error.
	recordDeparted = 'D'
	// recordPrices means that the prices have changed. Fields: base fee, floor and
	// average, in wei per gas.
	recordPrices = 'P'
)

// errRecord is wrapped by the errors in Restored.Poisoned.
var errRecord = errors.New("txpool: not a record of the pool")

// encode returns a record of a kind with the given fields.
func encode(kind byte, fields ...any) []byte {
	const usual = 160 // bytes, as for a transfer
	record := bytes.NewBuffer(append(make([]byte, 0, usual), kind))
	if err := rlp.Encode(record, fields); err != nil {
		panic(err) // only if a type has no encoding, which is a bug
	}
	return record.Bytes()
}

// decode decodes a record into the variables to which fields points.
func decode(record []byte, fields ...any) error {
	var values []rlp.RawValue
	err := rlp.DecodeBytes(record[1:], &values)
	if err == nil && len(values) != len(fields) {
		err = fmt.Errorf("it has %d fields, want %d", len(values), len(fields))
	}
	for i := 0; err == nil && i < len(fields); i++ {
		err = rlp.DecodeBytes(values[i], fields[i])
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errRecord, err)
	}
	return nil
}

// past describes a transaction that the pool has admitted before and admits again. It
// comes from a block that was undone, from the transactions that are held aside (see
// heldAside), or, after a restart, from the records of a log.
type past struct {
	tx      *types.Transaction
	private bool
	exempt  bool
	ran     bool // could run at some time since its admission
	held    bool // is held aside
	at      int64
	order   uint64 // order of admission or, if held, of being put aside
	err     error  // why it is held aside
}

// past returns the data with which the transaction can be admitted again.
func (e *entry) past() *past {
	return &past{tx: e.tx, at: e.at, private: e.private, exempt: e.exempt, ran: e.ran}
}

// addedRecord returns the record of an admission.
func (o *past) addedRecord() []byte {
	return encode(recordAdded, o.private, o.exempt, o.ran, o.held, uint64(o.at), o.tx)
}
