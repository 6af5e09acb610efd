package repeat

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTimes: all repetitions, or an eighth of them under the race detector, but
// never none.
func TestTimes(t *testing.T) {
	require.Equal(t, 1, Times(1))
	require.Equal(t, 64, Times(64)*Step())
}
