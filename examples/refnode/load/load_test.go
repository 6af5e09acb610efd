package load

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/examples/refnode/node"
	"github.com/jamq/jamq/examples/refnode/rpcapi"
)

// serve runs a node on a JAM chain that loses a fifth of what it is sent.
func serve(t *testing.T) (*node.Node, string) {
	cfg := node.DefaultConfig(jamq.Tiny(), 50*time.Millisecond, 1)
	cfg.JAM.LossProbability = 0.2
	cfg.MaxTxsPerBundle = 200
	n, err := node.New(cfg)
	require.NoError(t, err)
	handler, endSockets, err := rpcapi.Handler(n, rpcapi.DefaultConfig())
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	t.Cleanup(func() { endSockets(); server.Close(); stop(); <-ended })
	return n, server.URL
}

func TestLoad(t *testing.T) {
	n, url := serve(t)
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
	require.Equal(t, 1, f.lost)
	require.Equal(t, 2, f.blocks, "a block without ours does not count")
	require.Equal(t, 0.5, f.full)
	require.Equal(t, 5*time.Second, f.span)
	require.Equal(t, []time.Duration{time.Second}, f.pending)
	require.Equal(t, []time.Duration{3 * time.Second, 5 * time.Second}, f.finalized)
}

func TestBound(t *testing.T) {
	few, many := &watcher{looks: 10}, &watcher{looks: 10, full: 9}
	require.Equal(t, "the rate that was asked for", (&findings{}).bound(0.1, few, &runner{}))
	require.Contains(t, (&findings{}).bound(1000, few, &runner{}), "the processors")
	require.Contains(t, (&findings{}).bound(0.1, many, &runner{}), "JAM")
	require.Contains(t, (&findings{full: 0.95}).bound(0.1, few, &runner{}), "gas")
	require.Contains(t, (&findings{}).bound(0.1, few, &runner{late: time.Minute}), "sender")
}

func TestConfigValidate(t *testing.T) {
	good := Config{Rate: 1, Duration: time.Second, Accounts: 1}
	require.NoError(t, good.Validate())
	for _, change := range []func(*Config){
		func(c *Config) { c.Rate = 0 }, func(c *Config) { c.Duration = 0 }, func(c *Config) { c.Accounts = 0 }, func(c *Config) { c.Accounts = 1 << 20 },
	} {
		bad := good
		change(&bad)
		require.ErrorIs(t, bad.Validate(), ErrInvalidConfig)
	}
}
