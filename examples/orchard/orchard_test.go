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
	t := &transaction{Actions: make([]action, 2), Proof: make([]byte, proofSize+2*proofPerAction)}
	t.ValueBalance = -12_345_678_901
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
	for _, bad := range [][]byte{nil, good[:1], good[:len(good)-1], append(good, 0), make([]byte, 1<<20)} {
		_, err := decodeTransaction(bad)
		require.ErrorIs(t, err, errMalformed)
	}
	twice := sample(1)
	twice.Actions[1].Nullifier = twice.Actions[0].Nullifier
	require.ErrorIs(t, testNode(t).builder.Submit(t.Context(), twice.encode()), errDoubleSpend)
}

func FuzzDecodeBlock(f *testing.F) {
	b := &block{header: header{Height: 1}, Transactions: []*transaction{sample(1)}}
	b.Merkle = merkleRoot(b.Transactions)
	f.Add(b.encode())
	f.Fuzz(func(t *testing.T, raw []byte) {
		if b, err := decodeBlock(raw); err == nil {
			require.Equal(t, raw, b.encode())
		}
	})
}
