package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// block is a rollup block of shielded transactions.
type block struct {
	header
	Transactions []*transaction
}

// header is the part of a block that its hash covers.
type header struct {
	Height   uint64
	Previous bytes32
	Merkle   bytes32 // root of the transactions' ids
	Root     bytes32 // of the notes, after the block
	Notes    uint64  // in the pool after the block
	Time     int64
}

func (b *block) hash() bytes32 { return sha256.Sum256(b.header.encode()) }

func (h *header) encode() []byte {
	raw, _ := binary.Append(nil, binary.LittleEndian, h) // a header always has a form
	return raw
}

// merkleRoot returns the root of a binary tree whose leaves are the transactions' ids.
func merkleRoot(transactions []*transaction) bytes32 {
	half := (len(transactions) + 1) / 2
	switch len(transactions) {
	case 0:
		return bytes32{}
	case 1:
		return transactions[0].id()
	}
	left, right := merkleRoot(transactions[:half]), merkleRoot(transactions[half:])
	return sha256.Sum256(append(left[:], right[:]...))
}

// encode returns the block's bytes: the header and the transactions, each after its
// length. They are the payload of a package, the body of the builder's block, and the
// result of getblock with verbosity 0.
func (b *block) encode() []byte {
	out := b.header.encode()
	for _, t := range b.Transactions {
		raw := t.encode()
		out = binary.LittleEndian.AppendUint32(out, uint32(len(raw)))
		out = append(out, raw...)
	}
	return out
}

// decodeBlock decodes the output of encode. The error wraps errMalformed.
func decodeBlock(raw []byte) (*block, error) {
	b := new(block)
	size, err := binary.Decode(raw, binary.LittleEndian, &b.header)
	if err != nil {
		return nil, fmt.Errorf("%w: a block of %d bytes", errMalformed, len(raw))
	}
	for rest := raw[size:]; len(rest) > 0; {
		if len(rest) < 4 || uint64(len(rest)-4) < uint64(binary.LittleEndian.Uint32(rest)) {
			return nil, fmt.Errorf("%w: a block of %d bytes ends early", errMalformed, len(raw))
		}
		end := 4 + int(binary.LittleEndian.Uint32(rest))
		t, err := decodeTransaction(rest[4:end])
		if err != nil {
			return nil, err
		}
		b.Transactions, rest = append(b.Transactions, t), rest[end:]
	}
	if merkle := merkleRoot(b.Transactions); merkle != b.Merkle {
		return nil, fmt.Errorf("%w: the root of the transactions is %s, want %s", errMalformed, merkle, b.Merkle)
	}
	return b, nil
}

// Encode implements builder.Codec, because JSON does not know how to read a block of
// zcashd's fields.
func (*rollup) Encode(b *block) ([]byte, error) { return b.encode(), nil }

// Decode implements builder.Codec.
func (*rollup) Decode(raw []byte) (*block, error) { return decodeBlock(raw) }
