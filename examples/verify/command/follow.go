package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/jamq/jamq/canonical/proof"
)

// follow leads the trust to later validator sets: by the files of the question, or by the answers
// of the node until the set is that of the document. It prints each set, and saves the trust in the
// last one if the question wants that.
func (q *question) follow(w io.Writer, trust *proof.Trust, document []byte) (*proof.Trust, error) {
	next := q.nextFile()
	if q.node != "" {
		next = q.nextAnswer(setOf(document))
	}
	for {
		raw, err := next(trust.Set)
		if errors.Is(err, errLast) {
			break
		}
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
	return trust, q.saveTrust(trust)
}

// errLast is returned if no further set is needed.
var errLast = errors.New("no further validator set")

// nextFile returns a function that reads the next file of the question.
func (q *question) nextFile() func(uint64) ([]byte, error) {
	rest := q.handoffs
	return func(uint64) ([]byte, error) {
		if len(rest) == 0 {
			return nil, errLast
		}
		name := rest[0]
		rest = rest[1:]
		return read(name, nil)
	}
}

// nextAnswer returns a function that asks the node for the handoff from a set, until the set is
// want.
func (q *question) nextAnswer(want uint64) func(uint64) ([]byte, error) {
	return func(set uint64) ([]byte, error) {
		if set >= want {
			return nil, errLast
		}
		return ask(q.node, "jam_getHandoff", hexutil.Uint64(set))
	}
}

// setOf returns the number of the validator set that signed a document, and 0 if the document does
// not name one. The number is a hint for the node and is not trusted.
func setOf(document []byte) uint64 {
	type signed struct {
		Finality struct{ Precommit struct{ Set uint64 } }
	}
	var d struct {
		signed
		Block signed
	}
	if json.Unmarshal(document, &d) != nil {
		return 0
	}
	return max(d.Finality.Precommit.Set, d.Block.Finality.Precommit.Set)
}

// saveTrust writes the trust to the file of the question, if it has one.
func (q *question) saveTrust(trust *proof.Trust) error {
	if q.save == "" {
		return nil
	}
	raw, err := json.MarshalIndent(trust, "", "  ")
	if err != nil {
		return err
	}
	// The file with this name may be the old trust, so it is replaced in one step.
	temporary := q.save + ".new"
	if err := os.WriteFile(temporary, raw, 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, q.save)
}
