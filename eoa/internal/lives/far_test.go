package lives

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
)

// Far returns the answers of the served chain, including the price of blobs, or
// an error if the chain has none.
func TestFar(t *testing.T) {
	ctx := context.Background()
	near := eoatest.New(7, 1, 2)
	near.SetBlobFee(99)
	near.Mine()
	served := httptest.NewServer(Handler(near))
	defer served.Close()
	want, err := near.LookBlobs(ctx, common.Address{1})
	require.NoError(t, err)
	got, err := Far(served.URL).LookBlobs(ctx, common.Address{1})
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.EqualValues(t, 99, got.BlobFee.Uint64())
	plain := httptest.NewServer(Handler(struct{ eoa.Chain }{near}))
	defer plain.Close()
	_, err = Far(plain.URL).LookBlobs(ctx, common.Address{1})
	require.Error(t, err)
	got, err = Far(plain.URL).Look(ctx, common.Address{1})
	require.NoError(t, err)
	require.EqualValues(t, 1, got.Number)
}
