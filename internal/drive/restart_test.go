package drive_test

import (
	"context"
	"errors"
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

// noting is a journal that notes when its records are replaced.
type noting struct {
	journal.Memory
	replaced func()
}

func (n *noting) Replace(records ...[]byte) error {
	if n.replaced != nil {
		n.replaced()
	}
	return n.Memory.Replace(records...)
}

// After a restart the effects of the last step are reported before a snapshot takes the place of
// the steps. A crash in between would lose them.
func TestReplayedEffectsComeBeforeTheSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra()))
		ctx, disk := t.Context(), new(noting)
		var log []string
		open := func() *drive.Runner {
			r, err := openOn(disk, &host{failBuild: 1000}, func(c *submit.Config) {
				c.Observe = func(o submit.Observation) {
					if o.Replayed {
						log = append(log, o.Effect.String())
					}
				}
			})
			require.NoError(t, err)
			return r
		}
		r := open()
		require.NoError(t, r.Start(ctx))
		require.NoError(t, r.Step(ctx, bundlequeue.Reserve{Number: 1}))
		require.NoError(t, r.Step(ctx, bundlequeue.Release{Number: 1}))
		r.Stop()
		r = open()
		disk.replaced = func() { log = append(log, "snapshot") }
		require.NoError(t, r.Start(ctx))
		_, err := r.Stats(ctx)
		require.NoError(t, err)
		r.Stop()
		require.Equal(t, []string{"1v0 reserved → failed at none", "snapshot"}, log)
	})
}

// Snapshots replace the steps again and again, so the journal stays short.
func TestSnapshotsReplaceSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra()))
		ctx, disk := t.Context(), new(journal.Memory)
		cfg := submit.DefaultConfig(jamq.Tiny())
		cfg.Observe = func(submit.Observation) {}
		h := &host{}
		r, err := drive.OpenRunner(cfg, jamq.Block{Hash: jamq.HeaderHash{'r'}}, drive.Durability{Journal: disk, SnapshotEvery: 10}, h, h)
		require.NoError(t, err)
		require.NoError(t, r.Start(ctx))
		for range 100 {
			require.NoError(t, r.Step(ctx, bundlequeue.Tick{}))
		}
		r.Stop()
		records := 0
		require.NoError(t, disk.Replay(func([]byte) error { records++; return nil }))
		require.LessOrEqual(t, records, 12)
	})
}

// A runner answers a failed bundle, so that it does not count as waiting any more.
func TestFailedBundlesAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &picky{build: func(bundlequeue.Build) error { return errors.New("not now") }}
		r, _ := begin(t, p, func(c *submit.Config) { c.Queue.MaxQueueDepth = 1 })
		ctx := t.Context()
		for range 5 {
			require.NoError(t, r.Step(ctx, bundlequeue.Reserve{Number: 1}))
			require.NoError(t, r.Step(ctx, bundlequeue.Release{Number: 1}))
			require.NoError(t, r.Enqueue(ctx, bundlequeue.Enqueue{Number: 1}))
			require.NoError(t, r.Step(ctx, bundlequeue.GiveUp{Number: 1}))
		}
		can, err := r.CanEnqueue(ctx)
		require.NoError(t, err)
		require.True(t, can)
	})
}

// reckless is a journal that counts the steps that were written before a send began.
type reckless struct {
	journal.Memory
	written int
}

func (j *reckless) Append(records ...[]byte) error {
	time.Sleep(time.Second) // long enough for a build that does not wait for it
	j.written++
	return j.Memory.Append(records...)
}

// A build begins only after the step that requested it is recorded.
func TestStepsAreWrittenBeforeTheyAreCarriedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra()))
		ctx, disk := t.Context(), new(reckless)
		var began, written int
		p := &picky{}
		p.build = func(bundlequeue.Build) error {
			began++
			written = disk.written
			return errors.New("not now")
		}
		cfg := submit.DefaultConfig(jamq.Tiny())
		cfg.Observe = func(submit.Observation) {}
		r, err := drive.OpenRunner(cfg, jamq.Block{Hash: jamq.HeaderHash{'r'}}, drive.Durability{Journal: disk}, p, p)
		require.NoError(t, err)
		require.NoError(t, r.Start(ctx))
		block := jamq.Block{Hash: jamq.HeaderHash{1}, Parent: jamq.HeaderHash{'r'}, Slot: 1}
		require.NoError(t, r.Import(ctx, block, block.Hash))
		before := disk.written
		require.NoError(t, r.Enqueue(ctx, bundlequeue.Enqueue{Number: 1}))
		r.Stop()
		require.Equal(t, 1, began)
		require.Greater(t, written, before)
		require.NoError(t, context.Cause(ctx))
	})
}
