package main

import (
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
		require.NoError(t, n.builder.Submit(t.Context(), sample(i).encode()))
	}
	one, two := extend(t, n.rollup), extend(t, n.rollup)
	require.NoError(t, n.builder.Submit(t.Context(), sample(99).encode()))
	require.ErrorIs(t, n.builder.Submit(t.Context(), sample(0).encode()), errDoubleSpend)
	require.NoError(t, n.Undo(t.Context(), two))
	require.NoError(t, n.Undo(t.Context(), one))
	require.ErrorIs(t, n.builder.Submit(t.Context(), sample(0).encode()), errDoubleSpend)
	require.Len(t, n.waiting, 2*perBlock+1)
	require.Equal(t, one.Body.Transactions, n.waiting[:perBlock])
	require.Empty(t, n.state.spent)
	again := extend(t, n.rollup)
	require.Equal(t, one.Root, again.Root)
	require.Equal(t, one.Body.Transactions, again.Body.Transactions)
}

// TestRivalIsRefused: a transaction whose note another one spends is refused, whether the other one
// waits or is in a block.
func TestRivalIsRefused(t *testing.T) {
	r := newRollup()
	require.NoError(t, r.Admit(t.Context(), operation(5).encode()))
	require.ErrorIs(t, r.Admit(t.Context(), operation(6).encode()), errDoubleSpend)
	extend(t, r)
	require.ErrorIs(t, r.Admit(t.Context(), operation(6).encode()), errDoubleSpend)
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

// TestRollup: the rollup keeps the rules of package builder, also with transactions that spend the
// notes of others.
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
		Operations: operations,
	})
}
