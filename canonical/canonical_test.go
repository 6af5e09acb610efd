package canonical_test

import (
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/canonical"
)

func head(n uint64) canonical.Head {
	return canonical.Head{Number: n, Hash: common.Hash{byte(n), 1}, Root: common.Hash{byte(n), 2}}
}

func executed(t require.TestingT, upTo uint64) *canonical.Tracker {
	tr := canonical.New(head(0))
	for n := uint64(1); n <= upTo; n++ {
		require.NoError(t, tr.Executed(head(n)))
	}
	return tr
}

// Eleven blocks accumulate out of order; only three commits are needed.
func ExampleTracker_Accumulate() {
	tr := canonical.New(head(0))
	for n := uint64(1); n <= 11; n++ {
		if err := tr.Executed(head(n)); err != nil {
			panic(err)
		}
	}
	for _, n := range []uint64{2, 3, 5, 4, 7, 6, 1, 8, 10, 11, 9} {
		before := tr.Heads().Latest
		latest, err := tr.Accumulate(canonical.Item{Number: n})
		if err != nil {
			panic(err)
		}
		if latest != before {
			fmt.Println("commit", latest.Number)
		}
	}
	// Output:
	// commit 7
	// commit 8
	// commit 11
}

// A failed block must not freeze the head: its number is used again.
func TestFail(t *testing.T) {
	tr := executed(t, 5)
	for _, n := range []uint64{1, 2, 4} {
		_, err := tr.Accumulate(canonical.Item{Number: n})
		require.NoError(t, err)
	}
	_, _, err := tr.Finalized(canonical.Item{Number: 1})
	require.NoError(t, err)
	_, err = tr.Fail(canonical.Item{Number: 1})
	require.ErrorIs(t, err, canonical.ErrFinal)
	_, err = tr.Fail(canonical.Item{Number: 6})
	require.ErrorIs(t, err, canonical.ErrUnknownBlock)
	undone, err := tr.Fail(canonical.Item{Number: 3})
	require.NoError(t, err)
	require.Equal(t, []canonical.Head{head(3), head(4), head(5)}, undone)
	require.Equal(t, head(2), tr.Heads().Pending)
	require.ErrorIs(t, tr.Executed(head(4)), canonical.ErrNotNext)
	require.NoError(t, tr.Executed(canonical.Head{Number: 3, Hash: common.Hash{99}}))
	latest, err := tr.Accumulate(canonical.Item{Number: 3})
	require.NoError(t, err)
	require.Equal(t, common.Hash{99}, latest.Hash)
}

// The tracker keeps no block before the newest final one.
func TestFinalBlocksAreForgotten(t *testing.T) {
	tr := canonical.New(head(0))
	for n := uint64(1); n <= 6; n++ {
		require.NoError(t, tr.Executed(head(n)))
		_, _, err := tr.Finalized(canonical.Item{Number: n})
		require.NoError(t, err)
	}
	_, err := tr.Accumulate(canonical.Item{Number: 5})
	require.ErrorIs(t, err, canonical.ErrUnknownBlock)
	_, err = tr.Accumulate(canonical.Item{Number: 6})
	require.NoError(t, err)
	_, moved, err := tr.Finalized(canonical.Item{Number: 1})
	require.NoError(t, err)
	require.False(t, moved, "old news")
}
