package statedb

import (
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
)

// A slot from 0xff00… on must not be in the account's header, although 256^31 +
// slot has 33 bytes.
func TestSlotWrapDoesNotAliasTheHeader(t *testing.T) {
	a := common.Address{1}
	seen := map[Key]string{basicDataKey(a): "basic data", codeHashKey(a): "code hash"}
	for _, slot := range []common.Hash{
		{}, {31: 63}, {31: 64}, {30: 1}, {0: 0xff}, {0: 0xff, 31: 1}, {0: 0xff, 31: 64}, {0: 0xfe}, {0: 1}, {0: 0xff, 30: 1},
	} {
		k := storageKey(a, slot)
		require.Empty(t, seen[k], "slot %s", slot)
		seen[k] = slot.Hex()
	}
	for n := range uint32(300) {
		k := codeChunkKey(a, n)
		require.Empty(t, seen[k], "chunk %d", n)
		seen[k] = fmt.Sprint("chunk ", n)
	}
	// Its purpose: a contract that writes such a slot leaves its account as it was.
	v := open(t, NewStore())
	require.NoError(t, v.SetAccount(a, Account{Nonce: 5}))
	v.SetStorage(a, common.Hash{0: 0xff}, common.Hash{31: 0xff})
	v.SetStorage(a, common.Hash{0: 0xff, 31: 1}, common.Hash{31: 0xff})
	require.Equal(t, uint64(5), v.Account(a).Nonce)
	require.True(t, v.Account(a).Balance.IsZero())
}

// Zero is stored like other values.
func TestZeroWrites(t *testing.T) {
	v := open(t, NewStore())
	a, slot := common.Address{1}, common.Hash{30: 1}
	v.SetStorage(a, slot, common.Hash{1})
	commit(t, v)
	v.SetStorage(a, slot, common.Hash{})
	root := commit(t, v)
	_, there := v.Get(storageKey(a, slot))
	require.True(t, there)
	require.NotEqual(t, EmptyRoot, root)
	require.Equal(t, common.Hash{}, v.Storage(a, slot))
}

var sink common.Hash

func BenchmarkInnerHash(b *testing.B) {
	b.ReportAllocs()
	for range b.N {
		sink = hasher.Inner(sink, sink)
	}
}
