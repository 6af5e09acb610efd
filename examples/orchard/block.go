package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// block is a rollup block of shielded transactions.
type block struct {
	Height       uint64
	Previous     bytes32
	Time         int64
	Notes        uint64  // in the pool after the block
	Root         bytes32 // of the notes, after the block
	Transactions []*transaction
}

// header returns the bytes that the block's hash covers.
func (b *block) header() []byte {
	h := binary.LittleEndian.AppendUint64(nil, b.Height)
	h = append(h, b.Previous[:]...)
	merkle := b.merkleRoot()
	h = append(h, merkle[:]...)
	h = append(h, b.Root[:]...)
	h = binary.LittleEndian.AppendUint64(h, b.Notes)
	return binary.LittleEndian.AppendUint64(h, uint64(b.Time))
}

func (b *block) hash() bytes32 { return sha256.Sum256(b.header()) }

// merkleRoot returns the root of the transactions' ids. As in Bitcoin, pairs
// are hashed, and a last id without a partner is hashed with itself.
func (b *block) merkleRoot() bytes32 {
	var level []bytes32
	for _, t := range b.Transactions {
		level = append(level, t.id())
	}
	if len(level) == 0 {
		return bytes32{}
	}
	for len(level) > 1 {
		var next []bytes32
		for i := 0; i < len(level); i += 2 {
			right := level[min(i+1, len(level)-1)]
			next = append(next, sha256.Sum256(append(level[i][:], right[:]...)))
		}
		level = next
	}
	return level[0]
}

// encode returns the block's bytes. They are the payload of a package, the body
// of the builder's block, and the result of getblock with verbosity 0.
func (b *block) encode() []byte {
	out := b.header()
	out = binary.LittleEndian.AppendUint32(out, uint32(len(b.Transactions)))
	for _, t := range b.Transactions {
		raw := t.encode()
		out = binary.LittleEndian.AppendUint32(out, uint32(len(raw)))
		out = append(out, raw...)
	}
	return out
}

// headerSize is the length of a header in bytes.
const headerSize = 8 + 32 + 32 + 32 + 8 + 8

// decodeBlock decodes the output of encode. The error wraps errMalformed.
func decodeBlock(raw []byte) (*block, error) {
	if len(raw) < headerSize {
		return nil, fmt.Errorf("%w: a block of %d bytes", errMalformed, len(raw))
	}
	b := &block{
		Height: binary.LittleEndian.Uint64(raw), Notes: binary.LittleEndian.Uint64(raw[headerSize-16:]),
		Time: int64(binary.LittleEndian.Uint64(raw[headerSize-8:])),
	}
	copy(b.Previous[:], raw[8:])
	copy(b.Root[:], raw[8+64:])
	c := cutter{rest: raw[headerSize:]}
	for n := c.count(); n > 0 && !c.short; n-- {
		size := c.count()
		if c.short = c.short || int64(size) > int64(len(c.rest)); c.short {
			break
		}
		t, err := decodeTransaction(c.rest[:size])
		if err != nil {
			return nil, err
		}
		c.rest = c.rest[size:]
		b.Transactions = append(b.Transactions, t)
	}
	if merkle := b.merkleRoot(); c.short || len(c.rest) > 0 || merkle != bytes32(raw[8+32:8+64]) {
		return nil, fmt.Errorf("%w: a block of %d bytes does not hold what its header says", errMalformed, len(raw))
	}
	return b, nil
}

// Encode implements builder.Codec, because JSON does not know how to read a block of
// zcashd's fields.
func (*rollup) Encode(b *block) ([]byte, error) { return b.encode(), nil }

// Decode implements builder.Codec.
func (*rollup) Decode(raw []byte) (*block, error) { return decodeBlock(raw) }
