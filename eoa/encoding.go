package eoa

import (
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/eoa/internal/account"
	"github.com/jamq/jamq/internal/wire"
)

// recordVersion is the first byte of an encoded record.
const recordVersion = 4

// EncodeRecord encodes a record for a store: a version byte, followed by the fields
// in a fixed order.
func EncodeRecord(r *Record) []byte {
	c := coder{out: append(make([]byte, 0, 512+len(r.Data)), recordVersion), version: recordVersion}
	c.record(r)
	return c.out
}

// DecodeRecord decodes the output of EncodeRecord, including that of earlier
// versions of this package. The record shares no memory with raw. The error wraps
// ErrMalformed.
func DecodeRecord(raw []byte) (Record, error) {
	if len(raw) == 0 || raw[0] == 0 || raw[0] > recordVersion {
		return Record{}, fmt.Errorf("%w: record begins with %.4x, want version 1 to %d", ErrMalformed, raw, recordVersion)
	}
	var r Record
	c := coder{in: wire.NewReader(raw[1:]), version: raw[0]}
	c.record(&r)
	if err := c.in.Done(); err != nil {
		return Record{}, fmt.Errorf("%w: record: %w", ErrMalformed, err)
	}
	if err := account.CheckRecord(&r); err != nil {
		return Record{}, err
	}
	return r, nil
}

// coder encodes or decodes a record. If in is set, it reads each field from in,
// and otherwise it appends the field to out. One list of fields therefore serves
// both directions.
type coder struct {
	out     []byte
	in      *wire.Reader
	version byte // of the encoding
}

func (c *coder) record(r *Record) {
	c.request(&r.Request)
	c.uint(&r.ID)
	number(c, &r.State)
	c.time(&r.QueuedAt)
	c.uint(&r.Nonce)
	list(c, &r.Attempts, (*coder).attempt)
	c.uint(&r.Height)
	c.hash(&r.Block)
	c.hash(&r.Tx)
	c.bool(&r.Success)
	c.uint(&r.GasUsed)
	number(c, &r.Bumps)
	c.time(&r.BumpedAt)
	c.bool(&r.Capped)
	c.bool(&r.Cancelling)
	c.bool(&r.Urgent)
	c.uint(&r.GoneAt)
	if c.version >= 2 {
		c.uint(&r.Unused)
		c.uint(&r.Used)
	}
	c.time(&r.NotBefore)
	c.string(&r.Reason)
	if c.version >= 3 {
		c.time(&r.EndedAt)
	}
	if c.version >= 4 {
		optional(c, &r.GasPrice, (*coder).amount)
		optional(c, &r.Contract, (*coder).address)
		list(c, &r.Logs, (*coder).log)
	}
}

func (c *coder) request(q *Request) {
	c.string(&q.Key)
	number(c, &q.Kind)
	optional(c, &q.To, (*coder).address)
	optional(c, &q.Value, (*coder).amount)
	c.bytes(&q.Data)
	list(c, &q.AccessList, (*coder).tuple)
	list(c, &q.Authorizations, (*coder).authorization)
	list(c, &q.Blobs, (*coder).bytes)
	c.uint(&q.Gas)
	optional(c, &q.MaxFee, (*coder).amount)
	optional(c, &q.MaxBlobFee, (*coder).amount)
	number(c, &q.Priority)
	c.string(&q.Group)
	c.time(&q.Deadline)
	c.bytes(&q.Metadata)
	c.bool(&q.Noop)
}

func (c *coder) attempt(a *Attempt) {
	c.hash(&a.Hash)
	c.bytes(&a.Raw)
	list(c, &a.Blobs, (*coder).bytes)
	c.bytes(&a.Proofs)
	c.uint(&a.Nonce)
	c.bool(&a.Void)
	c.uint(&a.Gas)
	c.amount(&a.Fees.Cap)
	c.amount(&a.Fees.Tip)
	c.amount(&a.Fees.Blob)
	c.amount(&a.Cost)
	c.bool(&a.Noop)
	c.time(&a.SentAt)
	number(c, &a.Result)
	c.string(&a.Why)
	if c.version >= 3 {
		number(c, &a.Refusals)
	}
}

func (c *coder) log(l *Log) {
	c.address(&l.Address)
	list(c, &l.Topics, (*coder).hash)
	c.bytes(&l.Data)
}

func (c *coder) tuple(t *types.AccessTuple) {
	c.address(&t.Address)
	list(c, &t.StorageKeys, (*coder).hash)
}

func (c *coder) authorization(a *types.SetCodeAuthorization) {
	c.amount(&a.ChainID)
	c.address(&a.Address)
	c.uint(&a.Nonce)
	number(c, &a.V)
	c.amount(&a.R)
	c.amount(&a.S)
}

// field reads or writes a field, with the function for the coder's direction.
func field[T any](c *coder, v *T, read func(*wire.Reader) T, write func([]byte, T) []byte) {
	if c.in != nil {
		*v = read(c.in)
	} else {
		c.out = write(c.out, *v)
	}
}

func (c *coder) uint(v *uint64) {
	if c.in != nil {
		*v = c.in.Uint()
	} else {
		c.out = wire.AppendUint(c.out, *v)
	}
}

func (c *coder) bool(v *bool) { field(c, v, (*wire.Reader).Bool, wire.AppendBool) }

func (c *coder) bytes(v *[]byte) { field(c, v, readBytes, wire.AppendBytes) }

func (c *coder) string(v *string) { field(c, v, readString, appendString) }

func (c *coder) hash(v *common.Hash) {
	field(c, v, wire.ReadHash[common.Hash], wire.AppendHash[common.Hash])
}

func readBytes(r *wire.Reader) []byte { return slices.Clone(r.Bytes()) }

func readString(r *wire.Reader) string { return string(r.Bytes()) }

func appendString(out []byte, s string) []byte {
	return append(wire.AppendUint(out, uint64(len(s))), s...)
}

// number encodes any integer type as an int64, and refuses to decode overflows.
func number[T ~uint8 | ~int | ~int32](c *coder, v *T) {
	if c.in == nil {
		c.out = wire.AppendInt(c.out, int64(*v))
		return
	}
	n := c.in.Int()
	if *v = T(n); int64(*v) != n {
		c.in.Fail("%d is too large", n)
	}
}

func (c *coder) address(v *common.Address) {
	b := v[:]
	if c.bytes(&b); c.in == nil {
		return // requests can share an address, so that nothing may write to it
	}
	if len(b) != len(v) {
		c.in.Fail("address of %d bytes", len(b))
	}
	copy(v[:], b)
}

// amount encodes a number of at most 256 bits, big-endian without leading zeros.
func (c *coder) amount(v *uint256.Int) {
	if c.in == nil {
		b := v.Bytes32()
		c.out = wire.AppendBytes(c.out, b[len(b)-v.ByteLen():])
		return
	}
	b := c.in.Bytes()
	if len(b) > 32 || len(b) > 0 && b[0] == 0 {
		c.in.Fail("amount %x", b)
		return
	}
	v.SetBytes(b)
}

// time encodes a moment, in UTC.
func (c *coder) time(v *time.Time) {
	if c.in != nil {
		seconds, nanos := c.in.Int(), c.in.UintBelow(uint64(time.Second), "part of a second")
		*v = time.Unix(seconds, int64(nanos)).UTC()
	} else {
		c.out = wire.AppendUint(wire.AppendInt(c.out, v.Unix()), uint64(v.Nanosecond()))
	}
}

func optional[T any](c *coder, v **T, each func(*coder, *T)) {
	there := *v != nil
	if c.bool(&there); !there {
		return
	}
	if c.in != nil {
		*v = new(T)
	}
	each(c, *v)
}

// list encodes or decodes a slice; an empty slice is decoded as nil.
func list[S ~[]T, T any](c *coder, v *S, each func(*coder, *T)) {
	n := uint64(len(*v))
	if c.uint(&n); c.in == nil {
		for i := range *v {
			each(c, &(*v)[i])
		}
		return
	}
	for range n {
		var one T
		if each(c, &one); c.in.Err() != nil {
			return
		}
		*v = append(*v, one)
	}
}
