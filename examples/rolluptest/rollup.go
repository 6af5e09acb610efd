// Package rolluptest shows how to test the logic of a rollup against all faults of a
// JAM chain, and against a builder that is killed. rollup.go is the logic, a toy bank.
// rollup_test.go is the subject of this example.
//
//	go test ./examples/rolluptest -v
package rolluptest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/builder"
)

// ErrOverdrawn is returned if the sender has less than the amount.
var ErrOverdrawn = errors.New("rolluptest: overdrawn")

// Transfer is an operation. No two have the same ID.
type Transfer struct {
	ID       string
	From, To string
	Amount   uint64
}

// Ledger is the state: the balance of each account.
type Ledger map[string]uint64

// Apply executes a transfer. The error wraps ErrOverdrawn and changes nothing.
func (l Ledger) Apply(t Transfer) error {
	if l[t.From] < t.Amount {
		return fmt.Errorf("%w: %s has %d, want %d", ErrOverdrawn, t.From, l[t.From], t.Amount)
	}
	l[t.From] -= t.Amount
	l[t.To] += t.Amount
	return nil
}

// Root returns a hash of the state.
func (l Ledger) Root() common.Hash {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(l)) {
		fmt.Fprintf(h, "%q %d\n", name, l[name])
	}
	return common.Hash(h.Sum(nil))
}

// Block is the body of a rollup block: the transfers, in their order.
type Block []Transfer

// Bank is the rollup. It implements builder.Rollup.
type Bank struct {
	builder.List                 // the transfers that wait, in JSON
	mu           sync.Mutex      // Admit is called concurrently with the others
	states       []Ledger        // after each block, the genesis first
	executed     map[string]bool // by the ID of a transfer
}

// NewBank returns a rollup that begins with a state.
func NewBank(genesis Ledger) *Bank {
	return &Bank{states: []Ledger{maps.Clone(genesis)}, executed: make(map[string]bool)}
}

// State returns the newest state.
func (b *Bank) State() Ledger {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.newest())
}

func (b *Bank) newest() Ledger { return b.states[len(b.states)-1] }

func decode(op []byte) (t Transfer, err error) {
	err = json.Unmarshal(op, &t)
	return t, err
}

func encode(t Transfer) []byte {
	raw, err := json.Marshal(t)
	if err != nil {
		panic(err) // impossible for strings and numbers
	}
	return raw
}

func (block Block) operations() (ops [][]byte) {
	for _, t := range block {
		ops = append(ops, encode(t))
	}
	return ops
}

// Admit implements builder.Operations. A user who has not received the answer sends the transfer
// again.
func (b *Bank) Admit(ctx context.Context, op []byte) error {
	t, err := decode(op)
	if err != nil {
		return fmt.Errorf("a transfer: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.executed[t.ID] {
		return nil
	}
	return b.List.Admit(ctx, encode(t))
}

// Propose implements builder.Rollup. A block has up to three transfers. Those that
// cannot run wait: a block that comes back may make them possible.
func (b *Bank) Propose(context.Context, uint64) (Block, common.Hash, error) {
	const most = 3
	b.mu.Lock()
	defer b.mu.Unlock()
	state, block := maps.Clone(b.newest()), Block{}
	for _, op := range b.Waiting() {
		t, err := decode(op)
		if err != nil {
			return nil, common.Hash{}, err
		}
		if len(block) < most && state.Apply(t) == nil {
			block = append(block, t)
		}
	}
	if len(block) == 0 {
		return nil, common.Hash{}, builder.ErrIdle
	}
	return block, state.Root(), nil
}

// Apply implements builder.Rollup.
func (b *Bank) Apply(_ context.Context, block builder.Block[Block]) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	state := maps.Clone(b.newest())
	for _, t := range block.Body {
		if err := state.Apply(t); err != nil {
			return err
		}
		b.executed[t.ID] = true
	}
	b.states = append(b.states, state)
	b.Executed(block.Body.operations()...)
	return nil
}

// Undo implements builder.Rollup.
func (b *Bank) Undo(_ context.Context, block builder.Block[Block]) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.states = b.states[:len(b.states)-1]
	for _, t := range block.Body {
		delete(b.executed, t.ID)
	}
	b.Returned(block.Body.operations()...)
	return nil
}

// Root implements builder.Rollup.
func (b *Bank) Root() common.Hash { return b.State().Root() }

// Payload implements builder.Rollup.
func (b *Bank) Payload(_ context.Context, block builder.Block[Block]) ([]byte, error) {
	return json.Marshal(block.Body)
}
