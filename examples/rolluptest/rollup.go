// Package rolluptest shows how to test the logic of a rollup against all faults
// of a JAM chain: lost packages, skipped slots, forks, reorgs, and blocks that
// fail and come back. rollup.go is the logic, a toy bank. rollup_test.go is the
// subject of this example.
//
//	go test ./examples/rolluptest -v
package rolluptest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ErrOverdrawn is returned if the sender has less than the amount.
var ErrOverdrawn = errors.New("rolluptest: overdrawn")

// Transfer is a transaction.
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
func (l Ledger) Root() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(l)) {
		fmt.Fprintf(h, "%q %d\n", name, l[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Block is a rollup block: the content of a bundle, and the payload that the
// rollup's service receives.
type Block struct {
	Number            uint64
	PreRoot, PostRoot string
	Transfers         []Transfer
}

// Rollup executes transfers in blocks, ahead of the JAM chain.
type Rollup struct {
	genesis Ledger
	blocks  []Block    // from block 1 on
	waiting []Transfer // in order of arrival
	refused []Transfer
}

// NewRollup returns a rollup that begins with a state.
func NewRollup(genesis Ledger) *Rollup { return &Rollup{genesis: maps.Clone(genesis)} }

// Submit adds a user's transfer.
func (r *Rollup) Submit(t Transfer) { r.waiting = append(r.waiting, t) }

// State returns the state after all blocks.
func (r *Rollup) State() Ledger {
	state := maps.Clone(r.genesis)
	for _, b := range r.blocks {
		for _, t := range b.Transfers {
			if err := state.Apply(t); err != nil {
				panic(err) // it was executed before
			}
		}
	}
	return state
}

// Seal executes at most n waiting transfers and returns the block. It returns
// false if there are none.
func (r *Rollup) Seal(n int) (Block, bool) {
	state := r.State()
	b := Block{Number: uint64(len(r.blocks)) + 1, PreRoot: state.Root()}
	for len(r.waiting) > 0 && len(b.Transfers) < n {
		t := r.waiting[0]
		r.waiting = r.waiting[1:]
		if state.Apply(t) != nil {
			r.refused = append(r.refused, t)
			continue
		}
		b.Transfers = append(b.Transfers, t)
	}
	if len(b.Transfers) == 0 {
		return Block{}, false
	}
	b.PostRoot = state.Root()
	r.blocks = append(r.blocks, b)
	return b, true
}

// TakeBack undoes a block whose bundle has failed, and all later blocks. Their
// transfers are the first to be executed again.
func (r *Rollup) TakeBack(b Block) {
	last := len(r.blocks) - 1
	for last >= 0 && r.blocks[last].Number >= b.Number { // later bundles fail too
		r.waiting = append(slices.Clone(r.blocks[last].Transfers), r.waiting...)
		last--
	}
	r.blocks = r.blocks[:last+1]
}
