package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
)

var secret = []byte("sixteen bytes, and more")

// An endpoint that fails at first gets the event again. An endpoint that always
// fails does not keep the event from the others.
func TestHandle(t *testing.T) {
	var calls, took atomic.Int64
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !Verify(secret, body, r.Header.Get(Header)) {
			t.Error("a wrong signature")
		}
		var e eoa.Event
		if json.Unmarshal(body, &e) != nil || e.Seq != 7 {
			t.Errorf("body %s", body)
		}
		if calls.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		took.Add(1)
	}))
	defer good.Close()
	pages := http.NewServeMux()
	// Following the redirect would drop the event.
	pages.Handle("/", http.RedirectHandler("/elsewhere", http.StatusFound))
	pages.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) {})
	bad := httptest.NewServer(pages)
	defer bad.Close()
	var dead []string
	s, err := New(Config{FirstWait: time.Microsecond, Endpoints: func(eoa.Event) []Endpoint {
		return []Endpoint{{bad.URL, secret}, {good.URL, secret}, {good.URL, []byte("short")}}
	}, DeadLetter: func(_ context.Context, url string, e eoa.Event, reason error) error {
		dead = append(dead, url)
		require.Error(t, reason)
		require.EqualValues(t, 7, e.Seq)
		return nil
	}})
	require.NoError(t, err)
	require.NoError(t, s.Handle(context.Background(), eoa.Event{Seq: 7, Kind: eoa.EventMined}))
	require.EqualValues(t, 1, took.Load())
	require.EqualValues(t, 3, calls.Load())
	require.Equal(t, []string{bad.URL, good.URL}, dead)
}

// An endpoint that takes nothing gets all posts of the first event and one of each further
// one, until it takes one.
func TestEndpointThatIsDown(t *testing.T) {
	var posts atomic.Int64
	var up atomic.Bool
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if posts.Add(1); !up.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer web.Close()
	dead := 0
	s, err := New(Config{Tries: 3, FirstWait: time.Microsecond, Endpoints: func(eoa.Event) []Endpoint { return []Endpoint{{web.URL, secret}} },
		DeadLetter: func(context.Context, string, eoa.Event, error) error { dead++; return nil }})
	require.NoError(t, err)
	for i, want := range []int64{3, 4, 5, 6, 7, 10, 11} {
		up.Store(i == 3 || i == 4)
		require.NoError(t, s.Handle(context.Background(), eoa.Event{Seq: uint64(i)}))
		require.Equal(t, want, posts.Load(), "event %d", i)
	}
	require.Equal(t, 5, dead)
}

// An event that could not be kept as a dead letter, or was interrupted, is delivered again.
func TestHandleComesAgain(t *testing.T) {
	full := errors.New("full")
	s, err := New(Config{Tries: 1, Endpoints: func(eoa.Event) []Endpoint { return []Endpoint{{"http://127.0.0.1:0", secret}} },
		DeadLetter: func(context.Context, string, eoa.Event, error) error { return full }})
	require.NoError(t, err)
	require.ErrorIs(t, s.Handle(context.Background(), eoa.Event{}), full)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, s.Handle(ctx, eoa.Event{}), context.Canceled)
	_, err = New(Config{})
	require.ErrorIs(t, err, ErrInvalidConfig)
}

func TestVerify(t *testing.T) {
	require.True(t, Verify(secret, []byte("a"), Sign(secret, []byte("a"))))
	require.False(t, Verify(secret, []byte("b"), Sign(secret, []byte("a"))))
	require.False(t, Verify([]byte("another"), []byte("a"), Sign(secret, []byte("a"))))
}
