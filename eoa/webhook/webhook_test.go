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
