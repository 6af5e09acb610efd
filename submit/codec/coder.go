package codec

import (
	"encoding/binary"
	"fmt"
	stdhash "hash"
	"math"
	"math/bits"
	"unsafe"
)

// coder encodes or decodes a value. Each type lists the fields of its encoding
// once, in order, and the same list serves both directions: for each field, the
// coder either writes or reads. After the first error, the coder does nothing more.
// While it writes, it does not change the value.
type coder struct {
	codec *Codec
	reads bool
	out   []byte // written so far
	rest  []byte // input not read yet
	err   error
	// digest, if it is set, receives the encoding in pieces instead of out, so that
	// a value can be hashed without memory for its whole encoding.
	digest stdhash.Hash
	// reserved is the number of bytes at the end of rest that belong to later
	// elements. Each later element needs at least its shortest encoding.
	reserved uint64
	// excess is the memory of the decoded elements beyond twice the size of their
	// encodings, in bytes; at most maxExcess. blobs is the number of bytes in the
	// byte strings read so far.
	excess, blobs uint64
}

// maxExcess limits the memory of decoded elements that are much larger than their
// encodings, such as empty preimages. It allows about 190,000 of them. The limit
// must not be much lower, because a service decides how many preimages it requests,
// and a block with all of them is valid.
const maxExcess = 4 << 20

// piece is the number of bytes that a digest receives at once.
const piece = 4 << 10

// write appends x to the output, and passes full pieces to the digest.
func (c *coder) write(x []byte) {
	for c.digest != nil && len(c.out)+len(x) > piece {
		// The digest gets a copy of x. If x itself were passed to an interface, the compiler
		// would allocate the variables of all callers on the heap.
		n := piece - len(c.out)
		c.out = append(c.out, x[:n]...)
		c.flush()
		x = x[n:]
	}
	c.out = append(c.out, x...)
}

// flush passes the collected output to the digest and clears it.
func (c *coder) flush() {
	c.digest.Write(c.out)
	c.out = c.out[:0]
}

func (c *coder) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// left returns how many bytes of the input the current element may use.
func (c *coder) left() uint64 { return uint64(len(c.rest)) - c.reserved }

// take removes and returns the next n bytes of the input.
func (c *coder) take(n uint64) []byte {
	if left := c.left(); left < n {
		c.fail(fmt.Errorf("%w: %d bytes left, want %d", ErrTruncated, left, n))
	}
	if c.err != nil {
		return nil
	}
	// The slice shares memory with the input, so callers must not keep it.
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

// bytes encodes or decodes a field of fixed size.
func (c *coder) bytes(x []byte) {
	switch {
	case c.err != nil:
	case c.reads:
		copy(x, c.take(uint64(len(x))))
	default:
		c.write(x)
	}
}

func hash[H ~[32]byte](c *coder, x *H) {
	b := [32]byte(*x)
	c.bytes(b[:])
	if c.reads {
		*x = H(b)
	}
}

// fixed encodes or decodes an unsigned integer of size bytes (GP C.12).
func fixed[N ~uint8 | ~uint16 | ~uint32 | ~uint64](c *coder, size int, x *N) {
	var b [8]byte
	// The least significant byte comes first.
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

// flag encodes or decodes a boolean as a byte that is 0 or 1.
func (c *coder) flag(x *bool, name string) {
	var b uint8
	if *x {
		b = 1
	}
	u8(c, &b)
	if b > 1 {
		c.fail(fmt.Errorf("%w: %s is %d, want 0 or 1", ErrNonCanonical, name, b))
	}
	if c.reads {
		*x = b == 1
	}
}

// AppendNatural appends the Gray Paper's variable-length encoding of x to b (GP C.5) and returns
// the extended slice. The encoding takes 1 to 9 bytes: the number of leading one bits in the first
// byte is the number of bytes that follow it.
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

// DecodeNatural decodes a number that AppendNatural has encoded at the beginning of
// raw. It returns the number and the remaining bytes. Errors wrap ErrTruncated, or
// ErrNonCanonical if the number would fit into fewer bytes.
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

// natural encodes or decodes a number in the variable-length encoding of
// AppendNatural.
func natural[N ~uint16 | ~uint32 | ~uint64](c *coder, x *N, name string) {
	if c.err != nil {
		return
	}
	if !c.reads {
		var b [9]byte
		c.write(AppendNatural(b[:0], uint64(*x)))
		return
	}
	v := c.readNatural()
	if greatest := uint64(^N(0)); v > greatest {
		c.fail(fmt.Errorf("%w: %s is %d, want at most %d", ErrTooLarge, name, v, greatest))
	}
	if c.err == nil {
		*x = N(v)
	}
}

// blob encodes or decodes a byte string with its length in front.
func (c *coder) blob(x *[]byte) {
	n := uint64(len(*x))
	natural(c, &n, "length")
	if !c.reads {
		c.bytes(*x)
		return
	}
	*x = nil
	// An empty string is decoded as nil.
	if b := c.take(n); len(b) > 0 {
		*x = append([]byte(nil), b...)
		c.blobs += n
	}
}

// sequence encodes or decodes a list of elements with their count in front.
func sequence[E any](c *coder, x *[]E, least int, code func(*coder, *E)) {
	n := uint64(len(*x))
	natural(c, &n, "count")
	if c.reads {
		*x = nil
		// An element needs at least that many bytes. A count for which the input is too short
		// is refused before memory is allocated.
		if left := c.left(); c.err == nil && n > left/uint64(least) {
			c.fail(fmt.Errorf("%w: %d elements in %d bytes", ErrTruncated, n, left))
		}
		if c.err == nil && n > 0 {
			*x = make([]E, 0, roomFor[E](c, n, least))
			// From here on, decoded elements may take at most twice the size of their
			// encodings, plus maxExcess in total.
			code = charged(least, code)
		}
	}
	elements(c, x, n, least, code)
}

// excessOf returns by how much an element's memory exceeds twice its shortest
// encoding.
func excessOf[E any](least int) uint64 {
	var e E
	size, twice := uint64(unsafe.Sizeof(e)), uint64(2*least)
	return size - min(size, twice)
}

// roomFor returns for how many of n elements a decoder should allocate memory.
func roomFor[E any](c *coder, n uint64, least int) uint64 {
	excess := excessOf[E](least)
	if excess == 0 {
		return n
	}
	// The count may be forged, so allocate memory only for as many elements as the input can
	// contain. Elements that take more memory than their encoding allows are limited by
	// maxExcess. Beyond that, each element must have byte strings that take less.
	shortest := (maxExcess - c.excess) / excess
	rest := c.left() - min(c.left(), shortest*uint64(least))
	return min(n, shortest+rest/(uint64(least)+excess)+1)
}

// charged wraps code, which decodes an element, so that c.excess counts its memory.
func charged[E any](least int, code func(*coder, *E)) func(*coder, *E) {
	excess := excessOf[E](least)
	if excess == 0 {
		return code
	}
	return func(c *coder, x *E) {
		before := c.blobs
		code(c, x)
		// A decoded byte string takes only half of the memory that its encoding allows. Byte
		// strings in the element therefore make up for other parts that take more.
		if c.excess += excess - min(excess, c.blobs-before); c.excess > maxExcess {
			c.fail(fmt.Errorf("%w: elements of %d bytes or more need %d bytes of memory beyond twice their encodings, want at most %d", ErrTooLarge, least, c.excess, maxExcess))
		}
	}
}

// array encodes or decodes n elements without a count in front.
func array[E any](c *coder, x *[]E, n int, name string, code func(*coder, *E)) {
	if c.reads {
		*x = nil
	} else if len(*x) != n {
		// n follows from the chain's constants.
		c.fail(fmt.Errorf("%w: %d %s, want %d", ErrWrongLength, len(*x), name, n))
	}
	elements(c, x, uint64(n), 0, code)
}

// perSet encodes or decodes a list whose length depends on a validator set.
func perSet[E any](c *coder, x *[]E, n, least int, name string, code func(*coder, *E)) {
	// From 0.8.0 on, sets differ in size, so the count comes first. Before, all
	// sets have the size n of the chain's constants.
	if c.codec.version >= V080 {
		sequence(c, x, least, code)
		return
	}
	array(c, x, n, name, code)
}

// elements encodes or decodes n elements.
func elements[E any](c *coder, x *[]E, n uint64, least int, code func(*coder, *E)) {
	outer := c.reserved
	for i := uint64(0); i < n && c.err == nil && i < math.MaxInt32; i++ {
		if !c.reads {
			code(c, &(*x)[i])
			continue
		}
		// The elements that follow need some bytes at least. Keep these bytes from the present
		// element.
		c.reserved = outer + (n-1-i)*uint64(least)
		var empty E
		*x = append(*x, empty)
		code(c, &(*x)[i])
	}
	c.reserved = outer
	if c.reads && c.err != nil {
		*x = nil
	}
}

// optional encodes or decodes a flag and, if the flag is 1, the value.
func optional[E any](c *coder, x **E, name string, code func(*coder, *E)) {
	there := *x != nil
	c.flag(&there, name)
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

// ascending checks that the elements are distinct and in ascending order.
func ascending[E any](c *coder, xs []E, name string, compare func(a, b *E) int) {
	for i := 1; i < len(xs) && c.err == nil; i++ {
		if compare(&xs[i-1], &xs[i]) >= 0 {
			c.fail(fmt.Errorf("%w: %s %d does not ascend", ErrNonCanonical, name, i))
		}
	}
}
