package account

import (
	"testing"
	"time"

	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

func TestPolicyValidate(t *testing.T) {
	p := DefaultRules().Fees
	require.NoError(t, p.Validate())
	for field, change := range map[string]func(*FeePolicy){
		"StallTimeout": func(p *FeePolicy) { p.StallTimeout = 0 },
		"BumpPercent":  func(p *FeePolicy) { p.BumpPercent = 9 },
	} {
		p := DefaultRules().Fees
		change(&p)
		require.ErrorIs(t, p.Validate(), ErrInvalidConfig)
		require.ErrorContains(t, p.Validate(), field)
	}
}

func TestPolicyBacksOff(t *testing.T) {
	p := DefaultRules().Fees
	require.Equal(t, 5*time.Minute, p.due(-1))
	require.Equal(t, 5*time.Minute, p.due(0))
	require.Equal(t, 20*time.Minute, p.due(2))
	require.Equal(t, 320*time.Minute, p.due(1000))
	p.StallTimeout = 1 << 62
	require.Positive(t, p.due(5))
}

// The lower limit applies; nil is no limit.
func TestPolicyLimits(t *testing.T) {
	old := Fees{Cap: *uint256.NewInt(100), Tip: *uint256.NewInt(10)}
	for _, c := range []struct {
		policy, request *uint256.Int
		ok              bool
	}{
		{nil, nil, true}, {uint256.NewInt(120), nil, true}, {nil, uint256.NewInt(120), true}, {uint256.NewInt(120), uint256.NewInt(120), true},
		{uint256.NewInt(109), uint256.NewInt(120), false}, {uint256.NewInt(120), uint256.NewInt(109), false}, {nil, uint256.NewInt(109), false},
	} {
		p := DefaultRules().Fees
		p.MaxFee = c.policy
		fees, err := old.bump(nil, p.BumpPercent, p.limits(limits{Fee: c.request}))
		if !c.ok {
			require.ErrorIs(t, err, errFeeCap)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, Fees{Cap: *uint256.NewInt(120), Tip: *uint256.NewInt(12)}, fees)
	}
}

// A replacement that the policy's percentage would carry above the limit offers
// the limit, as long as nodes take that as a replacement.
func TestReplacementAtTheLimit(t *testing.T) {
	p := DefaultRules().Fees
	old := Fees{Cap: *uint256.NewInt(90), Tip: *uint256.NewInt(10)}
	for limit, want := range map[uint64]uint64{108: 108, 100: 100, 99: 99, 98: 0, 200: 108} {
		fees, err := old.bump(nil, p.BumpPercent, p.limits(limits{Fee: uint256.NewInt(limit)}))
		require.Equal(t, want == 0, err != nil, "%d: %v", limit, err)
		require.Equal(t, want, fees.Cap.Uint64(), limit)
	}
}
