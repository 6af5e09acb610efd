package txpool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// The kinds of records. A record begins with its kind, one byte, and continues with
// the fields in the comment, as coder writes them.
const (
	// added: flags, time of admission, transaction
	recordAdded = 'A'
	// left, and no departure: hash
	recordLeft = 'L'
	// departed: Departure
	recordDeparted = 'D'
	// included: inclusion
	recordIncluded = 'I'
	// nonces freed: sender, first nonce that a revert has freed
	recordFreed = 'F'
	// prices: base fee, floor and average, in wei per gas
	recordPrices = 'P'
	// lease opened: number, time of expiry, hashes of the transactions
	recordOpened = 'O'
	// returned from a lease: number, hash of the transaction
	recordReturned = 'B'
	// commit of a lease begun: number, inclusions of its transactions
	recordCommitting = 'M'
	// commit complete, lease closed: number
	recordCommitted = 'C'
	// lease closed without a commit: number
	recordReleased = 'R'
)

// flags are the properties of an admission.
type flags struct{ private, exempt bool }

// inclusion is a transaction in a block.
type inclusion struct {
	hash   common.Hash
	sender common.Address
	spending
}

// errRecord is the error of a record that cannot be decoded.
var errRecord = errors.New("txpool: not a record of the pool's journal")

// encode returns a record with pointers to its fields.
func encode(kind byte, fields ...any) []byte {
	const usual = 160 // bytes, as for a transfer
	c := coder{raw: append(make([]byte, 0, usual), kind)}
	c.code(fields...)
	return c.raw
}

// decode reads the fields of a record. They must be all that the record has.
func decode(record []byte, fields ...any) error {
	c := coder{raw: record[1:], reading: true}
	if c.code(fields...); c.err == nil && len(c.raw) > 0 {
		c.fail("%d bytes too many", len(c.raw))
	}
	return c.err
}

// coder writes the fields of a record or reads them. One description of each field
// serves both, so that they cannot differ. Numbers are big-endian.
type coder struct {
	raw     []byte // written so far, or still to be read
	reading bool
	err     error
}

func (c *coder) fail(format string, args ...any) {
	c.err = fmt.Errorf("%w: %w", errRecord, fmt.Errorf(format, args...))
}

// bytes writes or reads bytes of a fixed length.
func (c *coder) bytes(b []byte) {
	switch {
	case !c.reading:
		c.raw = append(c.raw, b...)
	case c.err == nil && len(c.raw) < len(b):
		c.fail("%d bytes too few", len(b)-len(c.raw))
	case c.err == nil:
		c.raw = c.raw[copy(b, c.raw):]
	}
}

// rest takes the bytes that have not been read.
func (c *coder) rest() []byte {
	rest := c.raw
	c.raw = nil
	return rest
}

// set sets a field that was read. A field that is written must not change, because
// others may read it.
func set[T any](c *coder, field *T, value T) {
	if c.reading {
		*field = value
	}
}

// code writes or reads fields, given pointers to them.
func (c *coder) code(fields ...any) {
	for _, field := range fields {
		switch v := field.(type) {
		case *byte:
			b := [1]byte{*v}
			c.bytes(b[:])
			set(c, v, b[0])
		case *uint32:
			b := binary.BigEndian.AppendUint32(nil, *v)
			c.bytes(b)
			set(c, v, binary.BigEndian.Uint32(b))
		case *uint64:
			b := binary.BigEndian.AppendUint64(nil, *v)
			c.bytes(b)
			set(c, v, binary.BigEndian.Uint64(b))
		case *int64: // a time in Unix nanoseconds
			n := uint64(*v)
			c.code(&n)
			set(c, v, int64(n))
		case *common.Hash:
			c.bytes(v[:])
		case *common.Address:
			c.bytes(v[:])
		case *uint256.Int:
			b := v.Bytes32()
			c.bytes(b[:])
			set(c, v, *new(uint256.Int).SetBytes32(b[:]))
		case *flags:
			c.flags(&v.private, &v.exempt)
		case *prices:
			c.code(&v.base, &v.floor, &v.average)
		case *inclusion:
			c.code(&v.hash, &v.sender, &v.nonce, &v.cost, &v.authorities)
		case *[]common.Hash:
			list(c, v, func(one *common.Hash) { c.bytes(one[:]) })
		case *[]authority:
			list(c, v, func(one *authority) { c.code(&one.address, &one.nonce) })
		case *[]inclusion:
			list(c, v, c.framed)
		case *Departure:
			c.departure(v)
		case *types.Transaction:
			c.transaction(v)
		}
	}
}

// list writes or reads elements up to the end of the record.
func list[T any](c *coder, all *[]T, code func(*T)) {
	if !c.reading {
		for i := range *all {
			code(&(*all)[i])
		}
		return
	}
	for len(c.raw) > 0 && c.err == nil {
		var one T
		code(&one)
		*all = append(*all, one)
	}
}

// framed writes or reads an inclusion behind its length, because more can follow.
func (c *coder) framed(i *inclusion) {
	inner := coder{reading: c.reading}
	if !c.reading {
		inner.code(i)
	}
	size := uint32(len(inner.raw))
	if c.code(&size); !c.reading {
		c.bytes(inner.raw)
		return
	}
	if c.err == nil && uint64(size) > uint64(len(c.raw)) {
		c.fail("a commit that ends early")
	}
	if c.err == nil {
		inner.raw, c.raw = c.raw[:size], c.raw[size:]
		inner.code(i)
		c.err = inner.err
	}
}

// transaction writes or reads the binary encoding of a transaction (EIP-2718).
func (c *coder) transaction(tx *types.Transaction) {
	if !c.reading {
		raw, _ := tx.MarshalBinary() // an admitted transaction can be encoded
		c.bytes(raw)
	} else if err := tx.UnmarshalBinary(c.rest()); err != nil && c.err == nil {
		c.fail("%w", err)
	}
}

// flags writes or reads up to eight bits.
func (c *coder) flags(all ...*bool) {
	var bits byte
	for i, flag := range all {
		if *flag {
			bits |= 1 << i
		}
	}
	c.code(&bits)
	for i, flag := range all {
		set(c, flag, bits>>i&1 == 1)
	}
	if bits>>len(all) != 0 && c.err == nil {
		c.fail("flags %#x", bits)
	}
}

// departure writes or reads the hash, the time, and either 'R' and the hash of the
// replacement, or 'D', the length of the error's label (1 byte), the label and the
// error's text.
func (c *coder) departure(d *Departure) {
	at, kind := d.At.UnixNano(), byte('D')
	if d.Kind == Replaced {
		kind = 'R'
	}
	c.code(&d.Hash, &at, &kind)
	set(c, &d.At, time.Unix(0, at))
	switch {
	case kind == 'R':
		c.code(&d.By)
		set(c, &d.Kind, Replaced)
	case kind != 'D' && c.err == nil:
		c.fail("a departure of kind %#x", kind)
	case !c.reading:
		name := labelOf(d.Reason).label
		c.bytes(append(append([]byte{byte(len(name))}, name...), d.Reason.Error()...))
	default:
		var size byte
		c.code(&size)
		name := make([]byte, size)
		c.bytes(name)
		text := c.rest()
		d.Kind, d.Reason = Dropped, recalled(string(name), string(text[:min(len(text), maxReason)]))
	}
}
