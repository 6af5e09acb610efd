package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
)

// Sizes of an Orchard action and of the parts of a bundle of actions, in bytes
// (ZIP 225). A proof has proofSize bytes plus proofPerAction for each action.
const (
	encCiphertextSize = 580
	outCiphertextSize = 80
	signatureSize     = 64
	proofSize         = 2720
	proofPerAction    = 2272
	maxActions        = 1 << 8 // our own limit
	flagSpends        = 1
	flagOutputs       = 2
)

// bytes32 is a field of 32 bytes. zcashd shows most of them in the order of the
// encoding.
type bytes32 [32]byte

func (b bytes32) String() string               { return hex.EncodeToString(b[:]) }
func (b bytes32) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// action spends one note and creates another, without revealing the notes or
// their owners.
type action struct {
	CV            bytes32 // commitment to the net value
	Nullifier     bytes32 // identifies the spent note
	RK            bytes32 // key that signs
	CMX           bytes32 // commitment to the new note
	EphemeralKey  bytes32
	EncCiphertext [encCiphertextSize]byte // note encrypted to its receiver
	OutCiphertext [outCiphertextSize]byte // note encrypted to its sender
	SpendAuthSig  [signatureSize]byte
}

// transaction is a bundle of actions. Its proof is opaque here: see the package
// comment.
type transaction struct {
	Actions      []action
	Flags        byte
	ValueBalance int64 // zatoshi that leave the pool
	Anchor       bytes32
	Proof        []byte
	BindingSig   [signatureSize]byte
}

var (
	errMalformed   = errors.New("bad transaction")
	errDoubleSpend = errors.New("nullifier was seen before")
)

// encode returns the form that is hashed, sent and stored: the Orchard part of
// ZIP 225, with lengths of 4 bytes.
func (t *transaction) encode() []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(t.Actions)))
	for i := range t.Actions {
		a := &t.Actions[i]
		for _, field := range [][]byte{a.CV[:], a.Nullifier[:], a.RK[:], a.CMX[:], a.EphemeralKey[:], a.EncCiphertext[:], a.OutCiphertext[:]} {
			b = append(b, field...)
		}
	}
	b = append(b, t.Flags)
	b = binary.LittleEndian.AppendUint64(b, uint64(t.ValueBalance))
	b = append(b, t.Anchor[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(t.Proof)))
	b = append(b, t.Proof...)
	for i := range t.Actions {
		b = append(b, t.Actions[i].SpendAuthSig[:]...)
	}
	return append(b, t.BindingSig[:]...)
}

// id returns the hash that identifies a transaction. In Zcash it is a tree of
// BLAKE2b hashes (ZIP 244).
func (t *transaction) id() bytes32 { return sha256.Sum256(t.encode()) }

// cutter cuts fields off a byte slice. After the end it returns zeros and sets
// a flag.
type cutter struct {
	rest  []byte
	short bool
}

func (c *cutter) into(field []byte) {
	if c.short = c.short || len(c.rest) < len(field); !c.short {
		copy(field, c.rest)
		c.rest = c.rest[len(field):]
	}
}

func (c *cutter) count() uint32 {
	var n [4]byte
	c.into(n[:])
	return binary.LittleEndian.Uint32(n[:])
}

// decodeTransaction decodes the output of encode, without remaining bytes, and
// makes all checks that need no cryptography. The error wraps errMalformed.
func decodeTransaction(b []byte) (*transaction, error) {
	c := cutter{rest: b}
	n := c.count()
	if n == 0 || n > maxActions {
		return nil, fmt.Errorf("%w: %d actions, want 1 to %d", errMalformed, n, maxActions)
	}
	t := &transaction{Actions: make([]action, n)}
	for i := range t.Actions {
		a := &t.Actions[i]
		for _, field := range [][]byte{a.CV[:], a.Nullifier[:], a.RK[:], a.CMX[:], a.EphemeralKey[:], a.EncCiphertext[:], a.OutCiphertext[:]} {
			c.into(field)
		}
	}
	var flags [1]byte
	var balance [8]byte
	c.into(flags[:])
	c.into(balance[:])
	c.into(t.Anchor[:])
	want := proofSize + proofPerAction*n
	if size := c.count(); size != want {
		return nil, fmt.Errorf("%w: a proof of %d bytes, want %d for %d actions", errMalformed, size, want, n)
	}
	t.Flags, t.ValueBalance, t.Proof = flags[0], int64(binary.LittleEndian.Uint64(balance[:])), make([]byte, want)
	c.into(t.Proof)
	for i := range t.Actions {
		c.into(t.Actions[i].SpendAuthSig[:])
	}
	c.into(t.BindingSig[:])
	switch {
	case c.short || len(c.rest) > 0:
		return nil, fmt.Errorf("%w: %d bytes for %d actions", errMalformed, len(b), n)
	case t.Flags&^(flagSpends|flagOutputs) != 0:
		return nil, fmt.Errorf("%w: flags %#x", errMalformed, t.Flags)
	case t.ValueBalance == math.MinInt64:
		return nil, fmt.Errorf("%w: value balance %d", errMalformed, t.ValueBalance)
	}
	return t, nil
}

// pool is the state of the shielded pool: the spent nullifiers, and a root over
// the notes. In Zcash the root is that of a Sinsemilla tree, against which
// spends are proved. Here it is a chain of SHA-256 hashes.
type pool struct {
	spent    map[bytes32]bool
	notes    uint64
	root     bytes32
	subtrees []bytes32 // root after each subtreeSize notes
}

// subtreeSize is the number of notes of a subtree whose root wallets ask for.
const subtreeSize = 1 << 16

// check returns an error, which wraps errDoubleSpend, if a transaction cannot be
// executed.
func (p *pool) check(t *transaction) error {
	seen := map[bytes32]bool{}
	for i := range t.Actions {
		nf := t.Actions[i].Nullifier
		if p.spent[nf] || seen[nf] {
			return fmt.Errorf("%w: %s", errDoubleSpend, nf)
		}
		seen[nf] = true
	}
	return nil
}

// apply executes a transaction. If it returns the error of check, the pool is
// unchanged.
func (p *pool) apply(t *transaction) error {
	if err := p.check(t); err != nil {
		return err
	}
	for i := range t.Actions {
		a := &t.Actions[i]
		p.spent[a.Nullifier] = true
		p.root = sha256.Sum256(append(p.root[:], a.CMX[:]...))
		p.notes++
		if p.notes%subtreeSize == 0 {
			p.subtrees = append(p.subtrees, p.root)
		}
	}
	return nil
}

// revert undoes the newest transactions. The pool is then as it was after the
// block to.
func (p *pool) revert(newest []*transaction, to *block) {
	for _, t := range newest {
		for i := range t.Actions {
			delete(p.spent, t.Actions[i].Nullifier)
		}
	}
	p.root, p.notes, p.subtrees = to.Root, to.Notes, p.subtrees[:to.Notes/subtreeSize]
}
