package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/evmrollup/stateproof"
)

// gather reads the trust and the document from files or from a node.
func (q *question) gather(stdin io.Reader) (trust *proof.Trust, document []byte, err error) {
	raw, err := q.read(q.trust, nil, "jam_getTrust")
	if err != nil {
		return nil, nil, err
	}
	if trust, err = proof.ParseTrust(raw); err != nil {
		return nil, nil, err
	}
	switch {
	case q.account != nil:
		document, err = q.read(q.document, stdin, "jam_getAccountProof", q.account, q.slots)
	case q.receipt:
		document, err = q.read(q.document, stdin, "jam_getReceiptProof", q.tx)
	default:
		document, err = q.read(q.document, stdin, "jam_getFinalityProof", q.tx)
	}
	return trust, document, err
}

// read returns the content of a file or, if its name is empty, the answer of the node to a call.
// The file may be the output of curl for that call. The name "-" stands for stdin.
func (q *question) read(name string, stdin io.Reader, method string, args ...any) (raw []byte, err error) {
	if name == "" {
		return q.ask(method, args...)
	}
	if name != "-" || stdin == nil {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		stdin = file
	}
	raw, err = io.ReadAll(io.LimitReader(stdin, stateproof.MaxFinal+1))
	var answer struct {
		JSONRPC string
		Result  json.RawMessage
		Error   *struct{ Message string }
	}
	switch {
	case err != nil || json.Unmarshal(raw, &answer) != nil || answer.JSONRPC == "":
		return raw, err
	case answer.Error != nil:
		return nil, fmt.Errorf("%s: the node answered: %s", name, answer.Error.Message)
	}
	return known(answer.Result)
}

// ask returns the node's answer to a call.
func (q *question) ask(method string, args ...any) (answer json.RawMessage, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client, err := rpc.DialContext(ctx, q.node)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := client.CallContext(ctx, &answer, method, args...); err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	return known(answer)
}

// known returns an answer, or an error if the node has none.
func known(answer json.RawMessage) ([]byte, error) {
	if text := string(answer); text == "" || text == "null" {
		return nil, errors.New("the node has no block with this transaction")
	}
	return answer, nil
}

// follow leads the trust to later validator sets: by the files of the question, or by the answers
// of the node up to the set that has signed the document. It prints each set, and saves the
// trust in the last one if the question wants that.
func (q *question) follow(w io.Writer, trust *proof.Trust, d *proof.Document) (*proof.Trust, error) {
	last := uint64(0) // a hint for the node
	if d.Finality != nil {
		last = d.Finality.Precommit.Set
	}
	for files := q.handoffs; len(files) > 0 || q.node != "" && trust.Set < last; {
		name := ""
		if q.node == "" {
			name, files = files[0], files[1:]
		}
		raw, err := q.read(name, nil, "jam_getHandoff", hexutil.Uint64(trust.Set))
		if err != nil {
			return nil, err
		}
		handoff, err := proof.ParseHandoff(raw)
		if err != nil {
			return nil, err
		}
		if trust, err = handoff.Verify(trust); err != nil {
			return nil, fmt.Errorf("the next validator set is not proved: %w", err)
		}
		target := handoff.Finality.Precommit.Target
		fmt.Fprintf(w, "Set %d follows: the state after JAM block %s of slot %d, which the set before made final, names its %d validators.\n",
			trust.Set, target.Header, target.Slot, len(trust.Validators))
	}
	if q.save == "" {
		return trust, nil
	}
	raw, err := json.MarshalIndent(trust, "", "  ")
	if err == nil {
		err = os.WriteFile(q.save+".new", raw, 0o644)
	}
	if err != nil {
		return nil, err
	}
	return trust, os.Rename(q.save+".new", q.save) // in one step: the file may be the old trust
}
