package redisstore

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
)

// All keys of an account have the same hash tag: what is between the first pair of braces.
func TestOneSlotPerAccount(t *testing.T) {
	k, err := For("jamq", eoa.Account{ChainID: 4359, Address: common.Address{1}})
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, key := range []string{k.Pending(), k.Borrowed(), k.Submitted(), k.Recycled(), k.Nonce(), k.Lease(), k.Record(7), k.Record(70), k.ByHash(common.Hash{1}), k.ByKey("{x}")} {
		require.Contains(t, key, "jamq:{4359:0x0100000000000000000000000000000000000000}:")
		require.False(t, seen[key], key)
		seen[key] = true
	}
	_, err = For("a{b", eoa.Account{})
	require.Error(t, err)
}
