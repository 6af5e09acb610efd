package statedb

import (
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
)

// The test vectors of BLAKE3's authors: bytes 0, 1, 2, …; the key of the keyed ones is theirs.
func TestBLAKE3(t *testing.T) {
	var input [64]byte
	for i := range input {
		input[i] = byte(i)
	}
	keyed := blake3FromKey([32]byte([]byte("whats the Elvish word for friend")))
	for _, c := range []struct {
		key  blake3Key
		n    int
		want string
	}{
		{blake3Plain, 0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
		{blake3Plain, 1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
		{blake3Plain, 64, "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98"},
		{keyed, 0, "92b2b75604ed3c761f9d6f62392c8a9227ad0ea3f09573e783f1498a4ed60d26"},
		{keyed, 64, "ba8ced36f327700d213f120b1a207a3b8c04330528586f414d09f2f7d9ccb7e6"},
	} {
		got := c.key.sum(input[:c.n])
		require.Equal(t, c.want, hex.EncodeToString(got[:]), "%d bytes, keyed: %v", c.n, c.key == keyed)
	}
}

// A slot from 0xff00… on must not be in the account's header, although 256^31 +
// slot has 33 bytes.
func TestSlotWrapDoesNotAliasTheHeader(t *testing.T) {
	p := EIP7864()
	a := common.Address{1}
	seen := map[Key]string{p.BasicDataKey(a): "basic data", p.CodeHashKey(a): "code hash"}
	for _, slot := range []common.Hash{
		{}, {31: 63}, {31: 64}, {30: 1}, {0: 0xff}, {0: 0xff, 31: 1}, {0: 0xff, 31: 64}, {0: 0xfe}, {0: 1}, {0: 0xff, 30: 1},
	} {
		k := p.StorageKey(a, slot)
		require.Empty(t, seen[k], "slot %s", slot)
		seen[k] = slot.Hex()
	}
	for n := range uint32(300) {
		k := p.CodeChunkKey(a, n)
		require.Empty(t, seen[k], "chunk %d", n)
		seen[k] = fmt.Sprint("chunk ", n)
	}
	// Its purpose: a contract that writes such a slot leaves its account as it was.
	v := open(t, NewStore(p))
	require.NoError(t, v.SetAccount(a, Account{Nonce: 5}))
	v.SetStorage(a, common.Hash{0: 0xff}, common.Hash{31: 0xff})
	v.SetStorage(a, common.Hash{0: 0xff, 31: 1}, common.Hash{31: 0xff})
	require.Equal(t, uint64(5), v.Account(a).Nonce)
	require.True(t, v.Account(a).Balance.IsZero())
}

// The same state has a different root under each profile. Its keys are equal
// only under equal embeddings.
func TestProfilesDiffer(t *testing.T) {
	roots, keys := map[common.Hash]string{}, map[Key]string{}
	for _, p := range profiles() {
		v := open(t, NewStore(p))
		require.NoError(t, v.SetAccount(common.Address{1}, Account{Nonce: 1}))
		root := commit(t, v)
		require.Empty(t, roots[root], p.Name)
		roots[root] = p.Name
		k := p.BasicDataKey(common.Address{1})
		require.Empty(t, keys[k], p.Name)
		keys[k] = p.Name
	}
}

// Zero is stored, or deletes, as the profile says.
func TestZeroWrites(t *testing.T) {
	for _, p := range profiles() {
		v := open(t, NewStore(p))
		a, slot := common.Address{1}, common.Hash{30: 1}
		v.SetStorage(a, slot, common.Hash{1})
		commit(t, v)
		v.SetStorage(a, slot, common.Hash{})
		root := commit(t, v)
		_, there := v.Get(p.StorageKey(a, slot))
		require.Equal(t, !p.ZeroDeletes, there, p.Name)
		require.Equal(t, p.ZeroDeletes, root == EmptyRoot, p.Name)
		require.Equal(t, common.Hash{}, v.Storage(a, slot))
	}
}

func profiles() []Profile { return []Profile{EIP7864(), BLAKE3(), Tagged()} }

var sink common.Hash

func BenchmarkInnerHash(b *testing.B) {
	for _, p := range profiles() {
		b.Run(p.Name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				sink = p.Inner(sink, sink)
			}
		})
	}
}
