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

// ErrNotInstalled is returned for a storage without the entries of a genesis.
var ErrNotInstalled = errors.New("service: not installed")

// Storage is the storage of the service, or changes of it: values by their keys.
// In changes, a key with the value nil is deleted.
type Storage map[string][]byte

// Get returns the value of a key, nil if there is none.
func (s Storage) Get(key string) []byte { return s[key] }

// Write carries out changes.
func (s Storage) Write(changes Storage) {
	for key, value := range changes { // any order has the same result
		if value == nil {
			delete(s, key)
		} else {
			s[key] = value
		}
	}
}

// Operand is one result of refine, as accumulate receives it.
type Operand struct {
	// Package is the hash of the work package.
	Package jamq.PackageHash
	// Authorizer is the hash of the package's authorizer: of its code and its
	// configuration.
	Authorizer common.Hash
	// Output is the output of refine, nil if refine failed.
	Output []byte
}

// Refine returns the output of the program's refine for the payload of a work
// item of a package: the encoded commitment, then its hash. The error wraps
// ErrHeader; the program panics then.
func Refine(payload []byte, pkg jamq.PackageHash) ([]byte, error) {
	c, err := DecodeHeader(payload)
	if err != nil {
		return nil, err
	}
	c.Package = pkg
	hash := c.Yield()
	return append(c.Encode(), hash[:]...), nil
}

// Accumulate returns what one call of the program's accumulate changes in the
// storage, and the hash that the service yields, nil for none. get returns the value
// of a key before the call, nil if there is none, as [Storage.Get] does. The error
// wraps ErrNotInstalled; the program panics then.
//
// It applies, in their order, the operands that the authorizer let pass and that
// continue the last block: by number and by state root. An operand whose number
// is less than Ahead above that waits in the storage until its turn has come,
// unless another one with its number and pre-root waits already. Rivals operands
// wait for a number; a further one takes the place of the first. All others are
// ignored. The yield is that of the last block which was applied.
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

// state is the service's storage while operands are applied to it.
type state struct {
	get        func(key string) []byte // the storage before
	changes    Storage
	authorizer common.Hash
	last       proof.Commitment // to the last block
}

// read returns the value of a key after the changes, nil if there is none.
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
// the block of its genesis. get returns the value of a key in the storage, nil if
// there is none. The error wraps ErrNotInstalled.
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

// ErrOtherBlock is returned for a payload with the number of a block that the service has applied,
// if it has applied another block under this number.
var ErrOtherBlock = errors.New("service: it has applied another block with this number")

// Accepted returns the package with which the service has applied the block of a payload, zero if
// it has not applied a block with this number yet. get returns the value of a key in the storage,
// nil if there is none. The error wraps ErrHeader, ErrNotInstalled or ErrOtherBlock; the last one
// also for a block that is so old that the service has forgotten it.
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

// refined is an output of refine: a commitment and its hash.
type refined struct {
	proof.Commitment
	yield common.Hash
}

// updateIn returns the output of an operand, if the operand may change the storage.
func (s *state) updateIn(o Operand) (refined, bool) {
	u, ok := decodeUpdate(o.Output)
	return u, ok && o.Authorizer == s.authorizer && u.Package == o.Package
}

// decodeUpdate reads an output of refine. It returns false if the length is another
// one.
func decodeUpdate(output []byte) (refined, bool) {
	if len(output) != updateSize {
		return refined{}, false
	}
	commitment, hash := output[:updateSize-common.HashLength], output[updateSize-common.HashLength:]
	c, err := proof.DecodeCommitment(commitment)
	return refined{c, common.Hash(hash)}, err == nil
}

// wait keeps an update until the turn of its number.
func (s *state) wait(u refined, output []byte) {
	key := string(waitingKey(u.Number))
	list := s.read(key)
	if _, known := find(list, u.PreRoot); known {
		return
	}
	list = slices.Concat(output, intact(list))
	s.changes[key] = list[:min(len(list), Rivals*updateSize)]
}

// find returns the update on a state root among those that wait for a number.
func find(list []byte, preRoot common.Hash) (refined, bool) {
	for one := range slices.Chunk(intact(list), updateSize) {
		if u, ok := decodeUpdate(one); ok && u.PreRoot == preRoot {
			return u, true
		}
	}
	return refined{}, false
}

// intact returns the updates of a list. Only a storage that the service has not written
// has anything else.
func intact(list []byte) []byte {
	if len(list) > Rivals*updateSize {
		return nil
	}
	return list[:len(list)/updateSize*updateSize]
}

// apply makes an update the last block, and then those that it was holding up. It
// returns the hash of the last one. Updates on other state roots are removed, because the
// turn of their number is over.
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
			s.changes[key] = nil
		}
		u, inTurn = find(list, s.last.PostRoot)
	}
	return yield
}

// prune removes a block, if there is one with this number.
func (s *state) prune(number uint64) {
	c, err := proof.DecodeCommitment(s.read(commitmentKey(number)))
	if err != nil {
		return // there is none
	}
	s.changes[commitmentKey(number)] = nil
	s.changes[string(MarkKey(c.Package))] = nil
	s.changes[string(EntryKey(number-1))] = nil
}
