// Command verify answers a user's question: is my transaction final, and why should I believe it? It checks a document of package
// canonical/proof, with no network and no node:
//
//	curl -s -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"jam_getFinalityProof","params":["0x…"]}' 127.0.0.1:8545 > proof.json
//	go run ./examples/verify -trust trust.json -tx 0x… proof.json
//
// The trust is a file with what you believe beforehand: JAM's validators, the rollup's service. To try things out, jam_getTrust of the
// reference node makes one; who means it gets it from somebody else than who made the proof. Both files may be what curl has printed.
//
// The exit status is 0 for a proof that holds, 1 for one that does not, 2 for a wrong use.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ethereum/go-ethereum/common"

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
	trust, document string
	tx              *common.Hash // nil: whatever the document is about
}

func parse(args []string, stderr io.Writer) (*question, error) {
	q := &question{}
	fs := flag.NewFlagSet("verify", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&q.trust, "trust", "", "file with the validators and the service that you trust")
	fs.Func("tx", "hash of your transaction; without it, the proof is of whatever it says", func(text string) error {
		q.tx = new(common.Hash)
		return q.tx.UnmarshalText([]byte(text))
	})
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if q.trust == "" || fs.NArg() != 1 {
		return nil, errors.New("want -trust FILE, and one file with a proof, or - for the standard input")
	}
	q.document = fs.Arg(0)
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
		trust, err = q.readTrust()
	}
	if err == nil {
		document, err = read(q.document, stdin)
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

func (q *question) readTrust() (*proof.Trust, error) {
	raw, err := read(q.trust, nil)
	if err != nil {
		return nil, err
	}
	return proof.ParseTrust(raw)
}

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
		return nil, fmt.Errorf("%s: the node knows no such transaction in a block", name)
	}
	return answer.Result, nil
}

// why says what each kind of link rests on.
var why = map[string]string{
	"finality":    "It could be wrong only if more than a third of these validators broke the rules and can be shown to have done so.",
	"state":       "A state with anything else there has another root: this is BLAKE2b and nothing to be believed.",
	"output":      "A log with anything else there has another super-peak: this is Keccak and nothing to be believed.",
	"commitment":  "JAM ran the service's code to write this. That the code writes what it executed is the rollup's promise: it is public.",
	"transaction": "A block with another transaction there has another transactions root: this is Ethereum's trie.",
}

// explain checks the document and says why each link holds. The error is that of the first that does not.
func explain(w io.Writer, q *question, trust *proof.Trust, raw []byte) error {
	fingerprint, err := trust.Fingerprint()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "You trust the %d validators of set %d, and service %d as the rollup's.\n", len(trust.Validators), trust.Set, trust.Service)
	fmt.Fprintf(w, "   The fingerprint of that is %s: compare it with what others say.\n", fingerprint)
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
