package jam

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest/jip2server"
)

// A node that begins again reads the packages that its service has received since, and not
// those of its final blocks, which can be millions.
func TestPackagesOfFinalBlocksAreNotReadAgain(t *testing.T) {
	count, reads := uint64(5), 0
	var taken []byte
	r := &Remote{
		Read:  3,
		taken: func(payload []byte) { taken = append(taken, payload...) },
		value: func(_ context.Context, _ jamq.HeaderHash, key []byte) ([]byte, error) {
			if reads++; bytes.Equal(key, jip2server.CountKey()) {
				return binary.LittleEndian.AppendUint64(nil, count), nil
			}
			for i := range count {
				if bytes.Equal(key, jip2server.EntryKey(i)) {
					return append(make([]byte, 32), byte(i)), nil
				}
			}
			return nil, nil
		},
	}
	require.NoError(t, r.readService(t.Context(), jamq.HeaderHash{}))
	require.Equal(t, []byte{3, 4}, taken)
	require.Equal(t, 3, reads)
	count = 6
	require.NoError(t, r.readService(t.Context(), jamq.HeaderHash{}))
	require.Equal(t, []byte{3, 4, 5}, taken)
}
