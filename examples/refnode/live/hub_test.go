package live

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
)

// levelsOf is a source that tests set.
type levelsOf struct {
	mu    sync.Mutex
	heads Heads
}

func (s *levelsOf) Pool() Pool { return Pool{Max: 10} }
func (s *levelsOf) Heads() Heads {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heads
}
func (s *levelsOf) Txs(number uint64) (int, bool) { return 4, number <= 2 }
func (s *levelsOf) Lab() *Lab                     { return nil }
func (s *levelsOf) Cluster() *Cluster             { return nil }

// inVirtualTime runs a test with a hub, at the beginning of a slot of an hour.
func inVirtualTime(t *testing.T, f func(t *testing.T, h *Hub, source *levelsOf, stop func())) {
	synctest.Test(t, func(t *testing.T) {
		spec := jamq.Tiny()
		spec.SlotDuration = 1000 * time.Hour
		source := &levelsOf{}
		h := NewHub(Info{ChainID: "1"}, spec, 0, source)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = h.Run(ctx) })
		stop := func() {
			cancel()
			running.Wait()
		}
		defer stop()
		f(t, h, source, stop)
	})
}

func decode(t *testing.T, raw []byte) map[string]json.RawMessage {
	t.Helper()
	var parts map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &parts))
	return parts
}

func TestSnapshotFirstThenWhatChanged(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, h *Hub, source *levelsOf, _ func()) {
		time.Sleep(period)
		synctest.Wait()
		s, changed := h.Snapshot()
		var seen Seen
		require.Len(t, decode(t, s.Changes(&seen)), numParts, "the whole state")
		require.Equal(t, "{}", string(s.Changes(&seen)), "seen once")

		h.Note("loss")
		<-changed
		s, changed = h.Snapshot()
		parts := decode(t, s.Changes(&seen))
		require.Len(t, parts, 1)
		require.Contains(t, string(parts["events"]), "loss")

		source.mu.Lock()
		source.heads = Heads{Pending: 2}
		source.mu.Unlock()
		h.Sent(9)
		<-changed
		s, _ = h.Snapshot()
		parts = decode(t, s.Changes(&seen))
		require.Equal(t, Flow{Sent: 9, Queue: 8}, s.State.Flow, "executed blocks are found without being told")
		require.ElementsMatch(t, []string{"flow", "heads", "bundles"}, keys(parts))
	})
}

func keys(m map[string]json.RawMessage) (all []string) {
	for key := range m {
		all = append(all, key)
	}
	return all
}

// There are at most four snapshots a second, and none if nothing changes.
func TestSnapshotsAreFew(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, h *Hub, _ *levelsOf, _ func()) {
		time.Sleep(time.Second)
		count, quiet := 0, 0
		_, changed := h.Snapshot()
		for range 1000 {
			h.Note("something")
			time.Sleep(5 * time.Millisecond)
			select {
			case <-changed:
				_, changed = h.Snapshot()
				count++
			default:
			}
		}
		require.InDelta(t, 20, count, 1)
		time.Sleep(time.Second)
		_, changed = h.Snapshot()
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			select {
			case <-changed:
				quiet++
				_, changed = h.Snapshot()
			default:
			}
		}
		require.Zero(t, quiet)
	})
}

// A reader who sleeps gets the newest state, and nothing piles up for it.
func TestSlowReaderGetsTheNewest(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, h *Hub, _ *levelsOf, _ func()) {
		s, changed := h.Snapshot()
		var seen Seen
		s.Changes(&seen)
		for n := uint64(1); n <= 500; n++ {
			h.Changed(bundlequeue.Changed{Number: n, From: bundlequeue.Queued, To: bundlequeue.Building}, 1)
			h.Note("something")
			time.Sleep(period)
		}
		synctest.Wait()
		<-changed
		s, _ = h.Snapshot()
		require.Equal(t, uint64(500), s.State.Events[0].ID)
		require.Less(t, len(s.Changes(&seen)), 64*1024)
	})
}

func TestHubEndsWithItsContext(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, h *Hub, _ *levelsOf, stop func()) {
		select {
		case <-h.Done():
			require.FailNow(t, "it runs")
		default:
		}
		stop()
		<-h.Done()
		h.Note("too late, and harmless")
	})
}

// A snapshot never changes, whatever happens later.
func TestSnapshotsAreImmutable(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, h *Hub, _ *levelsOf, _ func()) {
		h.Changed(bundlequeue.Changed{Number: 1, From: bundlequeue.Queued, To: bundlequeue.Building}, 1)
		h.Note("one")
		time.Sleep(period)
		synctest.Wait()
		s, _ := h.Snapshot()
		var all Seen
		before := string(s.Changes(&all))
		state, err := json.Marshal(s.State)
		require.NoError(t, err)
		for n := range uint64(100) {
			h.Changed(bundlequeue.Changed{Number: n % 3, Version: 1, From: bundlequeue.Queued, To: bundlequeue.Submitted}, 2)
			h.Import(jamq.Block{Hash: hash(byte(n + 1)), Parent: hash(byte(n)), Slot: jamq.Slot(n)}, hash(byte(n+1)))
			h.Note("more")
			time.Sleep(period)
		}
		synctest.Wait()
		after, err := json.Marshal(s.State)
		require.NoError(t, err)
		require.Equal(t, string(state), string(after))
		require.Equal(t, before, string(s.Changes(new(Seen))))
	})
}
