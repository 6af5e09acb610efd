package pglog_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/pglog"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/internal/words"
)

// TestTakeOver: a builder loses the lead in the middle of its work, and stops. The next one goes on
// with its log: every operation that was accepted is executed, and none twice.
func TestTakeOver(t *testing.T) {
	url, name := database(t)
	cfg := quick(url, name)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	network, err := simnet.Tiny(50*time.Millisecond, 7, nil)
	require.NoError(t, err)
	go func() { _ = network.Run(ctx, nil) }()
	start := func(l *pglog.Log) (*words.Saving, *builder.Builder[words.Body], chan error) {
		rollup := new(words.Saving)
		config := builder.DefaultConfig(network.Spec())
		config.CheckpointEvery = 20
		b, err := builder.Open(ctx, config, l, builder.Rollup[words.Body](rollup), network)
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- b.Run(ctx) }()
		return rollup, b, ended
	}

	_, first, ended := start(open(t, cfg))
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
	require.NoError(t, first.Await(ctx, func(h canonical.Heads) bool { return h.Finalized.Number >= 1 }))
	second := stolen(t, cfg)
	require.ErrorIs(t, <-ended, pglog.ErrFenced)
	require.ErrorIs(t, submit(first, 1), builder.ErrLog)

	rollup, next, _ := start(second)
	require.NoError(t, submit(next, 30))
	require.NoError(t, next.Drain(ctx, func() bool { return len(rollup.Waiting()) > 0 }))
	have := rollup.State()
	slices.Sort(have)
	slices.Sort(accepted)
	require.Equal(t, accepted, have)
}
