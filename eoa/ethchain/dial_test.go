package ethchain

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/memstore"
)

// The header is a number of seconds or a date. Any other value means no wait,
// and no wait exceeds one minute.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, "61": time.Minute, "99999999999999999999": time.Minute, "-5": 0, "1.5": 0, "soon": 0,
		now.Add(9 * time.Second).Format(http.TimeFormat): 9 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat):      0,
		now.Add(time.Hour).Format(http.TimeFormat):       time.Minute,
	} {
		require.Equal(t, want, retryAfter(text, now), "%q", text)
	}
}

// busy is a node that asks to be left alone as long as it has a status to answer with.
type busy struct {
	node   http.Handler
	status atomic.Int64
	wait   string
	calls  atomic.Int64
}

func (b *busy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.calls.Add(1)
	if status := int(b.status.Load()); status != 0 {
		w.Header().Set("Retry-After", b.wait)
		http.Error(w, "later", status)
		return
	}
	b.node.ServeHTTP(w, r)
}

func (s *setup) busy(t testing.TB, wait string, options ...rpc.ClientOption) (*busy, *Chain) {
	b := &busy{node: s.proxy, wait: wait}
	web := httptest.NewServer(b)
	t.Cleanup(web.Close)
	client, err := Dial(context.Background(), web.URL, options...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	chain, err := New(client, Options{})
	require.NoError(t, err)
	return b, chain
}

// Each call gets the header of its response, for the statuses that have
// one.
func TestTransport(t *testing.T) {
	s := newSetup(t, 1)
	ctx := context.Background()
	for status, want := range map[int]eoa.Sent{
		http.StatusTooManyRequests:    {Reason: eoa.ReasonBusy, RetryAfter: 7 * time.Second},
		http.StatusServiceUnavailable: {Reason: eoa.ReasonBusy, RetryAfter: 7 * time.Second},
		http.StatusBadGateway:         {},
	} {
		b, chain := s.busy(t, "7")
		b.status.Store(int64(status))
		for _, got := range chain.Send(ctx, [][]byte{{1}, {2}}) {
			got.Text = ""
			require.Equal(t, want, got, "%d", status)
		}
		_, failed := chain.Look(ctx, common.Address{})
		_, also := chain.Ask(ctx, eoa.Questions{Heights: []uint64{1}})
		for _, err := range []error{failed, also} {
			var busy *eoa.BusyError
			require.Equal(t, want.Reason == eoa.ReasonBusy, errors.As(err, &busy), "%v", err)
			if busy != nil {
				require.Equal(t, want.RetryAfter, busy.RetryAfter)
			}
		}
		b.status.Store(0)
		require.Zero(t, chain.Send(ctx, [][]byte{{1}})[0].RetryAfter)
	}
	b, deaf := s.busy(t, "7", rpc.WithHTTPClient(http.DefaultClient))
	b.status.Store(http.StatusTooManyRequests)
	got := deaf.Send(ctx, [][]byte{{1}})[0]
	require.Equal(t, eoa.ReasonBusy, got.Reason)
	require.Zero(t, got.RetryAfter)
}

// A node that asks for 20 seconds gets no calls for 20 seconds, even if the
// executor is woken. Then the work goes on.
func TestNodeIsLeftAlone(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		looked bool
		gas    uint64
	}{"look": {false, 50_000}, "estimate": {true, 0}, "send": {true, 50_000}} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t, 1)
			b, chain := s.busy(t, "20")
			cfg := eoa.DefaultConfig()
			cfg.Now = s.clock.Now
			e, err := eoa.New(cfg, s.account, memstore.New(), chain, s.node.signer)
			require.NoError(t, err)
			request := func(key string) eoa.Request {
				return eoa.Request{Key: key, To: &common.Address{1}, Gas: c.gas}
			}
			if c.looked {
				_, err = e.Submit(ctx, request("before"))
				require.NoError(t, err)
				_, err = e.Step(ctx)
				require.NoError(t, err)
			}
			b.status.Store(http.StatusTooManyRequests)
			_, err = e.Submit(ctx, request("a"))
			require.NoError(t, err)
			asked := b.calls.Load()
			next, err := e.Step(ctx)
			require.NoError(t, err)
			require.Equal(t, s.clock.now.Add(20*time.Second), next)
			require.Equal(t, asked+1, b.calls.Load())
			for range 19 {
				s.clock.now = s.clock.now.Add(time.Second)
				_, err = e.Step(ctx)
				require.NoError(t, err)
			}
			require.Equal(t, asked+1, b.calls.Load(), "it was left alone")
			b.status.Store(0)
			s.clock.now = s.clock.now.Add(time.Second)
			_, err = e.Step(ctx)
			require.NoError(t, err)
			r, err := e.Get(ctx, "a")
			require.NoError(t, err)
			require.Equal(t, eoa.Broadcast, r.State)
		})
	}
}
