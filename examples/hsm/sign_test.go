//go:build cgo

package main

import (
	"context"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/jamq/jamq/eoa/kms"
)

// signAll signs n transactions at once, and requires that each is of the key.
func signAll(t *testing.T, key kms.Key, n int) {
	t.Helper()
	const chainID = 7
	signer, err := kms.New(chainID, key)
	require.NoError(t, err)
	from := signer.Addresses()[0]
	var group errgroup.Group
	for i := range n {
		group.Go(func() error {
			tx := types.NewTx(&types.DynamicFeeTx{ChainID: big.NewInt(chainID), Nonce: uint64(i), Gas: 21_000, To: &from})
			_, err := signer.Sign(context.Background(), from, tx)
			return err
		})
	}
	require.NoError(t, group.Wait())
}
