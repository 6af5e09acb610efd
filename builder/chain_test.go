package builder

import (
	"log/slog"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/bundlequeue"
)

// enqueued adds a block to a chain, as a step of the queue does.
func enqueued(c *chain, root byte) block {
	parent, serial, _ := c.parent()
	b := block{Number: parent.Number + 1, PreRoot: parent.Root, Root: common.Hash{root}, Body: "body", serial: serial}
	b.raw = []byte("body")
	commit(&b, parent.commitment)
	c.follow(time.Time{}, &b, nil)
	return b
}

func changed(b block, from, to bundlequeue.State) []bundlequeue.Effect {
	return []bundlequeue.Effect{bundlequeue.Changed{Number: b.Number, Commitment: b.commitment, From: from, To: to}}
}

// tasks takes all tasks of a chain.
func tasks(c *chain) (all []task) {
	for t, some := c.next(); some; t, some = c.next() {
		all = append(all, task{kind: t.kind, block: block{Number: t.block.Number}})
		c.done()
	}
	return all
}

// finals takes the numbers of the blocks that are final.
func finals(c *chain) (all []uint64) {
	for b, some := c.nextFinal(); some; b, some = c.nextFinal() {
		all = append(all, b.Number)
		c.finished()
	}
	return all
}

func numbered(kind taskKind, numbers ...uint64) (all []task) {
	for _, n := range numbers {
		all = append(all, task{kind: kind, block: block{Number: n}})
	}
	return all
}

// TestCheckpointOfAChain: a chain that is restored from its checkpoint has the same heads, also
// behind a gap, and goes on in the same way.
func TestCheckpointOfAChain(t *testing.T) {
	c := &chain{log: slog.New(slog.DiscardHandler)}
	c.begin(genesis(0, common.Hash{1}), 0)
	one, two, three, four := enqueued(c, 2), enqueued(c, 3), enqueued(c, 4), enqueued(c, 5)
	for _, b := range []block{one, three} {
		c.follow(time.Time{}, nil, changed(b, bundlequeue.Guaranteed, bundlequeue.Accumulated))
		c.follow(time.Time{}, nil, changed(b, bundlequeue.Accumulated, bundlequeue.Finalized))
	}
	c.follow(time.Time{}, nil, changed(two, bundlequeue.Guaranteed, bundlequeue.Accumulated))
	require.Zero(t, c.heads().Pending.Number, "the rollup has applied nothing")
	require.Equal(t, numbered(apply, 1, 2, 3, 4), tasks(c))
	require.Equal(t, []uint64{1}, finals(c))
	heads := c.heads()
	require.Equal(t, []uint64{1, 3, 4}, []uint64{heads.Finalized.Number, heads.Latest.Number, heads.Pending.Number})

	again := &chain{log: c.log}
	require.Equal(t, four.Root, again.restore(c.checkpoint()))
	require.Equal(t, heads, again.heads())
	for _, c := range []*chain{c, again} {
		_, serial, _ := c.parent()
		require.EqualValues(t, 5, serial)
		c.follow(time.Time{}, nil, changed(two, bundlequeue.Accumulated, bundlequeue.Finalized))
		require.EqualValues(t, 3, c.heads().Finalized.Number, "the gap is closed")
		require.Equal(t, []uint64{2, 3}, finals(c))
	}
}

// TestFailedBlocks: a failed block is undone with all later ones, newest first. Later effects of
// the queue about them change nothing.
func TestFailedBlocks(t *testing.T) {
	c := &chain{log: slog.New(slog.DiscardHandler)}
	c.begin(genesis(0, common.Hash{1}), 0)
	one, two := enqueued(c, 2), enqueued(c, 3)
	tasks(c)
	failed := func(b block) bundlequeue.Effect {
		return bundlequeue.Failed{Number: b.Number, Commitment: b.commitment}
	}
	require.True(t, c.follow(time.Time{}, nil, []bundlequeue.Effect{failed(one), failed(two)}))
	undone, _ := c.next()
	require.Equal(t, []any{undo, uint64(2)}, []any{undone.kind, undone.block.Number})
	require.EqualValues(t, 2, c.heads().Pending.Number, "its operations do not wait again yet")
	c.done()
	require.EqualValues(t, 1, c.heads().Pending.Number)
	require.Equal(t, numbered(undo, 1), tasks(c))
	require.Zero(t, c.heads().Pending.Number)
	again := enqueued(c, 2)
	tasks(c)
	require.NotEqual(t, one.commitment, again.commitment, "an execution for itself")
	require.False(t, c.follow(time.Time{}, nil, append(changed(one, bundlequeue.Guaranteed, bundlequeue.Accumulated), failed(one))))
	require.EqualValues(t, 1, c.heads().Pending.Number)
	require.Zero(t, c.heads().Latest.Number)
}
