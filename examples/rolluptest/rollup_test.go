package rolluptest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/buildertest"
)

// First the logic by itself: no chain is needed for that.
func TestTransfers(t *testing.T) {
	l := Ledger{"alice": 5}
	require.NoError(t, l.Apply(Transfer{From: "alice", To: "bob", Amount: 5}))
	require.ErrorIs(t, l.Apply(Transfer{From: "alice", To: "bob", Amount: 1}), ErrOverdrawn)
	require.Equal(t, Ledger{"alice": 0, "bob": 5}, l)
}

// Then all faults at once: of the network, of the chain, and of the builder's own process.
func TestEveryTransferOnce(t *testing.T) {
	buildertest.Run(t, buildertest.Case[Block]{
		New:       func() builder.Rollup[Block] { return NewBank(Ledger{"alice": 10, "bob": 10}) },
		Operation: transfer,
		Executed:  transfers,
	})
}

// transfer returns the i-th transfer between alice and bob.
func transfer(i int) []byte {
	names := []string{"alice", "bob"}
	return encode(Transfer{ID: fmt.Sprint(i), From: names[i%2], To: names[(i+1)%2], Amount: 3})
}

// transfers does with a payload what the rollup's service does: it returns the transfers.
func transfers(payload []byte) [][]byte {
	var block Block
	if err := json.Unmarshal(payload, &block); err != nil {
		panic(err) // Payload made it
	}
	return block.operations()
}
