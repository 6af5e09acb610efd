package far

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa/eoatest"
)

// Chain returns the answers of the served chain.
func TestChain(t *testing.T) {
	near := eoatest.New(7, 1, 2)
	near.SetBlobFee(99)
	near.Mine()
	served := httptest.NewServer(Handler(near))
	defer served.Close()
	want, err := near.Look(context.Background(), common.Address{1})
	require.NoError(t, err)
	got, err := Chain(served.URL).Look(context.Background(), common.Address{1})
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.EqualValues(t, 1, got.Number)
	require.EqualValues(t, 99, got.BlobFee.Uint64())
}
