package account_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/jamq/jamq/eoa/blobs"
	"github.com/jamq/jamq/eoa/internal/account"
)

// An attempt that was signed under one setting is sent in the form of the
// other, with new proofs.
func TestWire(t *testing.T) {

	blobs := [][]byte{make([]byte, account.BlobSize)}
	forms := map[bool][]byte{}
	for _, cells := range []bool{false, true} {
		var err error
		forms[cells], err = account.Prove(blobs, cells)
		require.NoError(t, err)
		require.Len(t, forms[cells], map[bool]int{false: 2 * 48, true: 129 * 48}[cells])
	}
	for cells := range forms {
		o := account.Outgoing{Raw: []byte{3, 0xc0}, Blobs: blobs, Proofs: forms[cells]}
		want, err := o.Wire(cells)
		require.NoError(t, err)
		o.Proofs = forms[!cells]
		got, err := o.Wire(cells)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := (&account.Outgoing{Raw: []byte{3, 0xc0}, Blobs: [][]byte{{1}}}).Wire(false)
	require.ErrorIs(t, err, account.ErrInvalidRequest)
	raw, err := (&account.Outgoing{Blobs: blobs}).Wire(false)
	require.NoError(t, err)
	require.Empty(t, raw)
}
