package canonical_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/canonical"
)

func head(n uint64) canonical.Head {
	return canonical.Head{Number: n, Hash: common.Hash{byte(n), 1}, Root: common.Hash{byte(n), 2}}
}

func executed(t require.TestingT, upTo uint64) *canonical.Tracker {
	tr := canonical.New(head(0), 1000)
	for n := uint64(1); n <= upTo; n++ {
		require.NoError(t, tr.Executed(head(n)))
	}
	return tr
}

// Eleven blocks accumulate out of order; only three commits are needed.
func ExampleTracker_Accumulate() {
	tr := canonical.New(head(0), 100)
	for n := uint64(1); n <= 11; n++ {
		if err := tr.Executed(head(n)); err != nil {
			panic(err)
		}
	}
	for _, n := range []uint64{2, 3, 5, 4, 7, 6, 1, 8, 10, 11, 9} {
		taken, err := tr.Accumulate(canonical.Item{Number: n})
		if err != nil {
			panic(err)
		}
		if taken.Moved {
			fmt.Println("commit", taken.Latest.Number)
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
	plan, err := tr.Fail(canonical.Item{Number: 3})
	require.NoError(t, err)
	require.Equal(t, canonical.Plan{On: head(2), Undone: []canonical.Head{head(3), head(4), head(5)}}, plan)
	require.Equal(t, uint64(2), tr.Heads().Pending.Number)
	require.ErrorIs(t, tr.Executed(head(4)), canonical.ErrNotNext)
	require.NoError(t, tr.Executed(canonical.Head{Number: 3, Hash: common.Hash{99}}))
	taken, err := tr.Accumulate(canonical.Item{Number: 3})
	require.NoError(t, err)
	require.True(t, taken.Moved)
	require.Equal(t, common.Hash{99}, taken.Latest.Hash)
}

func TestRetention(t *testing.T) {
	tr := canonical.New(head(0), 2)
	for n := uint64(1); n <= 6; n++ {
		require.NoError(t, tr.Executed(head(n)))
		_, _, err := tr.Finalized(canonical.Item{Number: n})
		require.NoError(t, err)
	}
	_, err := tr.Resolve(canonical.Number(3))
	require.ErrorIs(t, err, canonical.ErrUnknownBlock)
	for _, n := range []uint64{0, 4, 5, 6} {
		got, err := tr.Resolve(canonical.Number(n))
		require.NoError(t, err)
		require.Equal(t, head(n), got)
	}
	_, moved, err := tr.Finalized(canonical.Item{Number: 1})
	require.NoError(t, err)
	require.False(t, moved, "old news")
}

func TestTags(t *testing.T) {
	tr := executed(t, 3)
	_, err := tr.Accumulate(canonical.Item{Number: 1})
	require.NoError(t, err)
	for text, want := range map[string]uint64{"earliest": 0, "pending": 3, "latest": 1, "safe": 0, "finalized": 0, "0x2": 2} {
		tag, err := canonical.ParseTag(text)
		require.NoError(t, err)
		require.Equal(t, text, tag.String())
		got, err := tr.Resolve(tag)
		require.NoError(t, err)
		require.Equal(t, head(want), got)
	}
	for _, text := range []string{"", "newest", "12", "0x", "0x01", "0x-1", "0x10000000000000000"} {
		_, err := canonical.ParseTag(text)
		require.ErrorIs(t, err, canonical.ErrInvalidTag, text)
	}
}

// Whatever a user sends, it is refused or it is a tag that writes itself back.
func FuzzParseTag(f *testing.F) {
	f.Add("latest")
	f.Add("0x1f")
	f.Fuzz(func(t *testing.T, text string) {
		tag, err := canonical.ParseTag(text)
		if err == nil && !strings.EqualFold(tag.String(), text) {
			t.Fatalf("%q reads as %v", text, tag)
		}
	})
}
