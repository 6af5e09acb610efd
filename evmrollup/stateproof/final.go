package stateproof

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jamq/jamq/canonical/proof"
)

// MaxFinal is the maximum size of a FinalAccount, in bytes of JSON. An account with 1,024 slots
// takes some megabytes.
const MaxFinal = 16 << 20

// FinalAccount is an account in the state after a final rollup block: the answer of
// jam_getAccountProof. It proves what the account was after that block, and not that there is no
// later block.
type FinalAccount struct {
	// Block proves that the block is final, and with it the root of its state.
	Block *proof.Document `json:"block"`
	// Account is the account with its proofs under that root.
	Account *Account `json:"account"`
}

// ParseFinal decodes a FinalAccount of at most MaxFinal bytes. Apart from white space the text must
// be the one that encoding/json writes. ParseFinal verifies no proof. The error wraps ErrInvalid,
// or proof.ErrMalformed for the document about the block.
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

// canonical reports whether the text is the one that a node writes for f.
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

// Verify checks that the block is final, and the account under the root of its state. The error
// wraps those of proof.Document.VerifyBlock, or ErrInvalid; the result then has only the steps that
// were verified. As with Account.Verify, the caller must compare address and slots with its
// request. Verify is safe for concurrent use.
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
