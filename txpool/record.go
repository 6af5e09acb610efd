package txpool

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// The kinds of records. A record begins with its kind, one byte, and continues with
// an RLP list of the fields in the comment. Times are in Unix nanoseconds.
const (
	// added: whether it is private, exempt, could run and is held aside, time of
	// admission, transaction
	recordAdded = 'A'
	// room: hash of a transaction, whether it is exempt and could run from now on
	recordRoom = 'K'
	// left, and no departure: hash
	recordLeft = 'L'
	// departed: hash, time, hash of the replacement or 0, label of the error, its text
	recordDeparted = 'D'
	// prices: base fee, floor and average, in wei per gas
	recordPrices = 'P'
)

// errRecord is the error of a record that cannot be decoded.
var errRecord = errors.New("txpool: not a record of the pool")

// encode returns a record with its fields.
func encode(kind byte, fields ...any) []byte {
	const usual = 160 // bytes, as for a transfer
	record := bytes.NewBuffer(append(make([]byte, 0, usual), kind))
	if err := rlp.Encode(record, fields); err != nil {
		panic(err) // only if a type has no encoding
	}
	return record.Bytes()
}

// decode reads the fields of a record into the variables that fields points to. The record must
// have exactly these fields.
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

// past describes a transaction that was admitted before and comes back, from a block or from the
// records.
type past struct {
	tx      *types.Transaction
	private bool
	exempt  bool
	ran     bool // or could run at some time
	held    bool // aside
	at      int64
	order   uint64 // of admission or, if held, of being put aside
	err     error  // reason for holding aside
}

// past returns everything about an entry that is needed to admit it again.
func (e *entry) past() *past {
	return &past{tx: e.tx, at: e.at, private: e.private, exempt: e.exempt, ran: e.ran}
}

// addedRecord returns the record of an admission.
func (o *past) addedRecord() []byte {
	return encode(recordAdded, o.private, o.exempt, o.ran, o.held, uint64(o.at), o.tx)
}
