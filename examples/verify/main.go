// Command verify answers a user's question: is my transaction final, and why should I believe it? It checks a document of package
// canonical/proof, with no network and no node:
//
//	go run ./examples/verify -trust trust.json -tx 0x… proof.json
//
// or has a node of the rollup make the document first; what it answers is checked in the same way:
//
//	go run ./examples/verify -trust trust.json -tx 0x… -node http://127.0.0.1:8545
//
// The trust is a file with what you believe beforehand: JAM's validators, the rollup's service. Who means it gets it from somebody else than
// who made the proof. To try things out, leave -trust away beside -node: then the node is asked for it, and the output says what that is worth.
// Files may be what curl has printed of jam_getFinalityProof and jam_getTrust.
//
// The exit status is 0 for a proof that holds, 1 for one that does not, 2 for a wrong use.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/canonical/proof"
)

// Exit codes.
const (
	exitFinal = iota
	exitNotProved
	exitUsage
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// question is what the command line asks.
type question struct {
	trust, document, node string
	tx                    *common.Hash // nil: whatever the document is about
}

func parse(args []string, stderr io.Writer) (*question, error) {
	q := &question{}
	fs := flag.NewFlagSet("verify", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&q.trust, "trust", "", "file with the validators and the service that you trust")
	fs.StringVar(&q.node, "node", "", "RPC of a node of the rollup that makes the proof, instead of a file")
	fs.Func("tx", "hash of your transaction; without it, the proof is of whatever it says", func(text string) error {
		q.tx = new(common.Hash)
		return q.tx.UnmarshalText([]byte(text))
	})
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	q.document = fs.Arg(0)
	switch {
	case q.node != "" && (q.tx == nil || fs.NArg() != 0):
		return nil, errors.New("with -node want -tx HASH and no file")
	case q.node == "" && (q.trust == "" || fs.NArg() != 1):
		return nil, errors.New("want -trust FILE, and one file with a proof, or - for the standard input")
	}
	return q, nil
}

// run is the command without the process around it.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
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

// gather gets the trust and the document from files or from a node.
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
	if q.node != "" {
		document, err = ask(q.node, "jam_getFinalityProof", q.tx)
	} else {
		document, err = read(q.document, stdin)
	}
	return trust, document, err
}

// patience is how long a node may take to answer.
const patience = 30 * time.Second

// ask returns what a node answers.
func ask(url, method string, args ...any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
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

// errUnknown: a node has nothing to prove.
var errUnknown = errors.New("the node knows no such transaction in a block")

// read returns what is in a file; of the answer of a JSON-RPC call, its result.
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
	raw, err := io.ReadAll(io.LimitReader(in, proof.MaxDocument+1))
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

// why says what each kind of link rests on.
var why = map[string]string{
	"finality":    "It could be wrong only if more than a third of these validators broke the rules.",
	"state":       "A state with anything else there has another root: this is BLAKE2b and nothing to be believed.",
	"output":      "A log with anything else there has another super-peak: this is Keccak and nothing to be believed.",
	"commitment":  "JAM ran the service's code to write this. That the code writes what it executed is the rollup's promise: it is public.",
	"transaction": "A block with another transaction there has another transactions root: this is Ethereum's trie.",
}

func countZero(keys []proof.ValidatorKey) (n int) {
	for _, key := range keys {
		if key.IsZero() {
			n++
		}
	}
	return n
}

// explain checks the document and says why each link holds. The error is that of the first that does not.
func explain(w io.Writer, q *question, trust *proof.Trust, raw []byte) error {
	fingerprint, err := trust.Fingerprint()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "You trust the %d validators of set %d, and service %d as the rollup's.\n", len(trust.Validators), trust.Set, trust.Service)
	if punished := countZero(trust.Validators); punished != 0 {
		fmt.Fprintf(w, "   JAM has punished %d of them: they count in the set, and they cannot vote.\n", punished)
	}
	fmt.Fprintf(w, "   The fingerprint of that is %s: compare it with what others say.\n", fingerprint)
	if q.trust == "" {
		fmt.Fprintln(w, "   You have it from the node that makes the proof: unless you compare, this shows only that the node does not contradict itself.")
	}
	d, err := proof.Parse(raw)
	if err != nil {
		return err
	}
	if q.tx != nil && *q.tx != d.Claim.Transaction {
		return fmt.Errorf("%w: it is about %s, and you asked for %s", proof.ErrTransaction, d.Claim.Transaction, *q.tx)
	}
	result, err := d.Verify(trust)
	for i, step := range result.Steps {
		link, _, _ := strings.Cut(step, ":")
		fmt.Fprintf(w, "%d. %s.\n   %s\n", i+1, step, why[link])
	}
	if err != nil {
		return fmt.Errorf("link %d does not hold: %w", len(result.Steps)+1, err)
	}
	fmt.Fprintf(w, "\nFINAL: transaction %s, in rollup block %d\n", result.Transaction.Hash(), result.Commitment.Number)
	return nil
}
