package txpool

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// An underpriced transaction is one that pays less than the floor or than the
// transaction that it would replace. It is no spam, and a transaction that loses
// against others in a full pool is neither.
func TestUnderpriced(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, func(c *Config) { c.MaxPending, c.MinGasPrice = 2, 2*gwei })
	add(t, p, tx(0, 0, 3), tx(1, 0, 4))
	for name, x := range map[string]struct {
		err, is     error
		underpriced bool
	}{
		"below the floor":       {p.Add(tx(2, 0, 1)), ErrUnderpriced, true},
		"replacement":           {p.Add(capped(0, 0, 3, 4)), ErrReplaceUnderpriced, true},
		"worst of a full pool":  {p.Add(tx(2, 0, 2)), ErrUnderpriced, false},
		"known":                 {p.Add(tx(0, 0, 3)), ErrAlreadyKnown, false},
		"invalid":               {p.Add(sign(2, signedWithTooLittleGas(0))), ErrIntrinsicGas, false},
		"wrapped by the caller": {fmt.Errorf("send: %w", ErrReplaceUnderpriced), ErrReplaceUnderpriced, true},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, x.err, x.is)
			require.Equal(t, x.underpriced, Underpriced(x.err))
			require.False(t, x.underpriced && Spam(x.err))
		})
	}
	require.False(t, Underpriced(nil))
}
