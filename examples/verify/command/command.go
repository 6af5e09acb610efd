// Package command is the program verify without the process around it, so that a test
// can start it.
package command

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/evmrollup/stateproof"
)

// Exit codes.
const exitFinal, exitNotProved, exitUsage = 0, 1, 2

// question has the arguments of the command line.
type question struct {
	trust, document, node string
	tx                    common.Hash // zero: the transaction of the document
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
	fs.TextVar(&q.tx, "tx", q.tx, "`hash` of your transaction; empty: check the transaction that the proof names")
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
	handoff := func(name string) error { q.handoffs = append(q.handoffs, name); return nil }
	fs.Func("handoff", "`file` with the proof of the next validator set; repeat the flag for each set, in their order", handoff)
	fs.StringVar(&q.save, "save", "", "`file` to which the trust in the newest proved validator set is written")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	q.document = fs.Arg(0)
	switch {
	case q.account != nil && (q.tx != (common.Hash{}) || q.receipt):
		return nil, errors.New("-account cannot be used with -tx or -receipt")
	case q.account == nil && len(q.slots) > 0:
		return nil, errors.New("-slot needs -account")
	case q.node != "" && len(q.handoffs) > 0:
		return nil, errors.New("-handoff cannot be used with -node, which supplies them")
	case q.node != "" && (q.tx == (common.Hash{}) && q.account == nil || fs.NArg() != 0):
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
	check := q.checkTransaction
	if q.account != nil {
		check = q.checkAccount
	}
	if err := check(stdout, trust, document); err != nil {
		fmt.Fprintf(stdout, "\nNOT PROVED: %v\n", err)
		return exitNotProved
	}
	return exitFinal
}
