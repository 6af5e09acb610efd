package pebblestore

import (
	"bytes"
	"cmp"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/eoa"
)

func TestKeysSortAndParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := eoa.Account{ChainID: rapid.Uint64().Draw(t, "chain"), Address: common.Address{rapid.Byte().Draw(t, "address")}}
		kind := Kind(rapid.IntRange(int(ByID), int(numKinds)-1).Draw(t, "kind"))
		x, y := rapid.Uint64().Draw(t, "x"), rapid.Uint64().Draw(t, "y")
		require.Equal(t, cmp.Compare(x, y), bytes.Compare(Key(a, kind, x), Key(a, kind, y)))
		account, k, number, err := Parse(Key(a, kind, x))
		require.NoError(t, err)
		require.Equal(t, a, account)
		require.Equal(t, kind, k)
		require.Equal(t, x, number)
	})
}

func FuzzParse(f *testing.F) {
	f.Add(Key(eoa.Account{ChainID: 1}, ByNonce, 7))
	f.Fuzz(func(t *testing.T, key []byte) {
		a, kind, number, err := Parse(key)
		if err == nil && !bytes.Equal(Key(a, kind, number), key) {
			t.Fatal("parses, and encodes to other bytes")
		}
	})
}
