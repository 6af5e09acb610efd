package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/wait"
)

func TestNotesBecomeFinal(t *testing.T) {
	ctx := wait.Context(t)
	var out strings.Builder
	require.NoError(t, run(ctx, &out, "", 100*time.Millisecond))
	require.Contains(t, out.String(), "10 notes made, 5 spent, all of it final")
	require.Contains(t, out.String(), "bad-txns-orchard-duplicate-nullifier")
}

// sample is a transaction of two actions.
func sample(first byte) *transaction {
	t := &transaction{Actions: make([]action, 2), Flags: flagSpends | flagOutputs, ValueBalance: -12_345_678_901, Proof: make([]byte, proofSize+2*proofPerAction)}
	for i := range t.Actions {
		t.Actions[i].Nullifier = bytes32{first, byte(i)}
		t.Actions[i].CMX = bytes32{first, byte(i), 1}
		t.Actions[i].SpendAuthSig[63] = first
	}
	return t
}

func TestMalformedTransactions(t *testing.T) {
	good := sample(1).encode()
	tx, err := decodeTransaction(good)
	require.NoError(t, err)
	require.Equal(t, good, tx.encode())
	for i := range len(good) {
		_, err := decodeTransaction(good[:i])
		require.ErrorIs(t, err, errMalformed)
	}
	_, err = decodeTransaction(append(good, 0))
	require.ErrorIs(t, err, errMalformed)
	twice := sample(1)
	twice.Actions[1].Nullifier = twice.Actions[0].Nullifier
	require.ErrorIs(t, testNode(t).add(t.Context(), twice), errDoubleSpend)
}

func FuzzDecodeBlock(f *testing.F) {
	b := &block{Height: 1, Transactions: []*transaction{sample(1)}}
	f.Add(b.encode())
	f.Fuzz(func(t *testing.T, raw []byte) {
		if b, err := decodeBlock(raw); err == nil {
			require.Equal(t, raw, b.encode())
		}
	})
}
