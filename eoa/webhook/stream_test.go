package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/memstore"
)

// web is the network of a test in a bubble: receivers by host name.
type web struct {
	mu    sync.Mutex
	took  map[string][]uint64 // Seqs of the posts, by host
	dead  map[string][]uint64
	fails error // of DeadLetter
	up    bool  // every receiver takes everything
}

// RoundTrip implements http.RoundTripper.
func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	var e eoa.Event
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		return nil, err
	}
	w.mu.Lock()
	up := w.up
	w.took[r.URL.Host] = append(w.took[r.URL.Host], e.Seq)
	w.mu.Unlock()
	status := http.StatusOK
	switch {
	case up:
	case r.URL.Host == "silent":
		<-r.Context().Done()
		return nil, r.Context().Err()
	case r.URL.Host == "slow":
		time.Sleep(900 * time.Millisecond)
	case r.URL.Host == "failing":
		status = http.StatusInternalServerError
	}
	return &http.Response{StatusCode: status, Body: http.NoBody, Request: r}, nil
}

func (w *web) seqs(of map[string][]uint64, host string) []uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(of[host])
}

// sender returns a sender to several hosts.
func (w *web) sender(t *testing.T, hosts ...string) *Sender {
	s, err := New(Config{
		Client: &http.Client{Transport: w, Timeout: 10 * time.Second},
		Endpoints: func(eoa.Event) (all []Endpoint) {
			for _, host := range hosts {
				all = append(all, Endpoint{"http://" + host, secret})
			}
			return all
		},
		DeadLetter: func(_ context.Context, url string, e eoa.Event, _ error) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.fails == nil {
				w.dead[url[len("http://"):]] = append(w.dead[url[len("http://"):]], e.Seq)
			}
			return w.fails
		},
	})
	require.NoError(t, err)
	return s
}

func newWeb() *web { return &web{took: map[string][]uint64{}, dead: map[string][]uint64{}} }

var account = eoa.Account{ChainID: 1}

// emit adds events to a store that has had some already.
func emit(t *testing.T, store eoa.Store, had uint64, n int) (all []uint64) {
	ctx, now := t.Context(), time.Now()
	l, err := store.Acquire(ctx, account, "w", now, time.Hour)
	require.NoError(t, err)
	loaded, err := store.Load(ctx, l)
	require.NoError(t, err)
	b := eoa.Batch{Head: loaded.Head}
	for i := range n {
		b.Events = append(b.Events, eoa.Event{Kind: eoa.EventMined})
		all = append(all, had+uint64(i)+1)
	}
	_, err = store.Commit(ctx, l, now, b)
	require.NoError(t, err)
	require.NoError(t, store.Break(ctx, account))
	return all
}

// A receiver that answers 500 and one that does not answer are before a good one.
// The good one has each event at once, also those that come while the others are
// tried again. The others get all events in order, and the store keeps each event
// until then.
func TestEachReceiverHasItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 250
		w, store := newWeb(), memstore.New()
		s := w.sender(t, "failing", "silent", "good")
		want := []uint64(nil)
		began := time.Now()
		for range 3 {
			want = append(want, emit(t, store, uint64(len(want)), many)...)
			require.NoError(t, s.Deliver(t.Context(), store, account))
			require.Equal(t, want, w.seqs(w.took, "good"))
		}
		require.Less(t, time.Since(began), 5*time.Second)
		pending, err := store.Events(t.Context(), account, 0, 1)
		require.NoError(t, err)
		require.Len(t, pending, 1, "it is kept for the others")
		time.Sleep(3 * many * 11 * time.Second)
		require.Equal(t, want, w.seqs(w.dead, "failing"))
		require.Equal(t, want, w.seqs(w.dead, "silent"))
		require.Equal(t, want, w.seqs(w.took, "good"), "once")
		pending, err = store.Events(t.Context(), account, 0, 1)
		require.NoError(t, err)
		require.Empty(t, pending)
		synctest.Wait()
		require.Empty(t, s.streams)

		w.mu.Lock()
		w.up = true
		w.mu.Unlock()
		more := emit(t, store, uint64(len(want)), 3)
		require.NoError(t, s.Deliver(t.Context(), store, account))
		for _, host := range []string{"failing", "silent", "good"} {
			got := w.seqs(w.took, host)
			require.Equal(t, more, got[len(got)-3:])
		}
	})
}

// A receiver that is a bit slow has many events to take. A good one gets the
// events that come meanwhile within seconds.
func TestSlowReceiverDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 300
		w, store := newWeb(), memstore.New()
		s := w.sender(t, "slow", "good")
		want := emit(t, store, 0, many)
		for range 10 {
			began := time.Now()
			require.NoError(t, s.Deliver(t.Context(), store, account))
			require.Less(t, time.Since(began), 3*time.Second)
			require.Equal(t, want, w.seqs(w.took, "good"))
			want = append(want, emit(t, store, uint64(len(want)), 1)...)
		}
		require.NoError(t, s.Deliver(t.Context(), store, account))
		time.Sleep(many * 2 * time.Second)
		require.Equal(t, want, w.seqs(w.took, "slow"))
		require.Equal(t, want, w.seqs(w.took, "good"))
		require.Empty(t, w.dead)
		pending, err := store.Events(t.Context(), account, 0, 1)
		require.NoError(t, err)
		require.Empty(t, pending)
	})
}

// If dead letters cannot be kept, or the context ends, no event is lost and the
// good receiver gets none twice while the process lives. A new process posts
// again what the slowest lacks.
func TestReceiverComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("full")
		w, store := newWeb(), memstore.New()
		w.fails = full
		s := w.sender(t, "failing", "good")
		want := emit(t, store, 0, 5)
		for i := range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			if err := s.Deliver(ctx, store, account); i == 0 {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, full, "of the last posts")
			}
			time.Sleep(time.Minute) // the posts are repeated, and then DeadLetter fails
			cancel()
			synctest.Wait()
		}
		require.Equal(t, want, w.seqs(w.took, "good"))
		w.mu.Lock()
		w.took, w.up = map[string][]uint64{}, true
		w.mu.Unlock()
		require.ErrorIs(t, s.Deliver(t.Context(), store, account), full)
		require.Equal(t, want, w.seqs(w.took, "failing"))
		require.Empty(t, w.seqs(w.took, "good"))

		want = emit(t, store, 5, 2)
		next := w.sender(t, "failing", "good") // of a new process
		require.NoError(t, next.Deliver(t.Context(), store, account))
		require.Equal(t, want, w.seqs(w.took, "good"))
	})
}

// A store that lost everything counts its events from 1. They are delivered.
func TestStoreBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, store := newWeb(), memstore.New()
		s := w.sender(t, "good", "silent")
		emit(t, store, 0, 5)
		w.up = true
		require.NoError(t, s.Deliver(t.Context(), store, account))
		w.mu.Lock()
		w.up = false
		w.mu.Unlock()
		emit(t, store, 5, 5)
		require.NoError(t, s.Deliver(t.Context(), store, account))
		store = memstore.New()
		want := emit(t, store, 0, 3)
		w.mu.Lock()
		w.took = map[string][]uint64{}
		w.mu.Unlock()
		time.Sleep(time.Hour)
		require.NoError(t, s.Deliver(t.Context(), store, account))
		require.Equal(t, want, w.seqs(w.took, "good"))
		time.Sleep(time.Hour)
	})
}
