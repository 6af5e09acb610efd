package load

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/evmrollup/rpcapi"
	"github.com/jamq/jamq/internal/wait"
)

// serve runs a node on a JAM chain that loses a share of the submissions.
func serve(t *testing.T, loss float64) (*node.Node, string) {
	cfg := node.DefaultConfig(jamq.Tiny(), 50*time.Millisecond, 1)
	cfg.JAM.LossProbability = loss
	cfg.MaxTxsPerBundle = 200
	return serveNode(t, cfg)
}

func serveNode(t *testing.T, cfg node.Config) (*node.Node, string) {
	n, err := node.New(cfg)
	require.NoError(t, err)
	handler, endSockets, err := rpcapi.Handler(n, rpcapi.DefaultConfig())
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	t.Cleanup(func() { endSockets(); server.Close(); stop(); <-ended })
	wait.Until(t, func() bool { _, err := n.Levels(ctx); return err == nil }, "the node runs")
	return n, server.URL
}

func TestLoad(t *testing.T) {
	n, url := serve(t, 0.2)
	for name, cfg := range map[string]Config{
		"transfers from the funded accounts": {Rate: 300, Duration: time.Second, Accounts: 10},
		"all kinds from new accounts":        {Rate: 200, Duration: time.Second, Accounts: 40, Mixed: true},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			require.NoError(t, Run(t.Context(), url, n.Accounts(), cfg, &out), out.String())
			require.Contains(t, out.String(), "oracle    0 lost; 0 executed twice")
			require.Contains(t, out.String(), "; 0 reverted")
			require.Contains(t, out.String(), "sent      ")
		})
	}
}

// A load ends with its report although the node has pruned the first of its blocks.
func TestLoadOnAPruningNode(t *testing.T) {
	t.Parallel()
	cfg := node.DefaultConfig(jamq.Tiny(), 20*time.Millisecond, 1)
	cfg.DataDir, cfg.KeepBlocks, cfg.MaxTxsPerBundle = t.TempDir(), 256, 1
	n, url := serveNode(t, cfg)
	var out strings.Builder
	require.NoError(t, Run(t.Context(), url, n.Accounts(), Config{Rate: 300, Duration: time.Second, Accounts: 10}, &out), out.String())
	require.Greater(t, n.OldestBlock(), uint64(1))
	require.Contains(t, out.String(), "oracle    0 lost; 0 executed twice")
	require.Contains(t, out.String(), "pruned    ")
}

// The oracle counts what it should: here one transaction stands in two blocks, and one in none.
func TestJudge(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	tx := func(i byte) common.Hash { return common.Hash{i} }
	r := &runner{sent: map[common.Hash]time.Time{tx(1): now, tx(2): now, tx(3): now}}
	f := r.judge([]*seen{
		{txs: []common.Hash{tx(1), tx(9)}, gasUsed: 1, gasLimit: 4, pending: now.Add(1 * time.Second), finalized: now.Add(3 * time.Second)},
		{txs: []common.Hash{tx(2), tx(1)}, gasUsed: 3, gasLimit: 4, finalized: now.Add(5 * time.Second)},
		{txs: []common.Hash{tx(8)}, gasUsed: 4, gasLimit: 4, finalized: now.Add(9 * time.Second)},
	}, now)
	require.Equal(t, 2, f.final)
	require.Equal(t, 1, f.twice)
	require.Equal(t, []common.Hash{tx(3)}, f.missing)
	require.Equal(t, 2, f.blocks, "a block without ours does not count")
	require.Equal(t, 0.5, f.full)
	require.Equal(t, 5*time.Second, f.span)
	require.Equal(t, []time.Duration{time.Second}, f.pending)
	require.Equal(t, []time.Duration{3 * time.Second, 5 * time.Second}, f.finalized)
}

// If a block was replaced, the replacement counts, not the block that was seen first.
func TestWatcherFollowsReplacements(t *testing.T) {
	w := newWatcher(nil, nil, 1)
	now := time.Unix(1_800_000_000, 0)
	first, other := &seen{hash: common.Hash{1}, txs: make([]common.Hash, 1)}, &seen{hash: common.Hash{2}, txs: make([]common.Hash, 3)}
	status := &rpcapi.QueueStatus{Pending: 1}
	require.Equal(t, []uint64{1}, w.due(status))
	w.note(1, first, status, now)
	require.Empty(t, w.due(status), "nothing new")

	status = &rpcapi.QueueStatus{Pending: 1, Latest: 1, Finalized: 1}
	require.Equal(t, []uint64{1}, w.due(status))
	w.note(1, other, status, now.Add(time.Second))
	require.Empty(t, w.due(status))
	require.Equal(t, now.Add(time.Second), w.blocks[1].finalized)
	require.NoError(t, w.settle(t.Context(), 3, time.Nanosecond))
	require.ErrorIs(t, w.settle(t.Context(), 4, time.Nanosecond), ErrIncomplete)

	require.Empty(t, w.due(&rpcapi.QueueStatus{}))
	require.Empty(t, w.blocks, "it is gone")
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, w.settle(ended, 1, time.Minute), context.Canceled)
}

// What JAM never takes is not lost: the node still has it.
func TestWaitingIsNotLost(t *testing.T) {
	n, url := serve(t, 1)
	var out strings.Builder
	err := Run(t.Context(), url, n.Accounts(), Config{Rate: 20, Duration: time.Second, Accounts: 10, Timeout: time.Second}, &out)
	require.ErrorIs(t, err, ErrIncomplete)
	require.NotErrorIs(t, err, ErrUnsafe)
	require.Contains(t, out.String(), "waiting   20 are not final yet")
	require.Contains(t, out.String(), "oracle    0 lost")
	require.NotContains(t, out.String(), "NaN")

	client, err := rpc.DialContext(t.Context(), url)
	require.NoError(t, err)
	defer client.Close()
	lost, err := (&runner{raw: client}).unknown(t.Context(), []common.Hash{{1}})
	require.NoError(t, err)
	require.Equal(t, 1, lost, "nobody ever sent it")
}

func TestBound(t *testing.T) {
	few, many := &watcher{polls: 10}, &watcher{polls: 10, full: 9}
	require.Equal(t, "the requested rate", (&findings{}).bound(0.1, few, &runner{}))
	require.Contains(t, (&findings{}).bound(1000, few, &runner{}), "the processors")
	require.Contains(t, (&findings{}).bound(0.1, many, &runner{}), "JAM")
	require.Contains(t, (&findings{full: 0.95}).bound(0.1, few, &runner{}), "gas")
	require.Contains(t, (&findings{}).bound(0.1, few, &runner{overran: time.Minute}), "sender")
	require.Equal(t, "the requested rate", (&findings{}).bound(0.1, few, &runner{late: time.Minute}), "the sender caught up")
}

// A growing backlog means that the rate was not the bottleneck, even if no queue was full.
func TestBehind(t *testing.T) {
	delays := func(pending, latest time.Duration) *findings { // grow evenly by these totals
		f := &findings{}
		for i := range time.Duration(100) {
			f.delays = append(f.delays, delay{sent: time.Unix(int64(i)*37%100, 0)})
		}
		for i := range f.delays {
			share := time.Duration(f.delays[i].sent.Unix())
			f.delays[i].pending, f.delays[i].latest = time.Second+pending*share/100, 4*time.Second+latest*share/100
		}
		return f
	}
	const rate = "the requested rate"
	require.Equal(t, rate, (&findings{}).behind(false))
	require.Equal(t, rate, delays(0, 0).behind(true))
	require.Equal(t, rate, delays(0, 2*time.Second).behind(true), "it takes longer by chance")
	require.Equal(t, "JAM, slower than the rate: the last transactions took 11.0s to latest, the first ones 5.0s", delays(0, 8*time.Second).behind(false))
	require.Contains(t, delays(8*time.Second, 8*time.Second).behind(true), "JAM")
	require.Contains(t, delays(8*time.Second, 8*time.Second).behind(false), "the node's execution")
}

// A load of one transaction lasts for the whole Duration, so that its rate is the requested one.
func TestLoadLastsAsLongAsAsked(t *testing.T) {
	n, url := serve(t, 0)
	var out strings.Builder
	require.NoError(t, Run(t.Context(), url, n.Accounts(), Config{Rate: 1, Duration: time.Second, Accounts: 1}, &out), out.String())
	require.Regexp(t, `sent +1 in [1-9][0-9]*\.[0-9] s`, out.String(), "a second at least")
}

// An interrupted load reports on the transactions sent until then.
func TestLoadIsInterrupted(t *testing.T) {
	n, url := serve(t, 0)
	ctx, stop := context.WithCancelCause(t.Context())
	var out strings.Builder
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, url, n.Accounts(), Config{Rate: 100, Duration: time.Hour, Accounts: 5}, &out)
	}()
	before := n.HeadCursor()
	wait.Until(t, func() bool { return n.HeadCursor() > before+3 }, "a few blocks")
	stop(errors.New("interrupted by the user"))
	err := wait.Receive(t, ended, "the end of the load")
	require.ErrorIs(t, err, ErrIncomplete)
	require.ErrorContains(t, err, "interrupted by the user")
	require.Contains(t, out.String(), "oracle    0 lost; 0 executed twice")
}

func TestConfigValidate(t *testing.T) {
	good := Config{Rate: 1, Duration: time.Second, Accounts: 1}
	require.NoError(t, good.Validate())
	for _, change := range []func(*Config){
		func(c *Config) { c.Rate = 0 }, func(c *Config) { c.Duration = time.Second - 1 }, func(c *Config) { c.Accounts = 0 }, func(c *Config) { c.Accounts = 1 << 20 },
	} {
		bad := good
		change(&bad)
		require.ErrorIs(t, bad.Validate(), ErrInvalidConfig)
	}
}
