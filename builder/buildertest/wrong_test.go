package buildertest_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/buildertest"
	"github.com/jamq/jamq/internal/words"
)

// TestWrongRollupsAreFound: rollups that passed earlier kits are found within 50 seeds.
func TestWrongRollupsAreFound(t *testing.T) {
	for name, fault := range map[string]struct {
		rollup  func() builder.Rollup[words.Body]
		problem string
	}{
		"Undo puts operations last":                    {func() builder.Rollup[words.Body] { return new(last) }, "must wait before all others"},
		"Admit refuses all but one":                    {func() builder.Rollup[words.Body] { return new(once) }, "little is tested"},
		"reports as dropped what it ran":               {func() builder.Rollup[words.Body] { return new(liar) }, "a final block has executed"},
		"forgets an index if a block takes everything": {func() builder.Rollup[words.Body] { return new(careless) }, ""},
		"replays a change as if it were new":           {func() builder.Rollup[words.Body] { return new(strict) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := rules(fault.rollup)
			c.Operation = ofAccounts
			c.Dropped = func(r builder.Rollup[words.Body]) [][]byte {
				if l, ok := r.(*liar); ok {
					return l.dropped()
				}
				return nil
			}
			seed, problem := buildertest.Find(t, c, 50)
			require.Error(t, problem)
			require.ErrorContains(t, problem, fault.problem)
			t.Logf("seed %d: %.200v", seed, problem)
		})
	}
}

// ofAccounts returns operations of three accounts, each with its nonce.
func ofAccounts(i int) []byte {
	const accounts = 3
	return fmt.Appendf(nil, "%c %d", 'a'+i%accounts, i/accounts)
}

// strict refuses an operation if the earlier nonce of its account is missing. It does so in
// ReplayChange too, although the earlier ones can be in the checkpoint only.
type strict struct {
	words.Saving
	mu   sync.Mutex
	next map[byte]int // nonce of each account
}

// Admit implements builder.Rollup.
func (r *strict) Admit(ctx context.Context, op []byte) error {
	nonce, err := strconv.Atoi(string(op[2:]))
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch next := r.next[op[0]]; {
	case nonce < next:
		return nil
	case nonce > next:
		return words.ErrWord
	}
	if r.next == nil {
		r.next = make(map[byte]int)
	}
	r.next[op[0]]++
	return r.Saving.Admit(ctx, op)
}

// ReplayChange implements builder.Operations.
func (r *strict) ReplayChange(ctx context.Context, change []byte) error { return r.Admit(ctx, change) }

// last lets the words of an undone block wait after all others.
type last struct{ words.Rollup }

// Undo implements builder.Rollup.
func (r *last) Undo(ctx context.Context, b builder.Block[words.Body]) error {
	if err := r.Rollup.Undo(ctx, b); err != nil {
		return err
	}
	for _, word := range b.Body {
		r.Forget(word)
		r.Wait(word)
	}
	return nil
}

// once refuses all words but one.
type once struct{ words.Rollup }

// Admit implements builder.Operations.
func (o *once) Admit(ctx context.Context, op []byte) error {
	if string(op) != "a 0" {
		return words.ErrWord
	}
	return o.Rollup.Admit(ctx, op)
}

// liar reports a word as dropped that it has executed.
type liar struct{ words.Rollup }

func (r *liar) dropped() (all [][]byte) {
	for _, word := range r.State() {
		if word == "a 1" {
			all = append(all, []byte(word))
		}
	}
	return all
}

// careless remembers the words that it knows, and Undo forgets to remove them if no other word
// waits, so that it does not admit them again.
type careless struct {
	words.Rollup
	mu    sync.Mutex
	index []string
}

// Admit implements builder.Rollup.
func (r *careless) Admit(ctx context.Context, op []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.index, string(op)) {
		return nil
	}
	if err := r.Rollup.Admit(ctx, op); err != nil {
		return err
	}
	r.index = append(r.index, string(op))
	return nil
}

// Undo implements builder.Rollup. A block that took everything takes its words with it.
func (r *careless) Undo(ctx context.Context, b builder.Block[words.Body]) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.Waiting()) > 0 {
		return r.Rollup.Undo(ctx, b)
	}
	err := r.Rollup.Undo(ctx, b)
	for _, word := range b.Body[1:] {
		r.Forget(word)
	}
	return err
}
