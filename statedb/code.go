package statedb

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/crypto/sha3"
)

// emptyCode is the hash of empty code.
var emptyCode = keccak(nil)

// Code returns a copy of the code with the given hash, which may be staged in this
// view or published. It returns nil for the hash of empty code and for the zero
// hash. Published code is logged as read, and a witness then contains all of it. If
// the code is unknown, Code returns nil and sets [View.Err], which then wraps
// ErrUnknownCode or ErrNotInWitness.
func (v *View) Code(codeHash common.Hash) []byte {
	if codeHash == emptyCode || codeHash == (common.Hash{}) {
		return nil
	}
	if staged, ok := v.newCode.get(codeBlob{hash: codeHash}); ok {
		return bytes.Clone(staged.code)
	}
	blob, ok := v.published(codeHash)
	switch {
	case ok && v.noReads:
	case ok:
		v.reads.addCode(codeHash)
	case v.store == nil:
		v.fail(fmt.Errorf("%w: code %s", ErrNotInWitness, codeHash))
	default:
		v.fail(fmt.Errorf("%w: %s was never set", ErrUnknownCode, codeHash))
	}
	return bytes.Clone(blob.code)
}

// published returns code that a commit has published, not code staged in this view.
func (v *View) published(codeHash common.Hash) (blob codeBlob, ok bool) {
	if v.store != nil {
		return v.codes.get(codeBlob{hash: codeHash})
	}
	// A stateless view takes the code from its witness.
	at, ok := slices.BinarySearchFunc(v.shownCode, codeHash, func(b codeBlob, h common.Hash) int { return b.hash.Cmp(h) })
	if ok {
		blob = v.shownCode[at]
	}
	return blob, ok
}

// CodeAt returns the code of an account. It has the same results and errors as
// Code.
func (v *View) CodeAt(a common.Address) []byte { return v.Code(v.Account(a).CodeHash) }

// SetCode stages the code of an account, split into chunks, and returns the hash of the code. The
// caller must then set the hash and the size in the account with SetAccount. If the error wraps
// ErrCodeSize, nothing has changed.
func (v *View) SetCode(a common.Address, code []byte) (common.Hash, error) {
	if len(code) > maxCodeSize {
		return common.Hash{}, fmt.Errorf("%w: %s has %d bytes, want at most %d", ErrCodeSize, a, len(code), maxCodeSize)
	}
	if len(code) == 0 {
		return emptyCode, nil
	}
	for i, chunk := range chunks(code) {
		v.write(Access{Kind: CodeChunkAccess, Address: a, Chunk: uint32(i)}.derive(), chunk)
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

// chunks splits code into pieces of 31 bytes, each behind one byte (EIP-7864).
func chunks(code []byte) [][32]byte {
	out := make([][32]byte, (len(code)+chunkSize-1)/chunkSize)
	next := 0 // start of the next instruction
	for i := range out {
		start := i * chunkSize
		end := min(start+chunkSize, len(code))
		copy(out[i][1:], code[start:end])
		// The first byte counts how many bytes at the beginning of the piece are
		// data of a PUSH instruction in an earlier piece. With this byte, a
		// verifier can find the jump destinations in a single chunk.
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
