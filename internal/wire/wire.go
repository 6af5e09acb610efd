// Package wire writes and reads the binary form of snapshots and journal
// records: integers as varints, byte strings after their length, hashes as they
// are.
//
// A [Reader] never panics and never allocates more than its input justifies, so
// its input need not be trusted. It keeps its first error: read all values,
// then call Done.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrCorrupt is wrapped by every error of a Reader.
var ErrCorrupt = errors.New("wire: corrupt bytes")

// Hash is any 32-byte hash.
type Hash interface{ ~[32]byte }

// AppendUint appends an unsigned integer.
func AppendUint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

// AppendInt appends a signed integer.
func AppendInt(b []byte, v int64) []byte { return binary.AppendVarint(b, v) }

// AppendBool appends one byte, 0 or 1.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// AppendBytes appends a length and as many bytes.
func AppendBytes(b, v []byte) []byte { return append(AppendUint(b, uint64(len(v))), v...) }

// AppendHash appends 32 bytes.
func AppendHash[H Hash](b []byte, h H) []byte {
	a := [32]byte(h)
	return append(b, a[:]...)
}

// AppendHashes appends a count and as many hashes.
func AppendHashes[H Hash](b []byte, hs []H) []byte {
	b = AppendUint(b, uint64(len(hs)))
	for _, h := range hs {
		b = AppendHash(b, h)
	}
	return b
}

// Reader reads what the append functions wrote.
type Reader struct {
	rest []byte
	err  error
}

// NewReader returns a reader of b, which must not change while it is read.
func NewReader(b []byte) *Reader { return &Reader{rest: b} }

// Fail sets the error of the reader as if its bytes were corrupt, for a value
// that cannot be right.
func (r *Reader) Fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
		r.rest = nil
	}
}

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// Done returns the first error, or an error if bytes are left.
func (r *Reader) Done() error {
	if len(r.rest) > 0 {
		r.Fail("%d bytes too many", len(r.rest))
	}
	return r.err
}

// Uint reads an unsigned integer.
func (r *Reader) Uint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.Fail("bad integer")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// UintBelow reads an unsigned integer that must be less than limit.
func (r *Reader) UintBelow(limit uint64, what string) uint64 {
	v := r.Uint()
	if r.err == nil && v >= limit {
		r.Fail("%s is %d, want below %d", what, v, limit)
		return 0
	}
	return v
}

// Int reads a signed integer.
func (r *Reader) Int() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.Fail("bad integer")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// Bool reads a byte that must be 0 or 1.
func (r *Reader) Bool() bool {
	b := r.take(1)
	if b == nil {
		return false
	}
	if b[0] > 1 {
		r.Fail("%d is neither true nor false", b[0])
	}
	return b[0] == 1
}

// Bytes reads a length and that number of bytes. The result shares memory with
// the input. It is nil if the length is 0.
func (r *Reader) Bytes() []byte {
	n := r.Count(1)
	if n == 0 {
		return nil
	}
	return r.take(n)
}

// Count reads the number of elements that follow, of at least size bytes each;
// size is above 0. The number is never more than the rest of the input can
// hold.
func (r *Reader) Count(size int) int {
	n := r.Uint()
	if n > uint64(len(r.rest)/size) {
		r.Fail("%d elements in %d bytes", n, len(r.rest))
		return 0
	}
	return int(n)
}

func (r *Reader) take(n int) []byte {
	if len(r.rest) < n {
		r.Fail("%d bytes are missing", n-len(r.rest))
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// ReadHash reads 32 bytes.
func ReadHash[H Hash](r *Reader) H {
	var a [32]byte
	copy(a[:], r.take(32))
	return H(a)
}

// ReadHashes reads a count and that number of hashes. The result is nil if the
// count is 0.
func ReadHashes[H Hash](r *Reader) []H {
	n := r.Count(32)
	if n == 0 {
		return nil
	}
	out := make([]H, n)
	for i := range out {
		out[i] = ReadHash[H](r)
	}
	return out
}
