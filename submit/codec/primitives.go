package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

var (
	// ErrTruncated: the input ends too early.
	ErrTruncated = errors.New("codec: input truncated")
	// ErrNonCanonical: the input is not what encoding makes.
	ErrNonCanonical = errors.New("codec: not canonical")
	// ErrTooLarge: a value does not fit where it belongs.
	ErrTooLarge = errors.New("codec: too large")
)

// AppendNatural appends a natural number below 2^64 in 1 to 9 bytes (GP C.5): the number of leading one bits of the first byte says how many
// bytes follow it.
func AppendNatural(b []byte, x uint64) []byte {
	n := 0 // bytes after the first
	for n < 8 && x>>(7*(n+1)) != 0 {
		n++
	}
	if n == 8 {
		b = append(b, 0xff)
	} else {
		b = append(b, byte(256-1<<(8-n)+int(x>>(8*n))))
	}
	for i := range n {
		b = append(b, byte(x>>(8*i)))
	}
	return b
}

// reader takes an encoding apart. After the first error it gives zeros, and keeps the error.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) bytes(n uint64) []byte {
	if uint64(len(r.rest)) < n {
		r.fail(fmt.Errorf("%w: %d bytes left, want %d", ErrTruncated, len(r.rest), n))
	}
	if r.err != nil {
		return nil
	}
	out := r.rest[:n:n]
	r.rest = r.rest[n:]
	return out
}

// fixed fills a fixed-size field.
func (r *reader) fixed(into []byte) { copy(into, r.bytes(uint64(len(into)))) }

func (r *reader) uint16() uint16 {
	var b [2]byte
	r.fixed(b[:])
	return binary.LittleEndian.Uint16(b[:])
}

func (r *reader) uint32() uint32 {
	var b [4]byte
	r.fixed(b[:])
	return binary.LittleEndian.Uint32(b[:])
}

func (r *reader) uint64() uint64 {
	var b [8]byte
	r.fixed(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

func (r *reader) natural() uint64 {
	first := r.bytes(1)
	if r.err != nil {
		return 0
	}
	n := bits.LeadingZeros8(^first[0])
	tail := r.bytes(uint64(n))
	if r.err != nil {
		return 0
	}
	var x uint64
	for i, c := range tail {
		x |= uint64(c) << (8 * i)
	}
	if n < 8 {
		x |= uint64(first[0]&(1<<(7-n)-1)) << (8 * n)
	}
	if n > 0 && x>>(7*n) == 0 {
		r.fail(fmt.Errorf("%w: natural %d in %d bytes", ErrNonCanonical, x, n+1))
	}
	return x
}

// blob takes a byte string behind its length.
func (r *reader) blob() []byte {
	b := r.bytes(r.natural())
	if len(b) == 0 {
		return nil
	}
	return append([]byte(nil), b...)
}

// count takes the length of a sequence whose elements have at least size bytes each, so that a forged length allocates nothing.
func (r *reader) count(size int) int {
	n := r.natural()
	if r.err == nil && n > uint64(len(r.rest)/size) {
		r.fail(fmt.Errorf("%w: %d elements in %d bytes", ErrTruncated, n, len(r.rest)))
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

// end checks that nothing is left.
func (r *reader) end() error {
	if len(r.rest) > 0 {
		r.fail(fmt.Errorf("%w: %d bytes after the end", ErrNonCanonical, len(r.rest)))
	}
	return r.err
}

func appendBlob(b, blob []byte) []byte { return append(AppendNatural(b, uint64(len(blob))), blob...) }
