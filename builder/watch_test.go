package builder_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/words"
)

// watch calls f with each effect of a builder until it stops.
func watch(ctx context.Context, watch func(context.Context, uint64, func([]builder.Event, canonical.Heads) error) error, f func(bundlequeue.Effect)) {
	_ = watch(ctx, 0, func(events []builder.Event, _ canonical.Heads) error {
		for _, e := range events {
			f(e.Effect)
		}
		return nil
	})
}

var errEnough = errors.New("enough")

// TestWatch: a reader gets each event once, in order, and sees each block become final. Another
// reader, which begins later, gets the same events, and so does one after a restart. None of them
// has the bytes of a block or a package.
func TestWatch(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		read := func(ctx context.Context, b *builder.Builder[words.Body], after uint64, until func(canonical.Heads) bool) (all []builder.Event) {
			t.Helper()
			err := b.Watch(ctx, after, func(events []builder.Event, heads canonical.Heads) error {
				all = append(all, events...)
				if until(heads) {
					return errEnough
				}
				return nil
			})
			require.ErrorIs(t, err, errEnough)
			for i, e := range all {
				require.Equal(t, after+uint64(i)+1, e.Number)
				require.False(t, e.At.After(time.Now()))
				switch e := e.Effect.(type) {
				case bundlequeue.Build:
					require.Nil(t, e.Bundle)
				case bundlequeue.Send:
					require.Nil(t, e.Bundle)
				}
			}
			return all
		}
		var whole []builder.Event
		m.run(new(words.Saving), func(ctx context.Context, b *builder.Builder[words.Body]) {
			for _, word := range []string{"one", "two", "three", "four", "five"} {
				require.NoError(t, b.Submit(ctx, []byte(word)))
			}
			whole = read(ctx, b, 0, final(2))
			synctest.Wait()
			last := read(ctx, b, 0, func(canonical.Heads) bool { return true })
			require.Equal(t, whole, last[:len(whole)])
			require.Equal(t, last[3:], read(ctx, b, 3, func(canonical.Heads) bool { return true }))
			whole = last
		})
		states := make(map[uint64]bundlequeue.State)
		for _, e := range whole {
			if c, ok := e.Effect.(bundlequeue.Changed); ok {
				if from, seen := states[c.Number]; seen {
					require.Equal(t, from, c.From)
				}
				states[c.Number] = c.To
			}
		}
		require.Equal(t, bundlequeue.Finalized, states[1])
		require.Equal(t, bundlequeue.Finalized, states[2])
		m.run(new(words.Saving), func(ctx context.Context, b *builder.Builder[words.Body]) {
			again := read(ctx, b, 0, func(canonical.Heads) bool { return true })
			require.GreaterOrEqual(t, len(again), len(whole))
			require.Equal(t, whole, again[:len(whole)])
			// A reader that is as far as the builder is called once, and then waits.
			calls := 0
			limited, stop := context.WithTimeout(ctx, time.Millisecond)
			defer stop()
			err := b.Watch(limited, again[len(again)-1].Number, func([]builder.Event, canonical.Heads) error { calls++; return nil })
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, 1, calls)
		})
	})
}

// TestWatchAfterACheckpoint: the numbers of events go on after a restart from a checkpoint, and a
// reader sees the gap. A builder that stops ends its readers with the error of Run.
func TestWatchAfterACheckpoint(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		m.cfg.CheckpointEvery = 5
		var last uint64
		m.run(new(words.Saving), func(ctx context.Context, b *builder.Builder[words.Body]) {
			submit(ctx, t, b, 1, "one")
			submit(ctx, t, b, 2, "two")
			time.Sleep(time.Hour) // steps go on, and so do checkpoints
			_ = b.Watch(ctx, 0, func(events []builder.Event, _ canonical.Heads) error {
				last = events[len(events)-1].Number
				return errEnough
			})
		})
		ended := make(chan error, 1)
		m.run(new(words.Saving), func(ctx context.Context, b *builder.Builder[words.Body]) {
			var first uint64
			go func() {
				ended <- b.Watch(context.Background(), 0, func(events []builder.Event, _ canonical.Heads) error {
					if first == 0 && len(events) > 0 {
						first = events[0].Number
					}
					return nil
				})
			}()
			submit(ctx, t, b, 3, "three")
			synctest.Wait()
			require.Greater(t, first, uint64(1))
			require.LessOrEqual(t, first, last+1)
		})
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

// TestWatchEnds: a reader that is slower than the events ends with its context, although there
// always are more of them.
func TestWatchEnds(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		slot := jamq.Tiny().SlotDuration
		m.run(new(words.Rollup), func(ctx context.Context, b *builder.Builder[words.Body]) {
			var user sync.WaitGroup
			defer user.Wait()
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			user.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					_ = b.Submit(ctx, fmt.Append(nil, i))
					time.Sleep(slot / 4)
				}
			})
			limited, cancel := context.WithTimeout(ctx, 10*slot)
			defer cancel()
			late := 0
			err := b.Watch(limited, 0, func([]builder.Event, canonical.Heads) error {
				if limited.Err() != nil {
					late++
				}
				if late > 1 {
					return errEnough
				}
				time.Sleep(5 * slot)
				return nil
			})
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	})
}
