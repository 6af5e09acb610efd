package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/buildertest"
)

// extend lets a rollup execute its next block.
func extend(t *testing.T, r *rollup) builder.Block[*block] {
	body, root, err := r.Propose(t.Context(), r.tip().Height+1)
	require.NoError(t, err)
	b := builder.Block[*block]{Number: body.Height, Root: root, Body: body}
	require.NoError(t, r.Apply(t.Context(), b))
	require.Equal(t, root, r.Root())
	return b
}

// A block that fails comes back: its transactions wait again, before those that came later, and
// their notes are unspent.
func TestFailedBlockComesBack(t *testing.T) {
	n := testNode(t)
	for i := range byte(2 * perBlock) {
		require.NoError(t, n.add(t.Context(), sample(i)))
	}
	one, two := extend(t, n.rollup), extend(t, n.rollup)
	require.NoError(t, n.add(t.Context(), sample(99)))
	require.ErrorIs(t, n.add(t.Context(), sample(0)), errDoubleSpend)
	require.NoError(t, n.Undo(t.Context(), two))
	require.NoError(t, n.Undo(t.Context(), one))
	require.ErrorIs(t, n.add(t.Context(), sample(0)), errDoubleSpend)
	require.Len(t, n.waiting, 2*perBlock+1)
	require.Equal(t, one.Body.Transactions, n.waiting[:perBlock])
	require.Empty(t, n.state.spent)
	again := extend(t, n.rollup)
	require.Equal(t, one.Root, again.Root)
	require.Equal(t, one.Body.Transactions, again.Body.Transactions)
}

// TestRivalIsDropped: a transaction whose note was spent meanwhile does not wait forever.
func TestRivalIsDropped(t *testing.T) {
	r := newRollup()
	require.NoError(t, r.Admit(t.Context(), operation(5).encode()))
	extend(t, r)
	require.NoError(t, r.Admit(t.Context(), operation(6).encode()))
	_, _, err := r.Propose(t.Context(), 2)
	require.ErrorIs(t, err, builder.ErrIdle)
	require.Empty(t, r.waiting)
}

// operation is a transaction of one action. Each seventh one spends the note of the one before.
func operation(i int) *transaction {
	t := &transaction{Actions: make([]action, 1), Proof: make([]byte, proofSize+proofPerAction)}
	t.Actions[0].Nullifier[0], t.Actions[0].CMX[0] = byte(i), byte(i)
	if i%7 == 6 {
		t.Actions[0].Nullifier[0]--
	}
	return t
}

func encodeAll(all []*transaction) (encoded [][]byte) {
	for _, t := range all {
		encoded = append(encoded, t.encode())
	}
	return encoded
}

// dropped returns those of the first n operations that a rollup has dropped, because another
// transaction has spent their note.
func dropped(r *rollup, n int) (rivals []*transaction) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := slices.Clone(r.waiting)
	for _, b := range r.blocks {
		kept = append(kept, b.Transactions...)
	}
	for i := range n {
		t := operation(i)
		same := func(other *transaction) bool { return other.id() == t.id() }
		if !slices.ContainsFunc(kept, same) && r.state.check(t) != nil {
			rivals = append(rivals, t)
		}
	}
	return rivals
}

// TestRollup: the rollup keeps the rules of package builder, also with transactions that spend the
// notes of others, which Check refuses unless they come at the same time.
func TestRollup(t *testing.T) {
	const operations = 30
	buildertest.Run(t, buildertest.Case[*block]{
		New:       func() builder.Rollup[*block] { return newRollup() },
		Operation: func(i int) []byte { return operation(i).encode() },
		Executed: func(payload []byte) [][]byte {
			b, err := decodeBlock(payload)
			require.NoError(t, err)
			return encodeAll(b.Transactions)
		},
		Dropped:    func(r builder.Rollup[*block]) [][]byte { return encodeAll(dropped(r.(*rollup), operations)) },
		Operations: operations,
	})
}
