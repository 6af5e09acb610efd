// Package words has the rollup of the tests of builder and buildertest. Its operations
// are words, and its state is the list of those that were executed.
package words

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit/codec"
)

// Body is the body of a block.
type Body []string

// Rollup implements builder.Rollup. The functions, if they are set, replace a part of
// it.
type Rollup struct {
	// Hash returns the root of a state.
	Hash func(state []string) common.Hash
	// Propose is called before each proposal, and Payload before each payload.
	BeforePropose, BeforePayload func(context.Context) error
	// BeforeAdmit is called before each operation is admitted.
	BeforeAdmit func(context.Context) error
	// Keeps is the number of words of a block that Undo forgets to remove, and Forgets
	// that it forgets to let them wait again.
	Keeps   int
	Forgets bool
	// Most is the number of words of a block, 3 if it is 0.
	Most int
	// Takes makes Propose take the words of the block out.
	Takes bool
	// Repeats makes Admit not recognize a word that waits or was executed.
	Repeats bool
	// Silent makes TakeChanges return nothing, and Forgetful makes ReplayChange not recognize a
	// word that waits.
	Silent, Forgetful bool

	mu             sync.Mutex // Admit and TakeChanges are called concurrently with the others
	state, waiting []string
	changes        [][]byte
	final          []uint64
}

// ErrWord is returned for an operation that is empty or not UTF-8, which JSON would change.
var ErrWord = errors.New("words: it is no word")

// Admit implements builder.Rollup.
func (r *Rollup) Admit(ctx context.Context, op []byte) error {
	if r.BeforeAdmit != nil {
		if err := r.BeforeAdmit(ctx); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(op) == 0 || !utf8.Valid(op) {
		return ErrWord
	}
	if word := string(op); r.Repeats || !r.knows(word) {
		r.waiting = append(r.waiting, word)
		r.changes = append(r.changes, op)
	}
	return nil
}

// knows reports whether a word waits or was executed. The caller holds r.mu.
func (r *Rollup) knows(word string) bool {
	return slices.Contains(r.waiting, word) || slices.Contains(r.state, word)
}

// TakeChanges implements builder.Operations. A change is the word that waits.
func (r *Rollup) TakeChanges() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	changes := r.changes
	if r.changes = nil; r.Silent {
		return nil
	}
	return changes
}

// ReplayChange implements builder.Operations.
func (r *Rollup) ReplayChange(_ context.Context, change []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if word := string(change); r.Forgetful || !r.knows(word) {
		r.waiting = append(r.waiting, word)
	}
	return nil
}

// Recovered implements builder.Operations.
func (*Rollup) Recovered(context.Context, func() error) error { return nil }

// Propose implements builder.Rollup.
func (r *Rollup) Propose(ctx context.Context, _ uint64) (Body, common.Hash, error) {
	most := cmp.Or(r.Most, 3)
	if r.BeforePropose != nil {
		if err := r.BeforePropose(ctx); err != nil {
			return nil, common.Hash{}, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		return nil, common.Hash{}, builder.ErrIdle
	}
	body := Body(slices.Clone(r.waiting[:min(most, len(r.waiting))]))
	if r.Takes {
		r.waiting = slices.Clone(r.waiting[len(body):])
	}
	return body, r.root(append(slices.Clone(r.state), body...)), nil
}

// Apply implements builder.Rollup.
func (r *Rollup) Apply(_ context.Context, b builder.Block[Body]) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = append(r.state, b.Body...)
	r.waiting = slices.DeleteFunc(r.waiting, func(word string) bool { return slices.Contains(b.Body, word) })
	return nil
}

// Undo implements builder.Rollup.
func (r *Rollup) Undo(_ context.Context, b builder.Block[Body]) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = r.state[:len(r.state)-max(len(b.Body)-r.Keeps, 0)]
	if !r.Forgets {
		r.waiting = append(slices.Clone([]string(b.Body)), r.waiting...)
	}
	return nil
}

// Root implements builder.Rollup.
func (r *Rollup) Root() common.Hash {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.root(r.state)
}

func (r *Rollup) root(state []string) common.Hash {
	if r.Hash != nil {
		return r.Hash(state)
	}
	return sha256.Sum256(fmt.Appendf(nil, "%q", state))
}

// Payload implements builder.Rollup.
func (r *Rollup) Payload(ctx context.Context, b builder.Block[Body]) ([]byte, error) {
	if r.BeforePayload != nil {
		if err := r.BeforePayload(ctx); err != nil {
			return nil, err
		}
	}
	return Payload(b)
}

// Payload returns the payload of a block: the header of package service, then its words as JSON.
func Payload(b builder.Block[Body]) ([]byte, error) {
	raw, err := json.Marshal(b.Body)
	header := service.EncodeHeader(proof.Commitment{Number: b.Number, Hash: sha256.Sum256(raw), PreRoot: b.PreRoot, PostRoot: b.Root})
	return append(header, raw...), err
}

// Signer signs the packages of the rollup.
var Signer = func() *service.Signer {
	s, err := service.NewSigner(codec.V072, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		panic(err) // the key is right
	}
	return s
}()

// Genesis returns the genesis state of a JAM chain with the service of the rollup. The service
// accepts packages of Signer.
func Genesis(id jamq.ServiceID) service.State {
	g, err := service.Genesis{Service: id, Block: proof.Commitment{PostRoot: new(Rollup).Root()}}.SignedBy(Signer)
	if err != nil {
		panic(err) // the version is known
	}
	entries, err := g.Entries()
	if err != nil {
		panic(err)
	}
	return entries
}

// Executed returns the words of a payload.
func Executed(payload []byte) (ops [][]byte) {
	var body Body
	if err := json.Unmarshal(payload[service.HeaderSize:], &body); err != nil {
		panic(err) // Payload made it
	}
	for _, word := range body {
		ops = append(ops, []byte(word))
	}
	return ops
}

// State returns the words that were executed.
func (r *Rollup) State() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.state)
}

// Waiting returns the words that wait.
func (r *Rollup) Waiting() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.waiting)
}

// Wait adds a word to those that wait, whatever the state.
func (r *Rollup) Wait(word string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, word)
}

// Forget removes a word that waits.
func (r *Rollup) Forget(word string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = slices.DeleteFunc(r.waiting, func(w string) bool { return w == word })
}

// Saving is a rollup that is a builder.Checkpointer and a builder.Finalizer.
type Saving struct {
	Rollup
	// BeforeCheckpoint is called before each checkpoint, if it is set. Made, if it is not
	// nil, is the next checkpoint.
	BeforeCheckpoint func() error
	Made             [][]byte
	// BeforeFinal is called before each Final, if it is set.
	BeforeFinal func() error
}

// Checkpoint implements builder.Checkpointer.
func (s *Saving) Checkpoint(context.Context) ([][]byte, error) {
	if s.BeforeCheckpoint != nil {
		if err := s.BeforeCheckpoint(); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if made := s.Made; made != nil {
		s.Made = nil
		return made, nil
	}
	raw, err := json.Marshal([2][]string{s.state, s.waiting})
	return [][]byte{raw}, err
}

// Restore implements builder.Checkpointer.
func (s *Saving) Restore(_ context.Context, records [][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var both [2][]string
	if err := json.Unmarshal(records[0], &both); err != nil {
		return err
	}
	s.state, s.waiting = both[0], both[1]
	return nil
}

// Final implements builder.Finalizer.
func (s *Saving) Final(_ context.Context, b builder.Block[Body]) error {
	if s.BeforeFinal != nil {
		if err := s.BeforeFinal(); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.final = append(s.final, b.Number)
	return nil
}

// Finals returns the numbers of the blocks that are final.
func (s *Saving) Finals() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.final)
}
