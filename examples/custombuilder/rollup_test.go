package main

import (
	"io"
	"log"
	"testing"

	"github.com/ethereum/go-ethereum/rlp"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/buildertest"
)

// TestRollup: the rollup keeps the rules of package builder.
func TestRollup(t *testing.T) {
	buildertest.Run(t, buildertest.Case[batch]{
		New: func() builder.Rollup[batch] {
			r, err := newRollup(log.New(io.Discard, "", 0))
			require.NoError(t, err)
			return r
		},
		Operation: func(i int) []byte {
			op, err := transaction(i)
			require.NoError(t, err)
			return op
		},
		OwnOrder: true,
		Executed: func(payload []byte) (ops [][]byte) {
			var b batch
			require.NoError(t, rlp.DecodeBytes(payload, &b))
			for _, tx := range b {
				op, err := tx.MarshalBinary()
				require.NoError(t, err)
				ops = append(ops, op)
			}
			return ops
		},
	})
}
