// Package command is the program verify without the process around it, so that a test
// can start it.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/evmrollup/stateproof"
)

// Exit codes.
const (
	exitFinal = iota
	exitNotProved
	exitUsage
)

// question has the arguments of the command line.
type question struct {
	trust, document, node string
	tx                    *common.Hash // nil: the transaction of the document
	receipt               bool
	account               *common.Address // nil: a document about a transaction
	slots                 []string
	handoffs              []string // files
	save                  string
}

func parse(args []string, stderr io.Writer) (*question, error) {
	q := &question{slots: []string{}}
	fs := flag.NewFlagSet("verify", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&q.trust, "trust", "", "`file` with the validators and the service that you trust")
	fs.StringVar(&q.node, "node", "", "`URL` of a rollup node's RPC that makes the proof, instead of a file")
	fs.Func("tx", "`hash` of your transaction; empty: check the transaction that the proof names", func(text string) error {
		q.tx = new(common.Hash)
		return q.tx.UnmarshalText([]byte(text))
	})
	fs.BoolVar(&q.receipt, "receipt", false, "the proof must show whether the transaction succeeded")
	fs.Func("account", "`address` of an account, for a proof of its balance, nonce and storage", func(text string) error {
		q.account = new(common.Address)
		return q.account.UnmarshalText([]byte(text))
	})
	fs.Func("slot", "`slot` of the account's storage in hexadecimal; repeat the flag for each", func(text string) error {
		q.slots = append(q.slots, text)
		_, err := stateproof.ParseSlot(text)
		return err
	})
	fs.Func("handoff", "`file` with the proof of the next validator set; repeat the flag for each set, in their order; with -node they come from the node", func(name string) error {
		q.handoffs = append(q.handoffs, name)
		return nil
	})
	fs.StringVar(&q.save, "save", "", "`file` to which the trust in the newest proved validator set is written")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	q.document = fs.Arg(0)
	switch {
	case q.account != nil && (q.tx != nil || q.receipt):
		return nil, errors.New("-account cannot be used with -tx or -receipt")
	case q.account == nil && len(q.slots) > 0:
		return nil, errors.New("-slot needs -account")
	case q.node != "" && len(q.handoffs) > 0:
		return nil, errors.New("-handoff cannot be used with -node, which supplies them")
	case q.node != "" && (q.tx == nil && q.account == nil || fs.NArg() != 0):
		return nil, errors.New("-node needs -tx HASH or -account ADDRESS, and no file")
	case q.save != "" && q.trust == "":
		return nil, errors.New("-save needs -trust FILE, because a node must not choose the validators that you trust")
	case q.node == "" && (q.trust == "" || fs.NArg() != 1):
		return nil, errors.New("need -trust FILE, and one file with a proof, or - for standard input")
	}
	return q, nil
}

// Run is the command without the process around it, and returns the exit status.
func Run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	q, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitFinal
	}
	var trust *proof.Trust
	var document []byte
	if err == nil {
		trust, document, err = q.gather(stdin)
	}
	if err != nil {
		fmt.Fprintln(stderr, "verify:", err)
		return exitUsage
	}
	if err := explain(stdout, q, trust, document); err != nil {
		fmt.Fprintf(stdout, "\nNOT PROVED: %v\n", err)
		return exitNotProved
	}
	return exitFinal
}

// gather reads the trust and the document from files or from a node.
func (q *question) gather(stdin io.Reader) (trust *proof.Trust, document []byte, err error) {
	var raw []byte
	if q.trust != "" {
		raw, err = read(q.trust, nil)
	} else {
		raw, err = ask(q.node, "jam_getTrust")
	}
	if err != nil {
		return nil, nil, err
	}
	if trust, err = proof.ParseTrust(raw); err != nil {
		return nil, nil, err
	}
	switch {
	case q.node == "":
		document, err = read(q.document, stdin)
	case q.account != nil:
		document, err = ask(q.node, "jam_getAccountProof", q.account, q.slots)
	case q.receipt:
		document, err = ask(q.node, "jam_getReceiptProof", q.tx)
	default:
		document, err = ask(q.node, "jam_getFinalityProof", q.tx)
	}
	return trust, document, err
}

// timeout is the time limit for a node's answer.
const timeout = 30 * time.Second

// ask returns the answer of a node.
func ask(url, method string, args ...any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	client, err := rpc.DialContext(ctx, url)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var answer json.RawMessage
	if err := client.CallContext(ctx, &answer, method, args...); err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	if string(answer) == "null" || len(answer) == 0 {
		return nil, fmt.Errorf("%s: %w", method, errUnknown)
	}
	return answer, nil
}

// errUnknown is returned if the node has no proof.
var errUnknown = errors.New("the node has no block with this transaction")

// read returns the content of a file. If it is the answer of a JSON-RPC call,
// read returns the result.
func read(name string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if name != "-" || stdin == nil {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	raw, err := io.ReadAll(io.LimitReader(in, stateproof.MaxFinal+1))
	if err != nil {
		return nil, err
	}
	var answer struct {
		JSONRPC string
		Result  json.RawMessage
		Error   *struct{ Message string }
	}
	if json.Unmarshal(raw, &answer) != nil || answer.JSONRPC == "" {
		return raw, nil
	}
	if answer.Error != nil {
		return nil, fmt.Errorf("%s: the node answered: %s", name, answer.Error.Message)
	}
	if s := string(answer.Result); s == "" || s == "null" {
		return nil, fmt.Errorf("%s: %w", name, errUnknown)
	}
	return answer.Result, nil
}

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

func countZero(keys []proof.ValidatorKey) (n int) {
	for _, key := range keys {
		if key.IsZero() {
			n++
		}
	}
	return n
}

// explain checks the document and prints why each link is valid. It returns the
// error of the first link that is not.
func explain(w io.Writer, q *question, trust *proof.Trust, raw []byte) error {
	fingerprint, err := trust.Fingerprint()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "You trust the %d validators of set %d, and that service %d is the rollup's.\n", len(trust.Validators), trust.Set, trust.Service)
	if punished := countZero(trust.Validators); punished != 0 {
		fmt.Fprintf(w, "   JAM has punished %d of them: they count in the set, and they cannot vote.\n", punished)
	}
	fmt.Fprintf(w, "   The fingerprint of this trust is %s. Compare it over another channel.\n", fingerprint)
	if q.trust == "" {
		fmt.Fprintln(w, "   The trust comes from the node that made the proof. Unless you compare the fingerprint, this shows only that the node does not contradict itself.")
	}
	if trust, err = q.follow(w, trust, raw); err != nil {
		return err
	}
	check := explainTransaction
	if q.account != nil {
		check = explainAccount
	}
	return check(w, q, trust, raw)
}

// explainTransaction checks a document about a transaction.
func explainTransaction(w io.Writer, q *question, trust *proof.Trust, raw []byte) error {
	d, err := proof.Parse(raw)
	if err != nil {
		return err
	}
	if q.tx != nil && *q.tx != d.Claim.Transaction {
		return fmt.Errorf("%w: the document is about %s, and -tx is %s", proof.ErrTransaction, d.Claim.Transaction, *q.tx)
	}
	if q.receipt && d.Receipt == nil {
		return fmt.Errorf("%w: the document has none, and -receipt wants one", proof.ErrReceipt)
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

// explainAccount checks a proof of an account.
func explainAccount(w io.Writer, q *question, trust *proof.Trust, raw []byte) error {
	f, err := stateproof.ParseFinal(raw)
	if err != nil {
		return err
	}
	result, err := f.Verify(trust)
	if err := printSteps(w, result.Steps, err); err != nil {
		return err
	}
	if f.Account.Address != *q.account {
		return fmt.Errorf("%w: it is about %s, and -account is %s", stateproof.ErrInvalid, f.Account.Address, *q.account)
	}
	values, err := valuesOf(f.Account, q.slots)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nFINAL: after rollup block %d, account %s has\n   balance %s wei\n   nonce %d\n", result.Commitment.Number, *q.account, f.Account.Balance.ToInt(), f.Account.Nonce)
	for i, value := range values {
		fmt.Fprintf(w, "   slot %s: %s\n", q.slots[i], value)
	}
	return nil
}

// valuesOf returns the values of slots in a proof of an account.
func valuesOf(a *stateproof.Account, slots []string) ([]*hexutil.Big, error) {
	values := make([]*hexutil.Big, len(slots))
	for i, text := range slots {
		want, err := stateproof.ParseSlot(text)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(a.StorageProof, func(s stateproof.Slot) bool {
			have, err := stateproof.ParseSlot(s.Key)
			return err == nil && have == want
		})
		if at < 0 {
			return nil, fmt.Errorf("%w: it does not have the slot %s", stateproof.ErrInvalid, text)
		}
		values[i] = a.StorageProof[at].Value
	}
	return values, nil
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
