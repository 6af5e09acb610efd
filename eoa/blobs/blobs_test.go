package blobs_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	_ "github.com/jamq/jamq/eoa/blobs"
)

// A program that imports this package can send blobs. The hash of a blob of zeros is
// that of the commitment to zero.
func TestBlobs(t *testing.T) {
	q := eoa.Request{Key: "a", Kind: eoa.Blob, To: &common.Address{1}, Blobs: [][]byte{make([]byte, eoa.BlobSize)}}
	require.NoError(t, q.Validate())
	hashes, err := q.BlobHashes()
	require.NoError(t, err)
	require.Equal(t, []common.Hash{common.HexToHash("0x010657f37554c781402a22917dee2f75def7ab966d7b770905398eba3c444014")}, hashes)
}
