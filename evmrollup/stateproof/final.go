package stateproof

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jamq/jamq/canonical/proof"
)

// MaxFinal is the maximum size of a FinalAccount in JSON, in bytes. An account with
// 1,024 slots needs several megabytes.
const MaxFinal = 16 << 20

// FinalAccount is an account in the state after a final rollup block, together with its
// proofs. It is the answer of jam_getAccountProof. It does not prove that the block is
// the newest final block.
type FinalAccount struct {
	// Block proves that the block is final, and contains the root of the state after it.
	Block *proof.Document `json:"block"`
	// Account is the account with proofs under that root.
	Account *Account `json:"account"`
}

// ParseFinal decodes a FinalAccount of at most MaxFinal bytes. Apart from white space,
// the text must be exactly the text that encoding/json writes. ParseFinal does not
// verify any proof. The error wraps ErrInvalid, or proof.ErrMalformed if the proof of
// the block cannot be decoded.
func ParseFinal(data []byte) (*FinalAccount, error) {
	if len(data) > MaxFinal {
		return nil, fmt.Errorf("%w: %d bytes, want at most %d", ErrInvalid, len(data), MaxFinal)
	}
	var parts struct{ Block, Account json.RawMessage }
	if err := json.Unmarshal(data, &parts); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	block, err := proof.Parse(parts.Block)
	if err != nil {
		return nil, err
	}
	f := &FinalAccount{Block: block}
	if err := json.Unmarshal(parts.Account, &f.Account); err != nil {
		return nil, fmt.Errorf("%w: account: %w", ErrInvalid, err)
	}
	if !f.canonical(data) {
		return nil, fmt.Errorf("%w: a name or a value is not in the form in which a node writes it", ErrInvalid)
	}
	return f, nil
}

// canonical reports whether text is exactly the JSON that a node writes for f, apart from
// white space. Other texts with the same meaning are refused.
func (f *FinalAccount) canonical(text []byte) bool {
	var have bytes.Buffer
	if err := json.Compact(&have, text); err != nil {
		return false
	}
	if want, err := json.Marshal(f); err != nil || !bytes.Equal(have.Bytes(), want) {
		return false
	}
	return f.Account == nil || !slices.ContainsFunc(f.Account.StorageProof, func(s Slot) bool {
		slot, err := ParseSlot(s.Key)
		return err != nil || keyOf(s.Key, slot) != s.Key
	})
}

// Verify checks that the block is final and that the account is in the state after the
// block. The caller must also compare the address and the slots with its request. The
// error wraps those of proof.Document.VerifyBlock, or ErrInvalid; the result then has
// only the steps that were verified. Verify is safe for concurrent use.
func (f *FinalAccount) Verify(trust *proof.Trust) (proof.Result, error) {
	if f.Block == nil || f.Account == nil {
		return proof.Result{}, fmt.Errorf("%w: the block or the account is missing", ErrInvalid)
	}
	r, err := f.Block.VerifyBlock(trust)
	if err != nil {
		return r, err
	}
	if err := f.Account.Verify(r.Commitment.PostRoot); err != nil {
		return proof.Result{Steps: r.Steps}, err
	}
	r.Steps = append(r.Steps, fmt.Sprintf("account: %s and %d slots of its storage are in the state %s after that block",
		f.Account.Address, len(f.Account.StorageProof), r.Commitment.PostRoot))
	return r, nil
}
