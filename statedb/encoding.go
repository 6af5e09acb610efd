package statedb

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/statedb/ubt"
)

// witnessVersion is the first byte of an encoded witness. ParseWitness refuses witnesses of other
// versions.
const witnessVersion = 1

// The first byte of an encoded entry has the kind in its lower bits, and above it
// one flag for a written value and one for a deleted value.
const (
	kindMask    = 0x0f
	setFlag     = 0x10
	deletedFlag = 0x20
)

// metadata returns how many bytes of an encoded entry identify its key.
func (k AccessKind) metadata() int {
	// The first byte of the entry, which contains the kind, does not count.
	switch k {
	case RawAccess:
		return StemSize + 1
	case StorageAccess:
		return common.AddressLength + common.HashLength
	case CodeChunkAccess:
		return common.AddressLength + 4
	}
	return common.AddressLength
}

// checksumSize is the length of the checksum at the end of a witness or a write record: the first
// bytes of the SHA-256 hash of all bytes before it. The checksum detects damage, not forgery.
const checksumSize = 8

func checksum(parts ...[]byte) []byte {
	sum := sha256.New()
	for _, b := range parts {
		_, _ = sum.Write(b) // never fails
	}
	return sum.Sum(nil)[:checksumSize]
}

// Size returns the length of the encoded witness in bytes. It is the sum of these parts:
//
//   - 17 bytes in any case
//   - for each entry 33 bytes (raw), 21 (basic data or code hash), 53 (storage) or 25 (code chunk)
//   - for each code its length and 4 bytes
//   - the size of the proof: see [ubt.Proof.Size]
func (w *Witness) Size() int {
	n := 1 + 4 + 4 + w.Proof.Size() + checksumSize
	for i := range w.Entries {
		n += 1 + w.Entries[i].Kind.metadata()
	}
	for _, code := range w.Code {
		n += 4 + len(code)
	}
	return n
}

// Encode returns the encoding of a witness, which must come from View.Witness or from
// ParseWitness. Each witness has only this one encoding:
//
//	version 1 byte
//	entries 4 bytes big-endian, then each: kind and flags 1 byte; a raw key, or
//	        the address and the slot or the chunk's number
//	code    4 bytes, then each: length 4 bytes, code
//	proof   as ubt.Proof.AppendTo writes it
//	check   the first 8 bytes of the SHA-256 hash of all before
//
// Keys are not encoded, because they are derived from the metadata. Two witnesses
// that prove the same have the same encoding.
func (w *Witness) Encode() []byte {
	b := make([]byte, 0, w.Size())
	b = append(b, witnessVersion)
	b = binary.BigEndian.AppendUint32(b, uint32(len(w.Entries)))
	for i := range w.Entries {
		b = w.Entries[i].append(b)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(w.Code)))
	for _, code := range w.Code {
		b = binary.BigEndian.AppendUint32(b, uint32(len(code)))
		b = append(b, code...)
	}
	b = w.Proof.AppendTo(b)
	return append(b, checksum(b)...)
}

func (e *Entry) append(b []byte) []byte {
	first := byte(e.Kind)
	if e.Set {
		first |= setFlag
	}
	if e.Deleted {
		first |= deletedFlag
	}
	b = append(b, first)
	if e.Kind == RawAccess {
		return append(b, e.Key[:]...)
	}
	b = append(b, e.Address[:]...)
	switch e.Kind {
	case StorageAccess:
		b = append(b, e.Slot[:]...)
	case CodeChunkAccess:
		b = binary.BigEndian.AppendUint32(b, e.Chunk)
	}
	return b
}

// ParseWitness decodes a witness and derives its keys. The witness must fill b
// completely. ParseWitness checks only the form, so its result must not be trusted
// until [Verify] or [NewStateless] has checked the proof. The error wraps
// ErrWitness.
func ParseWitness(b []byte) (*Witness, error) {
	if len(b) < checksumSize || !bytes.Equal(checksum(b[:len(b)-checksumSize]), b[len(b)-checksumSize:]) {
		return nil, fmt.Errorf("%w: wrong checksum of %d bytes", ErrWitness, len(b))
	}
	r := reader{rest: b[:len(b)-checksumSize]}
	if version := r.take(1); r.err == nil && version[0] != witnessVersion {
		return nil, fmt.Errorf("%w: version %d, want %d", ErrWitness, version[0], witnessVersion)
	}
	w := new(Witness)
	n := r.count(1 + common.AddressLength)
	w.Entries = make([]Entry, 0, n)
	for ; n > 0 && r.err == nil; n-- {
		w.Entries = append(w.Entries, r.entry())
	}
	n = r.count(4)
	w.Code = make([][]byte, 0, n)
	for ; n > 0 && r.err == nil; n-- {
		w.Code = append(w.Code, slices.Clone(r.take(r.count(1))))
	}
	if r.err != nil {
		return nil, r.err
	}
	for i := range w.Entries {
		if err := w.Entries[i].check(); err != nil {
			return nil, err
		}
		if i > 0 && w.Entries[i-1].Key.Compare(w.Entries[i].Key) >= 0 {
			return nil, fmt.Errorf("%w: %s after %s, want ascending keys", ErrWitness, w.Entries[i].Access, w.Entries[i-1].Access)
		}
	}
	var err error
	if w.Proof, err = ubt.ParseProof(r.rest); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWitness, err)
	}
	return w, nil
}

// reader decodes values from bytes. After an error it returns zeros, so that
// callers need to check for an error only at the end.
type reader struct {
	rest []byte
	err  error
}

var zeros [64]byte

func (r *reader) take(n int) []byte {
	if r.err == nil && n > len(r.rest) {
		r.err = fmt.Errorf("%w: %d bytes left, want %d", ErrWitness, len(r.rest), n)
	}
	if r.err != nil {
		return zeros[:min(n, len(zeros))]
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

// count reads the number of items that follow.
func (r *reader) count(size int) int {
	n := binary.BigEndian.Uint32(r.take(4))
	// The encoding claims that n items follow, each of at least size bytes. If they do not fit
	// into the rest, the number is forged, and no memory is allocated for it.
	if r.err == nil && uint64(n) > uint64(len(r.rest)/size) {
		r.err = fmt.Errorf("%w: %d items of at least %d bytes in %d bytes", ErrWitness, n, size, len(r.rest))
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

func (r *reader) entry() (e Entry) {
	first := r.take(1)[0]
	e.Kind, e.Set, e.Deleted = AccessKind(first&kindMask), first&setFlag != 0, first&deletedFlag != 0
	if first&^(kindMask|setFlag|deletedFlag) != 0 || e.Kind > CodeChunkAccess {
		if r.err == nil {
			r.err = fmt.Errorf("%w: entry begins with %#x", ErrWitness, first)
		}
		return e
	}
	b := r.take(e.Kind.metadata())
	if e.Kind == RawAccess {
		e.Key = Key(b)
		return e
	}
	e.Address = common.Address(b)
	switch b = b[common.AddressLength:]; e.Kind {
	case StorageAccess:
		e.Slot = common.Hash(b)
	case CodeChunkAccess:
		e.Chunk = binary.BigEndian.Uint32(b)
	}
	e.Access = e.derive()
	return e
}
