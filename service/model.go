package service

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
)

// ErrNotInstalled is returned if a storage lacks the entries that a genesis writes.
var ErrNotInstalled = errors.New("service: not installed")

// Storage is the storage of the service, or a set of changes to it, as values by
// keys. In a set of changes, the value nil deletes the key.
type Storage map[string][]byte

// Get returns the value of a key, or nil if the key is absent.
func (s Storage) Get(key string) []byte { return s[key] }

// Write applies a set of changes to the storage.
func (s Storage) Write(changes Storage) {
	for key, value := range changes { // any order has the same result
		if value == nil {
			delete(s, key)
		} else {
			s[key] = value
		}
	}
}

// Operand is the input of accumulate for one work item: the result of refine, and the
// package in which the item arrived.
type Operand struct {
	// Package is the hash of the work package.
	Package jamq.PackageHash
	// Authorizer is the hash that identifies the authorizer of the package: a hash
	// over the authorizer's code hash and its configuration.
	Authorizer common.Hash
	// Output is the output of refine, or nil if refine failed.
	Output []byte
}

// Refine returns the output of the program's refine for the payload of a work item:
// the encoded commitment, followed by its hash. pkg is the hash of the item's
// package. The error wraps ErrHeader if the payload has no valid header; the
// program panics in this case.
func Refine(payload []byte, pkg jamq.PackageHash) ([]byte, error) {
	c, err := DecodeHeader(payload)
	if err != nil {
		return nil, err
	}
	c.Package = pkg
	hash := c.Yield()
	return append(c.Encode(), hash[:]...), nil
}

// Accumulate implements the program's accumulate in Go. It returns the changes that
// one call makes to the storage, and the hash that the service yields, or nil for
// none. get returns the value of a key before the call, or nil, as [Storage.Get]
// does. The error wraps ErrNotInstalled if the storage lacks the entries of a
// genesis; the program panics in this case.
//
// Accumulate considers only operands of the service's authorizer, in their order:
//
//   - It applies an operand that continues the last block, with the next number and
//     a pre-root that is the present state root.
//   - It keeps an operand in the storage if the number is less than Ahead above the
//     next one, until its predecessors have been applied. It does not keep a second
//     operand with the same number and pre-root. Up to Rivals operands are kept for
//     one number; a further operand replaces the oldest.
//   - It ignores all other operands.
//
// The yield is the hash of the commitment to the last block that was applied.
func Accumulate(get func(key string) []byte, slot jamq.Slot, operands []Operand) (changes Storage, yield *common.Hash, err error) {
	s, err := open(get)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range operands {
		u, ok := s.updateIn(o)
		if !ok {
			continue
		}
		switch distance := u.Number - (s.last.Number + 1); {
		case distance == 0 && u.PreRoot == s.last.PostRoot:
			applied := s.apply(u, slot)
			yield = &applied
		case distance > 0 && distance < Ahead:
			s.wait(u, o.Output)
		}
	}
	if yield != nil {
		s.changes[string(CountKey())] = binary.LittleEndian.AppendUint64(nil, s.last.Number)
	}
	return s.changes, yield, nil
}

// state is the storage of the service while operands are applied to it.
type state struct {
	get        func(key string) []byte // the storage before
	changes    Storage
	authorizer common.Hash
	last       proof.Commitment // to the last block
}

// read returns the value of a key in the storage, with the changes that this call has made
// so far. It returns nil if the key has no value.
func (s *state) read(key string) []byte {
	if value, changed := s.changes[key]; changed {
		return value
	}
	return s.get(key)
}

func open(get func(key string) []byte) (*state, error) {
	authorizer := get(string(AuthorizerKey()))
	if len(authorizer) != common.HashLength {
		return nil, fmt.Errorf("%w: an authorizer of %d bytes, want %d", ErrNotInstalled, len(authorizer), common.HashLength)
	}
	last, err := Last(get)
	return &state{get: get, changes: Storage{}, authorizer: common.Hash(authorizer), last: last}, err
}

// Last returns the commitment to the last block that the service has applied, or to
// the block of the genesis if it has applied none. get returns the value of a key
// in the storage, or nil. The error wraps ErrNotInstalled if the storage lacks the
// entries of a genesis.
func Last(get func(key string) []byte) (proof.Commitment, error) {
	var number uint64
	if count := get(string(CountKey())); count != nil {
		if len(count) != 8 {
			return proof.Commitment{}, fmt.Errorf("%w: a count of %d bytes, want 8", ErrNotInstalled, len(count))
		}
		number = binary.LittleEndian.Uint64(count)
	}
	last, err := proof.DecodeCommitment(get(commitmentKey(number)))
	if err != nil {
		return proof.Commitment{}, fmt.Errorf("%w: the commitment to block %d: %w", ErrNotInstalled, number, err)
	}
	last.Number = number
	return last, nil
}

// ErrOtherBlock is returned by Accepted if the service has applied another block
// with the same number, or has forgotten that number because it is too old.
var ErrOtherBlock = errors.New("service: it has applied another block with this number")

// Accepted tells a builder whether the service has applied the block of a payload.
// It returns the package that contained the block, or zero if no block with this
// number has been applied yet. get returns the value of a key in the storage, or
// nil.
//
// The error wraps:
//
//   - ErrHeader if the payload has no valid header
//   - ErrNotInstalled if the storage lacks the entries of a genesis
//   - ErrOtherBlock if a different block has this number, or if the block is so old
//     that the service has forgotten it
func Accepted(get func(key string) []byte, payload []byte) (jamq.PackageHash, error) {
	want, err := DecodeHeader(payload)
	if err != nil {
		return jamq.PackageHash{}, err
	}
	last, err := Last(get)
	if err != nil || want.Number > last.Number {
		return jamq.PackageHash{}, err
	}
	have, err := proof.DecodeCommitment(get(commitmentKey(want.Number)))
	if err != nil {
		return jamq.PackageHash{}, fmt.Errorf("%w: block %d is no longer in the storage: %w", ErrOtherBlock, want.Number, err)
	}
	want.Package, have.Number = have.Package, want.Number
	if have != want {
		return jamq.PackageHash{}, fmt.Errorf("%w: have block %d with hash %s, want %s", ErrOtherBlock, want.Number, have.Hash, want.Hash)
	}
	return have.Package, nil
}

func commitmentKey(number uint64) string {
	return string(proof.CommitmentKey([]byte(CommitmentPrefix), number))
}

// refined is a decoded output of refine: a commitment and its hash.
type refined struct {
	proof.Commitment
	yield common.Hash
}

// updateIn decodes the output of refine, and returns false if accumulate must
// ignore it.
func (s *state) updateIn(o Operand) (refined, bool) {
	u, ok := decodeUpdate(o.Output)
	// The service trusts only packages of the authorizer that it was created with. The output
	// must also name the package that it came in, so that an output of another package cannot
	// pass for it.
	return u, ok && o.Authorizer == s.authorizer && u.Package == o.Package
}

// decodeUpdate decodes an output of refine, unless its length is wrong.
func decodeUpdate(output []byte) (refined, bool) {
	if len(output) != updateSize {
		return refined{}, false
	}
	commitment, hash := output[:updateSize-common.HashLength], output[updateSize-common.HashLength:]
	c, err := proof.DecodeCommitment(commitment)
	return refined{c, common.Hash(hash)}, err == nil
}

// wait stores an update that arrived before its predecessor.
func (s *state) wait(u refined, output []byte) {
	key := string(waitingKey(u.Number))
	list := s.read(key)
	// One update with this number and pre-root is enough.
	if _, known := find(list, u.PreRoot); known {
		return
	}
	list = slices.Concat(output, intact(list))
	// The oldest update gives way if the list is full.
	s.changes[key] = list[:min(len(list), Rivals*updateSize)]
}

// find returns the waiting update that can be applied on the state root preRoot.
func find(list []byte, preRoot common.Hash) (refined, bool) {
	for one := range slices.Chunk(intact(list), updateSize) {
		if u, ok := decodeUpdate(one); ok && u.PreRoot == preRoot {
			return u, true
		}
	}
	return refined{}, false
}

// intact returns a list of waiting updates without an incomplete one at its end.
func intact(list []byte) []byte {
	// The service never writes such a list, so this only guards against foreign
	// data.
	if len(list) > Rivals*updateSize {
		return nil
	}
	return list[:len(list)/updateSize*updateSize]
}

// apply makes an update the newest block of the rollup. If an update for the next block is
// waiting and continues it, apply makes that one the newest block too, and so on.
func (s *state) apply(u refined, slot jamq.Slot) (yield common.Hash) {
	for inTurn := true; inTurn; {
		number := s.last.Number + 1
		s.last, yield = u.Commitment, u.yield
		s.last.Number = number
		s.prune(number - History)
		s.changes[commitmentKey(number)] = u.Encode()
		s.changes[string(MarkKey(u.Package))] = binary.LittleEndian.AppendUint32(nil, uint32(slot))
		s.changes[string(EntryKey(number-1))] = slices.Concat(u.Package[:], EncodeHeader(u.Commitment))

		key := string(waitingKey(number + 1))
		list := s.read(key)
		if list != nil {
			// Several updates may wait for this number. One of them continues the new block at
			// most; the others start from other state roots and are dropped.
			s.changes[key] = nil
		}
		u, inTurn = find(list, s.last.PostRoot)
	}
	return yield
}

// prune deletes everything that the storage has about an old block.
func (s *state) prune(number uint64) {
	c, err := proof.DecodeCommitment(s.read(commitmentKey(number)))
	if err != nil {
		return // there is none
	}
	s.changes[commitmentKey(number)] = nil
	s.changes[string(MarkKey(c.Package))] = nil
	s.changes[string(EntryKey(number-1))] = nil
}
