package builder_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/builder"
)

// TestList: whatever happens to a list, its changes lead another list to the same operations, also
// if the other one begins with a checkpoint and gets the changes after it a second time.
func TestList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live, again, ctx := new(builder.List), new(builder.List), t.Context()
		var blocks [][][]byte // executed, newest last
		replay := func(changes [][]byte) {
			for _, change := range changes {
				require.NoError(t, again.ReplayChange(ctx, change))
			}
		}
		same := func() {
			require.Equal(t, texts(live.Waiting()), texts(again.Waiting()))
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1:
				op := fmt.Append(nil, rapid.IntRange(0, 9).Draw(t, "op"))
				if !slices.Contains(texts(slices.Concat(blocks...)), string(op)) {
					before := texts(live.Waiting())
					require.NoError(t, live.Admit(ctx, op))
					require.Subset(t, texts(live.Waiting()), append(before, string(op)))
				}
			case 2: // a block takes some
				replay(live.TakeChanges())
				waiting := live.Waiting()
				block := waiting[:rapid.IntRange(0, len(waiting)).Draw(t, "size")]
				live.Executed(block...)
				again.Executed(block...)
				blocks = append(blocks, block)
			case 3: // the newest one fails
				replay(live.TakeChanges())
				if n := len(blocks); n > 0 {
					live.Returned(blocks[n-1]...)
					again.Returned(blocks[n-1]...)
					require.Equal(t, texts(blocks[n-1]), texts(live.Waiting())[:len(blocks[n-1])], "they come first")
					blocks = blocks[:n-1]
				}
			case 4:
				if waiting := live.Waiting(); len(waiting) > 0 {
					op := waiting[rapid.IntRange(0, len(waiting)-1).Draw(t, "dropped")]
					live.Drop(op)
					require.NotContains(t, texts(live.Waiting()), string(op))
				}
			}
		}
		late := live.TakeChanges()
		replay(late)
		same()
		again = new(builder.List)
		replay(live.Records())
		same()
		require.Empty(t, again.TakeChanges())
	})
}

// TestListTakesChangesTwice: a checkpoint can have changes that the log gets after it. They change
// nothing.
func TestListTakesChangesTwice(t *testing.T) {
	l, again := new(builder.List), new(builder.List)
	for _, op := range []string{"one", "two", "one"} {
		require.NoError(t, l.Admit(t.Context(), []byte(op)))
	}
	l.Drop([]byte("two"))
	l.Drop([]byte("three"))
	changes := l.TakeChanges()
	require.Len(t, changes, 3)
	for _, change := range append(l.Records(), changes...) {
		require.NoError(t, again.ReplayChange(t.Context(), change))
	}
	require.Equal(t, []string{"one"}, texts(again.Waiting()))
	for _, change := range [][]byte{nil, []byte("?")} {
		require.ErrorIs(t, again.ReplayChange(t.Context(), change), builder.ErrCorrupt)
	}
}

func texts(ops [][]byte) []string {
	all := []string{}
	for _, op := range ops {
		all = append(all, string(op))
	}
	return all
}
