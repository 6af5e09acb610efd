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
)

// fatalOnce: the build of bundle 2 fails fatally while the send of bundle 1 waits for its window.
type fatalOnce struct{ *host }

func (h fatalOnce) Build(ctx context.Context, r bundlequeue.Build) (drive.Package, error) {
	if r.Number == 2 {
		return drive.Package{}, submit.WithClass(submit.Fatal, errors.New("no such core"))
	}
	return h.host.Build(ctx, r)
}

func TestPausedRunnerSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra()))
		h := fatalOnce{&host{}}
		root := jamq.Block{Hash: jamq.HeaderHash{'r'}}
		r, err := drive.NewRunner(submit.DefaultConfig(jamq.Tiny()), root, h, h)
		require.NoError(t, err)
		require.NoError(t, r.Start(t.Context()))
		t.Cleanup(r.Stop)
		best := jamq.Block{Hash: jamq.HeaderHash{1}, Parent: root.Hash, Slot: 1}
		require.NoError(t, r.Import(t.Context(), best, best.Hash))
		require.NoError(t, r.Enqueue(t.Context(), bundlequeue.Enqueue{Number: 1, Bundle: []byte("1")}))
		require.NoError(t, r.Enqueue(t.Context(), bundlequeue.Enqueue{Number: 2, Bundle: []byte("2")}))
		synctest.Wait()
		require.Error(t, r.Health().Paused)
		before := len(h.sends())
		t.Log("health", r.Health().Sends, before)
		time.Sleep(10 * time.Second)
		require.Equal(t, before, len(h.sends()), "a paused runner has sent a package")
	})
}

// A waiting bundle with number 0 sets the alarm like any other bundle.
func TestDelayAlarmOfBundle0(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{failBuild: 1 << 30}
		r, _ := start(t, h, func(c *submit.Config) { c.Queue.FirstNumber = 0 })
		require.NoError(t, r.Enqueue(t.Context(), bundlequeue.Enqueue{Number: 0, Bundle: []byte("0")}))
		time.Sleep(time.Hour)
		synctest.Wait()
		require.True(t, r.Health().Delayed, "an hour without a package: %+v", r.Health().Waiting)
	})
}
