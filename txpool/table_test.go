package txpool

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Property: the table is a map, even if the first eight bytes of keys are
// equal.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := newTable[common.Address, *account](addressPrefix)
		want := make(map[common.Address]*account)
		keys := rapid.Custom(func(t *rapid.T) common.Address {
			return common.Address{rapid.ByteRange(0, 2).Draw(t, "first"), 19: rapid.ByteRange(0, 2).Draw(t, "last")}
		})
		for range 30 {
			key := keys.Draw(t, "key")
			if old := want[key]; old != nil {
				table.remove(old)
				delete(want, key)
			} else {
				want[key] = &account{address: key}
				table.put(want[key])
			}
			other := keys.Draw(t, "other")
			if table.get(other) != want[other] || table.len() != len(want) {
				t.Fatalf("%v gives %p, want %p; length %d, want %d", other, table.get(other), want[other], table.len(), len(want))
			}
		}
		for address, a := range want {
			require.Same(t, a, table.get(address))
		}
	})
}
