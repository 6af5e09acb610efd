package command

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/evmrollup/stateproof"
)

// why explains the basis of each kind of link.
var why = map[string]string{
	"finality":    "It could be wrong only if more than a third of these validators broke the rules.",
	"state":       "A state with different data has a different root. This step is a BLAKE2b hash and needs no trust.",
	"output":      "A log with a different output has a different super-peak. This step is a Keccak hash and needs no trust.",
	"commitment":  "JAM ran the service's code to store this. That the code stores the block that it executed is a promise of the rollup, and the code is public.",
	"transaction": "A block with a different transaction has a different transactions root. This step is Ethereum's trie.",
	"receipt":     "A header with different receipts has a different hash. This step is Ethereum's trie. That the outcome is right is a promise of the rollup.",
	"account":     "A state with a different account has a different root. That the root is right is a promise of the rollup.",
}

// explainTrust prints which validators the user trusts, with a warning if the node that made the
// proof has named them. It returns the trust in the validator set that has signed the document.
func (q *question) explainTrust(w io.Writer, trust *proof.Trust, d *proof.Document) (*proof.Trust, error) {
	fingerprint, err := trust.Fingerprint()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(w, "You trust the %d validators of set %d, and that service %d is the rollup's.\n", len(trust.Validators), trust.Set, trust.Service)
	voters := slices.DeleteFunc(slices.Clone(trust.Validators), proof.ValidatorKey.IsZero)
	if punished := len(trust.Validators) - len(voters); punished != 0 {
		fmt.Fprintf(w, "   JAM has punished %d of them: they count in the set, and they cannot vote.\n", punished)
	}
	fmt.Fprintf(w, "   The fingerprint of this trust is %s. Compare it over another channel.\n", fingerprint)
	if q.trust == "" {
		fmt.Fprintln(w, "   The trust comes from the node that made the proof. Unless you compare the fingerprint, this shows only that the node does not contradict itself.")
	}
	return q.follow(w, trust, d)
}

// checkTransaction checks a document about a transaction.
func (q *question) checkTransaction(w io.Writer, trust *proof.Trust, raw []byte) error {
	d, err := proof.Parse(raw)
	switch {
	case err != nil:
		return err
	case q.tx != (common.Hash{}) && q.tx != d.Claim.Transaction:
		return fmt.Errorf("%w: the document is about %s, and -tx is %s", proof.ErrTransaction, d.Claim.Transaction, q.tx)
	case q.receipt && d.Receipt == nil:
		return fmt.Errorf("%w: the document has none, and -receipt wants one", proof.ErrReceipt)
	}
	if trust, err = q.explainTrust(w, trust, d); err != nil {
		return err
	}
	result, err := d.Verify(trust)
	if err := printSteps(w, result.Steps, err); err != nil {
		return err
	}
	outcome := ""
	if result.Receipt != nil {
		outcome = map[bool]string{true: ", SUCCEEDED", false: ", FAILED"}[result.Receipt.Status == types.ReceiptStatusSuccessful]
	}
	fmt.Fprintf(w, "\nFINAL: transaction %s, in rollup block %d%s\n", result.Transaction.Hash(), result.Commitment.Number, outcome)
	return nil
}

// checkAccount checks a proof of an account, which must have all slots of the question.
func (q *question) checkAccount(w io.Writer, trust *proof.Trust, raw []byte) error {
	f, err := stateproof.ParseFinal(raw)
	if err != nil {
		return err
	}
	if trust, err = q.explainTrust(w, trust, f.Block); err != nil {
		return err
	}
	result, err := f.Verify(trust)
	if err := printSteps(w, result.Steps, err); err != nil {
		return err
	}
	if f.Account.Address != *q.account {
		return fmt.Errorf("%w: it is about %s, and -account is %s", stateproof.ErrInvalid, f.Account.Address, *q.account)
	}
	var values strings.Builder
	for _, text := range q.slots {
		value, err := f.Account.StorageAt(text)
		if err != nil {
			return err
		}
		fmt.Fprintf(&values, "   slot %s: %s\n", text, value)
	}
	fmt.Fprintf(w, "\nFINAL: after rollup block %d, account %s has\n   balance %s wei\n   nonce %d\n%s", result.Commitment.Number, *q.account, f.Account.Balance.ToInt(), f.Account.Nonce, &values)
	return nil
}

// printSteps prints the links that were verified, each with its reason. wrong is the error of the
// first link that is not valid, or nil.
func printSteps(w io.Writer, steps []string, wrong error) error {
	for i, step := range steps {
		link, _, _ := strings.Cut(step, ":")
		fmt.Fprintf(w, "%d. %s.\n   %s\n", i+1, step, why[link])
	}
	if wrong != nil {
		return fmt.Errorf("link %d is not valid: %w", len(steps)+1, wrong)
	}
	return nil
}
