package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// coder goes through a value in the order of its encoding, and writes or reads each field: one description of a type serves both. After
// the first error it does nothing more. While it writes it never changes the value.
type coder struct {
	codec *Codec
	reads bool
	out   []byte // written so far
	rest  []byte // still to be read
	err   error
}

func (c *coder) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// take returns the next n bytes of the input, which the caller must not keep, or nil after an error.
func (c *coder) take(n uint64) []byte {
	if uint64(len(c.rest)) < n {
		c.fail(fmt.Errorf("%w: %d bytes left, want %d", ErrTruncated, len(c.rest), n))
	}
	if c.err != nil {
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

// bytes is a field of fixed size.
func (c *coder) bytes(x []byte) {
	switch {
	case c.err != nil:
	case c.reads:
		copy(x, c.take(uint64(len(x))))
	default:
		c.out = append(c.out, x...)
	}
}

func hash[H ~[32]byte](c *coder, x *H) {
	b := [32]byte(*x)
	c.bytes(b[:])
	if c.reads {
		*x = H(b)
	}
}

// fixed is an unsigned integer of so many bytes, the least significant first (GP C.12).
func fixed[N ~uint8 | ~uint16 | ~uint32 | ~uint64](c *coder, size int, x *N) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(*x))
	c.bytes(b[:size])
	if c.reads {
		*x = N(binary.LittleEndian.Uint64(b[:]))
	}
}

func u8[N ~uint8](c *coder, x *N)   { fixed(c, 1, x) }
func u16[N ~uint16](c *coder, x *N) { fixed(c, 2, x) }
func u32[N ~uint32](c *coder, x *N) { fixed(c, 4, x) }
func u64[N ~uint64](c *coder, x *N) { fixed(c, 8, x) }

// flag is a byte that is 0 or 1.
func (c *coder) flag(x *bool, what string) {
	var b uint8
	if *x {
		b = 1
	}
	u8(c, &b)
	if b > 1 {
		c.fail(fmt.Errorf("%w: %s is %d, want 0 or 1", ErrNonCanonical, what, b))
	}
	if c.reads {
		*x = b == 1
	}
}

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

// DecodeNatural returns the natural that raw begins with and what follows it. Errors wrap ErrTruncated, or ErrNonCanonical where
// fewer bytes would do.
func DecodeNatural(raw []byte) (x uint64, rest []byte, err error) {
	c := &coder{reads: true, rest: raw}
	x = c.readNatural()
	return x, c.rest, c.err
}

func (c *coder) readNatural() uint64 {
	first := c.take(1)
	if c.err != nil {
		return 0
	}
	n := bits.LeadingZeros8(^first[0])
	tail := c.take(uint64(n))
	if c.err != nil {
		return 0
	}
	var x uint64
	for i, b := range tail {
		x |= uint64(b) << (8 * i)
	}
	if n < 8 {
		x |= uint64(first[0]&(1<<(7-n)-1)) << (8 * n)
	}
	if n > 0 && x>>(7*n) == 0 {
		c.fail(fmt.Errorf("%w: natural %d in %d bytes", ErrNonCanonical, x, n+1))
		return 0
	}
	return x
}

// natural is a number in as few bytes as it needs.
func natural[N ~uint16 | ~uint32 | ~uint64](c *coder, x *N, what string) {
	if c.err != nil {
		return
	}
	if !c.reads {
		c.out = AppendNatural(c.out, uint64(*x))
		return
	}
	v := c.readNatural()
	if greatest := uint64(^N(0)); v > greatest {
		c.fail(fmt.Errorf("%w: %s is %d, want at most %d", ErrTooLarge, what, v, greatest))
	}
	if c.err == nil {
		*x = N(v)
	}
}

// blob is a byte string behind its length. An empty one reads as nil.
func (c *coder) blob(x *[]byte) {
	n := uint64(len(*x))
	natural(c, &n, "length")
	if !c.reads {
		c.bytes(*x)
		return
	}
	*x = nil
	if b := c.take(n); len(b) > 0 {
		*x = append([]byte(nil), b...)
	}
}

// sequence is a number of elements behind their count. least is the size of the shortest element, in bytes: a count that the input
// cannot hold is refused before anything is made of it. An empty one reads as nil.
func sequence[E any](c *coder, x *[]E, least int, code func(*coder, *E)) {
	n := uint64(len(*x))
	natural(c, &n, "count")
	if c.reads {
		*x = nil
		if c.err == nil && n > uint64(len(c.rest)/least) {
			c.fail(fmt.Errorf("%w: %d elements in %d bytes", ErrTruncated, n, len(c.rest)))
		}
	}
	elements(c, x, n, code)
}

// array is a number of elements that the chain's constants fix.
func array[E any](c *coder, x *[]E, n int, what string, code func(*coder, *E)) {
	if c.reads {
		*x = nil
	} else if len(*x) != n {
		c.fail(fmt.Errorf("%w: %d %s, want %d", ErrWrongLength, len(*x), what, n))
	}
	elements(c, x, uint64(n), code)
}

// elements goes through n elements. What is read grows with the input: an array of the full chain costs nothing where the input is short.
func elements[E any](c *coder, x *[]E, n uint64, code func(*coder, *E)) {
	for i := uint64(0); i < n && c.err == nil && i < math.MaxInt32; i++ {
		if !c.reads {
			code(c, &(*x)[i])
			continue
		}
		var e E
		if code(c, &e); c.err == nil {
			*x = append(*x, e)
		}
	}
	if c.reads && c.err != nil {
		*x = nil
	}
}

// optional is a flag and, if it is set, a value.
func optional[E any](c *coder, x **E, what string, code func(*coder, *E)) {
	there := *x != nil
	c.flag(&there, what)
	if c.reads {
		*x = nil
		if there && c.err == nil {
			*x = new(E)
		}
	}
	if there && c.err == nil {
		code(c, *x)
	}
}

// ascending checks that keys ascend and are distinct, as an encoded set or dictionary must be.
func ascending[E any](c *coder, xs []E, what string, compare func(a, b *E) int) {
	for i := 1; i < len(xs) && c.err == nil; i++ {
		if compare(&xs[i-1], &xs[i]) >= 0 {
			c.fail(fmt.Errorf("%w: %s %d does not ascend", ErrNonCanonical, what, i))
		}
	}
}
