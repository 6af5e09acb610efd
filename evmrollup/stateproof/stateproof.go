// Package stateproof makes and verifies the proofs that the reference node returns
// from eth_getProof.
//
// An answer has the form of EIP-1186, so that clients can decode it. Three fields
// have a different meaning, because the state is a unified binary tree (EIP-7864)
// instead of a Merkle Patricia trie:
//
//   - A proof is a list with one element, an encoded witness of package statedb. It
//     proves the value of an account or a slot, or that there is none.
//   - storageHash is the root of the state, because accounts have no separate
//     storage tries. Each proof of a slot leads to this root.
//   - codeHash is zero for an account that does not exist.
//
// A verifier needs the root of the state from a source that it trusts:
//
//	var account stateproof.Account
//	err := client.CallContext(ctx, &account, "eth_getProof", address, slots, block)
//	…
//	err = account.Verify(root)
//
// A FinalAccount also proves that root, for verifiers that trust the validators of
// JAM.
package stateproof

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/statedb"
)

// ErrInvalid is returned if a proof is wrong, or does not prove the values beside it.
var ErrInvalid = errors.New("stateproof: invalid proof")

// Account is an account with some slots of its storage, and with proofs of all these
// values. It is the answer of eth_getProof.
type Account struct {
	Address      common.Address  `json:"address"`      // of the account
	AccountProof []hexutil.Bytes `json:"accountProof"` // the parts of the tree that prove it
	Balance      *hexutil.Big    `json:"balance"`      // in wei
	CodeHash     common.Hash     `json:"codeHash"`     // Keccak-256 of the code
	Nonce        hexutil.Uint64  `json:"nonce"`        // the next one of the account
	StorageHash  common.Hash     `json:"storageHash"`  // the root of the state
	StorageProof []Slot          `json:"storageProof"` // the slots, in the order of the call
}

// StorageAt returns the value of a storage slot, given in hexadecimal. Call Verify
// first, because StorageAt checks no proof. The error wraps ErrInvalid if the account
// does not contain the slot, and is that of ParseSlot if the text is not a slot.
func (a *Account) StorageAt(slot string) (*hexutil.Big, error) {
	want, err := ParseSlot(slot)
	if err != nil {
		return nil, err
	}
	for _, s := range a.StorageProof {
		if have, err := ParseSlot(s.Key); err == nil && have == want {
			return s.Value, nil
		}
	}
	return nil, fmt.Errorf("%w: it does not have the slot %s", ErrInvalid, slot)
}

// Slot is a storage slot with its proof. Key is the slot in hexadecimal, either as
// the client wrote it or as a number without leading zeros.
type Slot struct {
	Key   string          `json:"key"`
	Value *hexutil.Big    `json:"value"` // 0 if the slot was never set
	Proof []hexutil.Bytes `json:"proof"` // the parts of the tree that prove it
}

// Prove returns an account and slots of its storage, with proofs. The slots are
// texts that ParseSlot accepts. The function open must return a new view of the
// same state at each call, because each proof needs a separate view. The errors are
// those of ParseSlot, open and statedb.View.Witness.
func Prove(open func() (*statedb.View, error), addr common.Address, slots []string) (*Account, error) {
	view, err := open()
	if err != nil {
		return nil, err
	}
	account := view.Account(addr)
	a := &Account{
		Address: addr, Balance: (*hexutil.Big)(account.Balance.ToBig()), CodeHash: account.CodeHash, Nonce: hexutil.Uint64(account.Nonce),
		StorageHash: view.ActiveRoot(), StorageProof: make([]Slot, len(slots)),
	}
	if a.AccountProof, err = proofOf(view); err != nil {
		return nil, err
	}
	for i, text := range slots {
		slot, err := ParseSlot(text)
		if err != nil {
			return nil, err
		}
		if view, err = open(); err != nil {
			return nil, err
		}
		a.StorageProof[i] = Slot{Key: keyOf(text, slot), Value: (*hexutil.Big)(view.Storage(addr, slot).Big())}
		if a.StorageProof[i].Proof, err = proofOf(view); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// proofOf returns a proof of all values that were read from a view.
func proofOf(view *statedb.View) ([]hexutil.Bytes, error) {
	witness, err := view.Witness()
	if err != nil {
		return nil, err
	}
	return []hexutil.Bytes{witness.Encode()}, nil
}

// Verify checks that the proofs lead to the given state root and prove all values.
// Verify does not know what the caller has requested, so the caller must compare
// Address and the keys of the slots with its request. The error wraps ErrInvalid.
// Verify is safe for concurrent use.
func (a *Account) Verify(root common.Hash) error {
	if a.StorageHash != root {
		return fmt.Errorf("%w: storageHash is %s, want the root of the state %s", ErrInvalid, a.StorageHash, root)
	}
	err := read(a.AccountProof, root, func(view *statedb.View) error {
		have := view.Account(a.Address)
		if err := a.checkBalance(have.Balance); err != nil {
			return err
		}
		if uint64(a.Nonce) != have.Nonce || a.CodeHash != have.CodeHash {
			return fmt.Errorf("nonce %d and codeHash %s, the proof has %d and %s", a.Nonce, a.CodeHash, have.Nonce, have.CodeHash)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w: account %s: %w", ErrInvalid, a.Address, err)
	}
	for _, s := range a.StorageProof {
		if err := s.verify(a.Address, root); err != nil {
			return fmt.Errorf("%w: slot %.66q of %s: %w", ErrInvalid, s.Key, a.Address, err)
		}
	}
	return nil
}

func (a *Account) checkBalance(have *uint256.Int) error {
	if a.Balance == nil || a.Balance.ToInt().Cmp(have.ToBig()) != 0 {
		return fmt.Errorf("balance %v, the proof has %v wei", a.Balance, have)
	}
	return nil
}

func (s *Slot) verify(addr common.Address, root common.Hash) error {
	slot, err := ParseSlot(s.Key)
	if err != nil {
		return err
	}
	return read(s.Proof, root, func(view *statedb.View) error {
		have := view.Storage(addr, slot)
		if s.Value == nil || s.Value.ToInt().Cmp(have.Big()) != 0 {
			return fmt.Errorf("value %v, the proof has %s", s.Value, have)
		}
		return nil
	})
}

// read calls check with a view that contains only the values of a proof. It returns an
// error if the proof contains a value that check does not read.
func read(proof []hexutil.Bytes, root common.Hash, check func(*statedb.View) error) error {
	if len(proof) != 1 {
		return fmt.Errorf("%d elements of the proof, want 1", len(proof))
	}
	witness, err := statedb.ParseWitness(proof[0])
	if err != nil {
		return err
	}
	view, err := statedb.NewStateless(witness, root)
	if err != nil {
		return err
	}
	wrong := check(view)
	if err := view.Err(); err != nil {
		return err // the values were zero because the proof does not have them
	}
	if wrong != nil {
		return wrong
	}
	return view.Matches(witness)
}
