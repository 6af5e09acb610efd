package submit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/journal"
)

// asWords is the codec of bundles that are strings.
type asWords struct{}

func (asWords) AppendBundle(b []byte, bundle string) []byte { return append(b, bundle...) }
func (asWords) DecodeBundle(b []byte) (string, error)       { return string(b), nil }

// broken is a journal that fails from some write on.
type broken struct {
	journal.Memory
	writes, fails int
}

var errDisk = errors.New("no space left")

func (b *broken) Append(records ...[]byte) error {
	if b.writes++; b.writes >= b.fails {
		return errDisk
	}
	return b.Memory.Append(records...)
}

// What could not be written down is not acted on: the runner stops and says why.
func TestJournalFailureStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra()))
		h := &host{}
		r, err := submit.OpenRunner(submit.DefaultConfig(jamq.Tiny()), jamq.Block{Hash: jamq.HeaderHash{'r'}}, submit.Durability[string]{Journal: &broken{fails: 3}, Codec: asWords{}}, h, h)
		require.NoError(t, err)
		ctx := t.Context()
		require.NoError(t, r.Start(ctx))
		require.True(t, r.Health().Running)
		block := jamq.Block{Hash: jamq.HeaderHash{1}, Parent: jamq.HeaderHash{'r'}, Slot: 1}
		var refused error
		for range 4 {
			if refused = r.Import(ctx, block, block.Hash); refused != nil {
				break
			}
		}
		require.ErrorIs(t, refused, submit.ErrJournal)
		require.ErrorIs(t, refused, errDisk)
		err = r.Enqueue(ctx, bundlequeue.Enqueue[string]{Number: 1})
		require.ErrorIs(t, err, submit.ErrStopped)
		r.Stop()
		require.ErrorIs(t, r.Drain(ctx), submit.ErrStopped)
		require.ErrorIs(t, r.Health().Err, errDisk)
		require.False(t, r.Health().Running)
		require.Empty(t, h.sends())
	})
}

// A runner that recovered does not act before it knows how the chain is now, and says so.
func TestRecoveredHolds(t *testing.T) {
	for name, release := range map[string]func(t *testing.T, r *submit.Runner[string]){
		"a new block": func(t *testing.T, r *submit.Runner[string]) {
			slot := jamq.NewSlotClock(jamq.Tiny()).SlotAt(time.Now())
			block := jamq.Block{Hash: jamq.HeaderHash{9}, Parent: jamq.HeaderHash{1}, Slot: slot}
			require.NoError(t, r.Import(t.Context(), block, block.Hash))
		},
		"Resume":      func(t *testing.T, r *submit.Runner[string]) { require.NoError(t, r.Resume(t.Context())) },
		"HoldTimeout": func(t *testing.T, r *submit.Runner[string]) { time.Sleep(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(jamq.CommonEra()))
				ctx := t.Context()
				disk := new(journal.Memory)
				open := func(h *host) *submit.Runner[string] {
					r, err := submit.OpenRunner(submit.DefaultConfig(jamq.Tiny()), jamq.Block{Hash: jamq.HeaderHash{'r'}}, submit.Durability[string]{Journal: disk, Codec: asWords{}}, h, h)
					require.NoError(t, err)
					return r
				}
				first := open(&host{failBuild: 1000})
				require.False(t, first.Recovered().Found)
				require.NoError(t, first.Start(ctx))
				block := jamq.Block{Hash: jamq.HeaderHash{1}, Parent: jamq.HeaderHash{'r'}, Slot: 1}
				require.NoError(t, first.Import(ctx, block, block.Hash))
				require.NoError(t, first.Enqueue(ctx, bundlequeue.Enqueue[string]{Number: 1, Bundle: "one"}))
				first.Stop()

				time.Sleep(36 * time.Second)
				h := &host{}
				r := open(h)
				require.True(t, r.Recovered().Found)
				require.Equal(t, block.Hash, r.Recovered().Best.Hash)
				require.True(t, r.Health().Held)
				require.NoError(t, r.Start(ctx))
				defer r.Stop()
				old := jamq.Block{Hash: jamq.HeaderHash{8}, Parent: jamq.HeaderHash{1}, Slot: 2}
				require.NoError(t, r.Import(ctx, old, block.Hash))
				time.Sleep(20 * time.Second)
				require.Empty(t, h.sends())
				release(t, r)
				time.Sleep(20 * time.Second)
				require.NotEmpty(t, h.sends())
				require.False(t, r.Health().Held)
				r.Stop()
				out := open(h).Recovered().Out
				require.Len(t, out, 1)
				require.Equal(t, h.sends()[0].Package, out[0].Package)
			})
		})
	}
}

// A journal that nobody could have written is refused, not guessed at.
func TestCorruptJournal(t *testing.T) {
	open := func(records ...[]byte) error {
		disk := new(journal.Memory)
		require.NoError(t, disk.Append(records...))
		_, err := submit.OpenRunner(submit.DefaultConfig(jamq.Tiny()), jamq.Block{Hash: jamq.HeaderHash{'r'}}, submit.Durability[string]{Journal: disk, Codec: asWords{}}, &host{}, &host{})
		return err
	}
	disk := new(journal.Memory)
	_, err := submit.OpenRunner(submit.DefaultConfig(jamq.Tiny()), jamq.Block{Hash: jamq.HeaderHash{'r'}}, submit.Durability[string]{Journal: disk, Codec: asWords{}}, &host{}, &host{})
	require.NoError(t, err)
	var snapshot []byte
	require.NoError(t, disk.Replay(func(r []byte) error { snapshot = append([]byte(nil), r...); return nil }))
	require.NoError(t, open(snapshot))
	for name, records := range map[string][][]byte{
		"empty record":           {snapshot, {}},
		"unknown kind":           {snapshot, {'?'}},
		"a step without a queue": {{'T', 1, 2}},
		"a damaged snapshot":     {append(append([]byte(nil), snapshot[:20]...), snapshot[21:]...)},
		"a short snapshot":       {{'S', 1}},
		"a step of garbage":      {snapshot, {'T', 1, 2, 3}},
	} {
		require.ErrorIs(t, open(records...), submit.ErrCorrupt, name)
	}
	_, err = submit.OpenRunner(submit.DefaultConfig(jamq.Tiny()), jamq.Block{Hash: jamq.HeaderHash{'r'}}, submit.Durability[string]{}, &host{}, &host{})
	require.ErrorIs(t, err, submit.ErrInvalidConfig)
}

// The metrics count what happens.
func TestRunnerMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counted := make(chan string, 1000)
		h := &host{failBuild: 1, failSend: 1}
		r, _ := start(t, h, func(c *submit.Config) {
			c.Metrics.Count = func(counter submit.Counter, label string) { counted <- string(counter) + " " + label }
			c.Metrics.Observe = func(histogram submit.Histogram, _ float64) { counted <- string(histogram) }
		})
		require.NoError(t, r.Enqueue(context.Background(), bundlequeue.Enqueue[string]{Number: 1, Bundle: "one"}))
		time.Sleep(20 * time.Second)
		synctest.Wait()
		r.Stop()
		close(counted)
		counts := make(map[string]int)
		for what := range counted {
			counts[what]++
		}
		for _, what := range []string{"builds ok", "builds failed", "sends ok", "sends retryable", "effects build", "effects send", "effects changed", "build_seconds", "send_seconds", "step_seconds"} {
			require.Positive(t, counts[what], "%s of %v", what, counts)
		}
		require.Zero(t, r.Health().SendFailures)
		require.Error(t, r.Health().LastError)
	})
}

// A clock that is behind is found out by blocks that come too early, and packages leave by the chain's clock.
func TestClockBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		r, best := start(t, h, nil) // whose block of slot 1 came at the beginning of slot 0
		require.Zero(t, r.Health().Behind, "that is further than a clock is wrong")
		time.Sleep(10 * time.Second) // the host's clock says that slot 2 begins in two seconds
		next := jamq.Block{Hash: jamq.HeaderHash{2}, Parent: best.Hash, Slot: 2}
		require.NoError(t, r.Import(t.Context(), next, next.Hash))
		require.Equal(t, 2*time.Second, r.Health().Behind)
		require.NoError(t, r.Enqueue(t.Context(), bundlequeue.Enqueue[string]{Number: 1, Bundle: "one"}))
		time.Sleep(10 * time.Second)
		window := submit.DefaultWindow(jamq.Tiny())
		window.Skew = -2 * time.Second
		require.NotEmpty(t, h.sends())
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, at := range h.when {
			require.True(t, window.Open(at), "sent at %v", at)
		}
	})
}
