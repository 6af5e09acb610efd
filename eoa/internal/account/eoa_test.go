package account

import (
	"testing"

	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTransitions(t *testing.T) {
	for s := range numStates {
		require.False(t, s.canBecome(s), "%v", s)
		if s.Terminal() {
			for next := range numStates {
				require.False(t, s.canBecome(next), "%v is terminal, and may become %v", s, next)
			}
			continue
		}
		require.NotEmpty(t, nextStates[s], "%v is a dead end", s)
	}
	require.True(t, Mined.canBecome(Broadcast), "a reorg")
	require.True(t, Broadcast.canBecome(Pending), "something else than a transaction used the nonce")
	require.False(t, Mined.canBecome(Pending))
	require.False(t, State(99).canBecome(Pending))
	require.Equal(t, "State(99)", State(99).String())
}

func TestZeroSendResultIsUnknown(t *testing.T) {
	var r SendResult
	require.Equal(t, "unknown", r.String())
}

// go-ethereum takes a replacement if both prices are 10 percent higher. A bump
// raises them by at least that, and never exceeds the limit.
func TestBumpReplaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) uint256.Int { return *uint256.NewInt(rapid.Uint64().Draw(t, name)) }
		old := Fees{Cap: draw("cap"), Tip: draw("tip")}
		if old.Cap.Lt(&old.Tip) {
			old.Cap, old.Tip = old.Tip, old.Cap
		}
		market := Fees{Cap: draw("market cap"), Tip: draw("market tip")}
		limit := new(uint256.Int).Lsh(uint256.NewInt(rapid.Uint64().Draw(t, "limit")), 8)
		bumped, err := old.bump(&market, rapid.Uint64Range(0, 50).Draw(t, "percent"), limits{Fee: limit})
		if err != nil {
			require.ErrorIs(t, err, errFeeCap)
			return
		}
		require.False(t, bumped.Cap.Lt(&bumped.Tip))
		for _, x := range [][2]uint256.Int{{old.Cap, bumped.Cap}, {old.Tip, bumped.Tip}} {
			least := new(uint256.Int).Mul(&x[0], uint256.NewInt(110))
			have := new(uint256.Int).Mul(&x[1], uint256.NewInt(100))
			require.False(t, have.Lt(least), "%v to %v", &x[0], &x[1])
			require.True(t, x[0].Lt(&x[1]))
			require.False(t, limit.Lt(&x[1]))
		}
	})
}
