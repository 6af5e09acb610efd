package statedb

import (
	"bytes"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/crypto/sha3"
)

// emptyCode is the hash of no code.
var emptyCode = keccak(nil)

// Code returns a copy of the code with the given hash as staged or published; nil for the hash of no code and for zero. What is not staged is
// logged: a witness carries the whole of it, bound by the code hash of an account. Where there is none, View.Err wraps ErrUnknownCode, or
// ErrNotInWitness.
func (v *View) Code(codeHash common.Hash) []byte {
	if codeHash == emptyCode || codeHash == (common.Hash{}) {
		return nil
	}
	if staged, ok := v.newCode.get(codeBlob{hash: codeHash}); ok {
		return bytes.Clone(staged.code)
	}
	code, ok := v.codes.codeOf(codeHash)
	switch {
	case ok:
		v.reads.addCode(codeHash)
	case v.store == nil:
		v.fail(fmt.Errorf("%w: code %s", ErrNotInWitness, codeHash))
	default:
		v.fail(fmt.Errorf("%w: %s was never set", ErrUnknownCode, codeHash))
	}
	return bytes.Clone(code)
}

// ReadCodeByChunk makes CodeAt read code as the chunks that it has in the tree (EIP-7864, "Code"), from now on: each is a key that is logged and
// proved like any other, and the witness carries no code besides. That needs no trust in code hashes, and about twice the room.
func (v *View) ReadCodeByChunk() { v.byChunk = true }

// CodeAt is Code of an account's code hash; by chunks, after ReadCodeByChunk, or if a stateless view has those and not the whole.
func (v *View) CodeAt(a common.Address) []byte {
	account := v.Account(a)
	h := account.CodeHash
	if h == emptyCode || h == (common.Hash{}) {
		return nil
	}
	if _, staged := v.newCode.get(codeBlob{hash: h}); staged || !v.chunked(h) {
		return v.Code(h)
	}
	code := make([]byte, 0, account.CodeSize+chunkSize)
	for i := uint32(0); len(code) < account.CodeSize && v.err == nil; i++ {
		chunk, _ := v.read(Access{Kind: CodeChunkAccess, Address: a, Chunk: i}.derive(v.profile))
		code = append(code, chunk[1:]...)
	}
	if v.err != nil {
		return nil
	}
	if code = code[:account.CodeSize]; keccak(code) != h {
		v.fail(fmt.Errorf("%w: the %d bytes of %s in the tree hash to %s, want %s", ErrUnknownCode, len(code), a, keccak(code), h))
		return nil
	}
	return code
}

// chunked says whether code is read by chunks.
func (v *View) chunked(h common.Hash) bool {
	if v.store != nil || v.byChunk {
		return v.byChunk
	}
	_, whole := v.codes.codeOf(h)
	return !whole
}

// SetCode stages an account's code as chunks and returns its hash, which belongs into the account together with the size. The error
// wraps ErrCodeSize and changes nothing.
func (v *View) SetCode(a common.Address, code []byte) (common.Hash, error) {
	if len(code) > maxCodeSize {
		return common.Hash{}, fmt.Errorf("%w: %s has %d bytes, want at most %d", ErrCodeSize, a, len(code), maxCodeSize)
	}
	if len(code) == 0 {
		return emptyCode, nil
	}
	for i, chunk := range chunks(code) {
		v.write(Access{Kind: CodeChunkAccess, Address: a, Chunk: uint32(i)}.derive(v.profile), chunk)
	}
	h := keccak(code)
	v.newCode.put(codeBlob{h, bytes.Clone(code)}, blobLess)
	return h, nil
}

func keccak(data []byte) (h common.Hash) {
	k := sha3.NewLegacyKeccak256()
	k.Write(data)
	k.Sum(h[:0])
	return h
}

const (
	chunkSize = 31
	push1     = 0x60
	push32    = 0x7f
)

// chunks splits code into pieces of 31 bytes, each behind a byte that says how many of its first bytes are data of a PUSH that
// began before it (EIP-7864, "Code").
func chunks(code []byte) [][32]byte {
	out := make([][32]byte, (len(code)+chunkSize-1)/chunkSize)
	next := 0 // where the next instruction begins
	for i := range out {
		start := i * chunkSize
		end := min(start+chunkSize, len(code))
		copy(out[i][1:], code[start:end])
		out[i][0] = byte(min(max(next-start, 0), chunkSize))
		for next < end {
			if op := code[next]; op >= push1 && op <= push32 {
				next += int(op-push1) + 1
			}
			next++
		}
	}
	return out
}
