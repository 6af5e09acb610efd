package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
)

// A proof has proofSize bytes plus proofPerAction for each action (ZIP 225).
const (
	proofSize      = 2720
	proofPerAction = 2272
	maxActions     = 1 << 8 // our own limit
)

// Fields of an action, with the sizes of ZIP 225. zcashd shows most of them in the order of
// their bytes.
type (
	bytes32       [32]byte
	signature     [64]byte
	encCiphertext [580]byte // note encrypted to its receiver
	outCiphertext [80]byte  // note encrypted to its sender
)

func (b bytes32) String() string                     { return hex.EncodeToString(b[:]) }
func (b bytes32) MarshalText() ([]byte, error)       { return hex.AppendEncode(nil, b[:]), nil }
func (s signature) MarshalText() ([]byte, error)     { return hex.AppendEncode(nil, s[:]), nil }
func (c encCiphertext) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, c[:]), nil }
func (c outCiphertext) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, c[:]), nil }

// action spends one note and creates another, without revealing the notes or
// their owners.
type action struct {
	CV            bytes32       `json:"cv"`        // commitment to the net value
	Nullifier     bytes32       `json:"nullifier"` // identifies the spent note
	RK            bytes32       `json:"rk"`        // key that signs
	CMX           bytes32       `json:"cmx"`       // commitment to the new note
	EphemeralKey  bytes32       `json:"ephemeralKey"`
	EncCiphertext encCiphertext `json:"encCiphertext"`
	OutCiphertext outCiphertext `json:"outCiphertext"`
	SpendAuthSig  signature     `json:"spendAuthSig"`
}

// bundle is the part of a transaction whose size does not depend on its actions.
type bundle struct {
	ValueBalance int64     `json:"valueBalanceZat"` // zatoshi that leave the pool
	Anchor       bytes32   `json:"anchor"`
	BindingSig   signature `json:"bindingSig"`
}

// transaction is a bundle of actions. Its proof is opaque here: see the package
// comment.
type transaction struct {
	bundle
	Actions []action `json:"actions"`
	Proof   []byte   `json:"-"`
}

var (
	errMalformed   = errors.New("bad transaction")
	errDoubleSpend = errors.New("18: bad-txns-orchard-duplicate-nullifier")
)

// encode returns the form that is hashed, sent and stored: the bundle, the actions and
// the proof.
func (t *transaction) encode() []byte {
	b, _ := binary.Append(nil, binary.LittleEndian, &t.bundle) // these types always have a form
	b, _ = binary.Append(b, binary.LittleEndian, t.Actions)
	return append(b, t.Proof...)
}

// id returns the hash that identifies a transaction. In Zcash it is a tree of
// BLAKE2b hashes (ZIP 244).
func (t *transaction) id() bytes32 { return sha256.Sum256(t.encode()) }

// decodeTransaction decodes the output of encode. The number of actions follows from the
// length. The error wraps errMalformed.
func decodeTransaction(b []byte) (*transaction, error) {
	t := new(transaction)
	once, each := binary.Size(t.bundle)+proofSize, binary.Size(action{})+proofPerAction
	n := (len(b) - once) / each
	if n < 1 || n > maxActions || len(b) != once+n*each {
		return nil, fmt.Errorf("%w: %d bytes, want %d and %d for each of 1 to %d actions", errMalformed, len(b), once, each, maxActions)
	}
	t.Actions = make([]action, n)
	r := bytes.NewReader(b)
	err := errors.Join(binary.Read(r, binary.LittleEndian, &t.bundle), binary.Read(r, binary.LittleEndian, t.Actions))
	t.Proof = slices.Clone(b[len(b)-r.Len():])
	return t, err
}

// pool is the state of the shielded pool: the spent nullifiers, and a root over
// the notes. In Zcash the root is that of a Sinsemilla tree, against which
// spends are proved. Here it is a chain of SHA-256 hashes.
type pool struct {
	spent map[bytes32]bool
	notes uint64
	root  bytes32
}

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
	p.root, p.notes = to.Root, to.Notes
}
