package statedb

import (
	"encoding/binary"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/statedb/ubt"
)

// proofWriter writes the streams of a proof that the library would not write.
type proofWriter struct {
	bits                   []byte // one each
	opened, hashes, values [][32]byte
}

func (p *proofWriter) put(v, n int) {
	for i := n - 1; i >= 0; i-- {
		p.bits = append(p.bits, byte(v>>i&1))
	}
}

func (p *proofWriter) sibling(there bool) {
	if !there {
		p.put(0, 1)
		return
	}
	p.put(1, 1)
	p.hashes = append(p.hashes, common.Hash{1, 2, 3})
}

func (p *proofWriter) encode() []byte {
	var b []byte
	for _, n := range []int{len(p.bits), len(p.opened), len(p.hashes), len(p.values)} {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	packed := make([]byte, (len(p.bits)+7)/8)
	for i, bit := range p.bits {
		packed[i/8] |= bit << (7 - i%8)
	}
	b = append(b, packed...)
	for _, stream := range [][][32]byte{p.opened, p.hashes, p.values} {
		for _, item := range stream {
			b = append(b, item[:]...)
		}
	}
	return b
}

func (p *proofWriter) proof(t require.TestingT) *ubt.Proof {
	proof, err := ubt.ParseProof(p.encode())
	require.NoError(t, err)
	return proof
}
