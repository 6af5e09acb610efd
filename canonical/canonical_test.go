package canonical_test

import (
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

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
func ExampleTracker_Accumulated() {
	tr := canonical.New(head(0), 100)
	for n := uint64(1); n <= 11; n++ {
		if err := tr.Executed(head(n)); err != nil {
			panic(err)
		}
	}
	for _, n := range []uint64{2, 3, 5, 4, 7, 6, 1, 8, 10, 11, 9} {
		latest, moved, err := tr.Accumulated(n, true)
		if err != nil {
			panic(err)
		}
		if moved {
			fmt.Println("commit", latest.Number)
		}
	}
	// Output:
	// commit 7
	// commit 8
	// commit 11
}

// C1: under any events the heads are those of the naive definition; latest never runs past a hole, finalized never moves back.
func TestC1Contiguous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 8
		tr := executed(t, n)
		accumulated, final := map[uint64]bool{}, map[uint64]bool{}
		last := uint64(0)
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			number := rapid.Uint64Range(1, n).Draw(t, "number")
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0, 1:
				_, _, err := tr.Accumulated(number, true)
				require.NoError(t, err)
				accumulated[number] = true
			case 2:
				_, _, err := tr.Accumulated(number, false)
				if final[number] {
					require.ErrorIs(t, err, canonical.ErrFinal)
				} else {
					require.NoError(t, err)
					accumulated[number] = false
				}
			case 3:
				_, _, err := tr.Finalized(number)
				require.NoError(t, err)
				accumulated[number], final[number] = true, true
			}
			run := func(in map[uint64]bool) (top uint64) {
				for in[top+1] {
					top++
				}
				return top
			}
			heads := tr.Heads()
			require.Equal(t, run(accumulated), heads.Latest.Number)
			require.Equal(t, run(final), heads.Finalized.Number)
			require.GreaterOrEqual(t, heads.Finalized.Number, last)
			require.Equal(t, uint64(n), heads.Pending.Number)
			last = heads.Finalized.Number
		}
	})
}

// A failed block must not freeze the head: its number is used again.
func TestFail(t *testing.T) {
	tr := executed(t, 5)
	for _, n := range []uint64{1, 2, 4} {
		_, _, err := tr.Accumulated(n, true)
		require.NoError(t, err)
	}
	_, _, err := tr.Finalized(1)
	require.NoError(t, err)
	require.ErrorIs(t, tr.Fail(1), canonical.ErrFinal)
	require.ErrorIs(t, tr.Fail(6), canonical.ErrUnknownBlock)
	require.NoError(t, tr.Fail(3))
	require.Equal(t, uint64(2), tr.Heads().Pending.Number)
	require.ErrorIs(t, tr.Executed(head(4)), canonical.ErrNotNext)
	require.NoError(t, tr.Executed(canonical.Head{Number: 3, Hash: common.Hash{99}}))
	latest, moved, err := tr.Accumulated(3, true)
	require.NoError(t, err)
	require.True(t, moved)
	require.Equal(t, common.Hash{99}, latest.Hash)
}

func TestRetention(t *testing.T) {
	tr := canonical.New(head(0), 2)
	for n := uint64(1); n <= 6; n++ {
		require.NoError(t, tr.Executed(head(n)))
		_, _, err := tr.Finalized(n)
		require.NoError(t, err)
	}
	_, err := tr.Resolve(canonical.Number(3))
	require.ErrorIs(t, err, canonical.ErrUnknownBlock)
	for _, n := range []uint64{0, 4, 5, 6} {
		got, err := tr.Resolve(canonical.Number(n))
		require.NoError(t, err)
		require.Equal(t, head(n), got)
	}
	_, moved, err := tr.Finalized(1)
	require.NoError(t, err)
	require.False(t, moved, "old news")
}

func TestTags(t *testing.T) {
	tr := executed(t, 3)
	_, _, err := tr.Accumulated(1, true)
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
