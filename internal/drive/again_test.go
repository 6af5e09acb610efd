package drive_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/drive"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/journal"
)

// lazy opens a runner whose builds fail, and collects its observations.
func lazy(t *testing.T, disk drive.Journal, told *[]submit.Observation) *drive.Runner {
	t.Helper()
	r := recovered(t, disk, told)
	require.NoError(t, r.Start(t.Context()))
	return r
}

// recovered does not start the runner.
func recovered(t *testing.T, disk drive.Journal, told *[]submit.Observation) *drive.Runner {
	t.Helper()
	r, err := openOn(disk, &host{failBuild: 1000}, func(c *submit.Config) {
		c.Observe = func(o submit.Observation) { *told = append(*told, o) }
	})
	require.NoError(t, err)
	return r
}

// After a restart, the runner reports only the effects of the last recorded step again. A
// bundle that was taken back before is not among them, although the journal
// still holds the steps.
func TestOnlyTheLastStepIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra()))
		ctx, disk := t.Context(), new(journal.Memory)
		var before, after []submit.Observation
		r := lazy(t, disk, &before)
		for range 3 {
			require.NoError(t, r.Enqueue(ctx, bundlequeue.Enqueue{Number: 1, Bundle: []byte("one")}))
			require.NoError(t, r.Step(ctx, bundlequeue.GiveUp{Number: 1}))
		}
		require.NoError(t, r.Step(ctx, bundlequeue.Reserve{Number: 1}))
		require.NoError(t, r.Step(ctx, bundlequeue.Release{Number: 1}))
		r.Stop()
		r = lazy(t, disk, &after)
		_, err := r.Stats(ctx)
		require.NoError(t, err)
		r.Stop()
		require.Len(t, after, 1)
		last := before[len(before)-1]
		require.Equal(t, "1v0 reserved → failed at none", last.Effect.String())
		last.Replayed = true
		require.Equal(t, last.Number, after[0].Number)
		require.Equal(t, last.Effect, after[0].Effect)
	})
}

// A runner reports a failed bundle of the last step once again after a restart, because the host
// may not have it. The snapshot after the restart ends that.
func TestFailedIsToldOnceAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra()))
		ctx, disk := t.Context(), &broken{fails: 1 << 30}
		var told []submit.Observation
		failed := func() (n int) {
			for _, o := range told {
				if _, ok := o.Effect.(bundlequeue.Failed); ok {
					n++
				}
			}
			return n
		}
		r := lazy(t, disk, &told)
		require.NoError(t, r.Enqueue(ctx, bundlequeue.Enqueue{Number: 1, Bundle: []byte("one")}))
		disk.fails = disk.writes + 2 // the order is written, and nothing after it
		require.NoError(t, r.Step(ctx, bundlequeue.GiveUp{Number: 1}))
		r.Stop()
		require.Equal(t, 1, failed())
		for _, want := range []int{1, 0} {
			told, disk.fails = nil, 1<<30
			r = lazy(t, disk, &told)
			require.NoError(t, r.Resume(ctx))
			stats, err := r.Stats(ctx)
			require.NoError(t, err)
			require.Zero(t, stats.Count[bundlequeue.FailedState])
			r.Stop()
			require.Equal(t, want, failed())
		}
	})
}

// A feed that repeats old blocks after a restart, each as the best one, never
// moves the best block back, also not to another fork. A new block moves it.
func TestRepeatedBlocksMoveNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra()))
		ctx, disk := t.Context(), new(journal.Memory)
		var told []submit.Observation
		block := func(hash, parent byte, slot jamq.Slot) jamq.Block {
			return jamq.Block{Hash: jamq.HeaderHash{hash}, Parent: jamq.HeaderHash{parent}, Slot: slot}
		}
		history := []jamq.Block{block('a', 'r', 1), block('b', 'a', 2), block('c', 'a', 3), block('d', 'c', 4), block('e', 'd', 5)}
		r := lazy(t, disk, &told)
		for _, b := range history {
			require.NoError(t, r.Import(ctx, b, b.Hash))
		}
		restart := func() (best jamq.HeaderHash) {
			r.Stop()
			r = recovered(t, disk, &told)
			best = r.Recovered().Best.Hash
			require.NoError(t, r.Start(ctx))
			return best
		}
		for repeated := range history {
			require.Equal(t, jamq.HeaderHash{'e'}, restart(), "%d blocks repeated", repeated)
			for _, b := range history[:repeated+1] {
				require.NoError(t, r.Import(ctx, b, b.Hash))
			}
		}
		next := block('f', 'b', 4) // another fork, which is the best now
		require.NoError(t, r.Import(ctx, next, next.Hash))
		require.Equal(t, next.Hash, restart())
		r.Stop()
	})
}
