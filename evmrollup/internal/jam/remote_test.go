package jam

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit/codec"
)

// A node that begins again reads the blocks that its service has applied since, and not its final
// ones, which can be millions.
func TestEntriesOfFinalBlocksAreNotReadAgain(t *testing.T) {
	storage := service.Storage{}
	apply := func(number uint64) {
		c := proof.Commitment{Number: number}
		storage[string(service.CountKey())] = binary.LittleEndian.AppendUint64(nil, number)
		storage[string(proof.CommitmentKey([]byte(service.CommitmentPrefix), number))] = c.Encode()
		storage[string(service.EntryKey(number-1))] = append(make([]byte, 32), service.EncodeHeader(c)...)
	}
	for number := range uint64(5) {
		apply(number + 1)
	}
	reads := 0
	var taken []uint64
	r := &Remote{
		Read: 3,
		taken: func(header []byte) {
			c, err := service.DecodeHeader(header)
			require.NoError(t, err)
			taken = append(taken, c.Number)
		},
		value: func(_ context.Context, _ jamq.HeaderHash, key []byte) ([]byte, error) {
			reads++
			return storage[string(key)], nil
		},
	}
	require.NoError(t, r.readService(t.Context(), jamq.HeaderHash{}))
	require.Equal(t, []uint64{4, 5}, taken)
	require.Equal(t, 4, reads)
	apply(6)
	require.NoError(t, r.readService(t.Context(), jamq.HeaderHash{}))
	require.Equal(t, []uint64{4, 5, 6}, taken)
}

// The gas of a package suffices for all blocks that may wait for it, so that a package never fails
// again and again.
func TestGasOfPackages(t *testing.T) {
	for _, version := range []codec.Version{codec.V072, codec.V080} {
		pack, err := packages(7, version)
		require.NoError(t, err)
		require.EqualValues(t, service.AccumulateGas, pack(nil).Items[0].AccumulateGas)
	}
}
