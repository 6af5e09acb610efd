package pglog_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/internal/wait"
	"github.com/jamq/jamq/internal/words"
	"github.com/jamq/jamq/journal"
)

// TestTakeOver: a builder follows another one, which loses the lead in the middle of its work, and
// stops. The follower goes on: every operation that was accepted is executed, and none twice.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	url, name := database(t)
	cfg := quick(url, name)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	network, err := simnet.Tiny(50*time.Millisecond, 7, nil)
	require.NoError(t, err)
	go func() { _ = network.Run(ctx, nil) }()
	start := func() (*words.Saving, *builder.Builder[words.Body], chan error) {
		rollup := new(words.Saving)
		config := builder.DefaultConfig(network.Spec())
		config.CheckpointEvery = 20
		b, err := builder.Open(ctx, config, open(t, cfg), builder.Rollup[words.Body](rollup), network)
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- b.Run(ctx) }()
		return rollup, b, ended
	}

	_, first, ended := start()
	rollup, second, _ := start()
	var accepted []string
	submit := func(b *builder.Builder[words.Body], n int) (err error) {
		for i := 0; i < n && err == nil; i++ {
			word := fmt.Sprint("word ", len(accepted))
			if err = b.Submit(ctx, []byte(word)); err == nil {
				accepted = append(accepted, word)
			}
		}
		return err
	}
	require.NoError(t, submit(first, 30))
	require.NoError(t, second.Await(ctx, func(h canonical.Heads) bool { return h.Finalized.Number >= 3 }), "it follows")
	require.ErrorIs(t, submit(second, 1), builder.ErrFollows)
	_, err = client(t, url).Exec(ctx, "update "+name+"_lease set free = true")
	require.NoError(t, err)
	require.ErrorIs(t, <-ended, journal.ErrFenced)
	require.ErrorIs(t, submit(first, 1), builder.ErrLog)

	wait.Until(t, func() bool { return submit(second, 1) == nil }, "the lead")
	require.NoError(t, submit(second, 30))
	require.NoError(t, second.Drain(ctx, func() bool { return len(rollup.Waiting()) > 0 }))
	have := rollup.State()
	slices.Sort(have)
	slices.Sort(accepted)
	require.Equal(t, accepted, have)
}
