package ops

import (
	"context"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/examples/refnode/node"
	"github.com/jamq/jamq/internal/wait"
)

// running starts a node with metrics and returns it with its server for operators. The node stops
// when the returned function is called.
func running(t *testing.T, profilesFor []string) (*node.Node, *httptest.Server, func()) {
	m := New()
	cfg := node.DefaultConfig(jamq.Tiny(), 50*time.Millisecond, 1)
	cfg.Metrics = m.Hooks()
	n, err := node.New(cfg)
	require.NoError(t, err)
	m.Watch(n)
	server := httptest.NewServer(Handler(n, m, profilesFor, http.NotFoundHandler()))
	t.Cleanup(server.Close)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	end := func() {
		stop()
		if ended != nil {
			<-ended
			ended = nil
		}
	}
	t.Cleanup(end)
	return n, server, end
}

func get(t *testing.T, url string) (int, string) {
	response, err := http.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

func pay(t *testing.T, n *node.Node, nonce uint64) {
	tx, err := types.SignNewTx(n.Accounts()[0].Key, types.LatestSigner(n.ChainConfig()), &types.LegacyTx{
		Nonce: nonce, GasPrice: big.NewInt(20e9), Gas: 21_000, To: &common.Address{1},
	})
	require.NoError(t, err)
	require.NoError(t, n.SendTransaction(tx))
}

// Every metric that the dashboard and docs/operations.md name is there, in a form that Prometheus
// reads, once a transaction is final.
func TestMetrics(t *testing.T) {
	n, server, _ := running(t, nil)
	pay(t, n, 0)
	wait.Until(t, func() bool {
		now, err := n.Levels(t.Context())
		return err == nil && now.Heads.Finalized.Number == 1
	}, "the transaction is final")
	status, text := get(t, server.URL+"/metrics")
	require.Equal(t, http.StatusOK, status)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(t, err)
	require.EqualValues(t, 1, families["jamq_txpool_admitted_total"].Metric[0].Counter.GetValue())
	require.EqualValues(t, 1, families["jamq_submit_build_seconds"].Metric[0].Histogram.GetSampleCount())
	require.Positive(t, families["jamq_jam_slot"].Metric[0].Gauge.GetValue())

	name := regexp.MustCompile(`\b(jamq|go|process)_[a-z_]+\b`)
	suffix := regexp.MustCompile(`_bucket$`)
	later := map[string]bool{ // those with labels come with the first event
		"jamq_txpool_rejected_total": true, "jamq_txpool_dropped_total": true,
	}
	for _, file := range []string{"grafana.json", "../../../docs/operations.md"} {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		used := name.FindAllString(string(raw), -1)
		require.Greater(t, len(used), 10)
		for _, metric := range used {
			metric = suffix.ReplaceAllString(metric, "")
			if strings.HasPrefix(metric, "jamq_eoa_") {
				continue // a fleet's: examples/relayer/ops has them, and tests them
			}
			require.True(t, families[metric] != nil || later[metric], "%s names %s, which the node does not have", file, metric)
		}
	}
}

func TestDashboardIsJSON(t *testing.T) {
	raw, err := os.ReadFile("grafana.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct{ Title string }
	}
	require.NoError(t, json.Unmarshal(raw, &dashboard))
	require.NotEmpty(t, dashboard.Panels)
}

// A node is alive from its first moment, ready once it has seen the JAM chain, and neither when it
// has stopped.
func TestHealth(t *testing.T) {
	_, server, stop := running(t, nil)
	// A node that is not given the processor for some slots is not ready for a moment.
	wait.Until(t, func() bool {
		status, text := get(t, server.URL+"/readyz")
		return status == http.StatusOK && text == "ok\n"
	}, "the node is ready")
	status, text := get(t, server.URL+"/healthz")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "ok\n", text)
	stop()
	for _, path := range []string{"/healthz", "/readyz"} {
		status, text := get(t, server.URL+path)
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Contains(t, text, "not running")
	}
	status, text = get(t, server.URL+"/metrics")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, "jamq_submit_running 0")
}

func TestProfilesOnlyIfAskedFor(t *testing.T) {
	for name, x := range map[string]struct {
		hosts []string
		host  string
		want  int
	}{
		"nobody":       {nil, "", http.StatusNotFound},
		"by address":   {[]string{}, "", http.StatusOK},
		"by name":      {[]string{"localhost"}, "localhost:8545", http.StatusOK},
		"rebound name": {[]string{"localhost"}, "evil.example", http.StatusForbidden},
	} {
		_, server, _ := running(t, x.hosts)
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/cmdline"} {
			request, err := http.NewRequest(http.MethodGet, server.URL+path, nil)
			require.NoError(t, err)
			request.Host = x.host
			response, err := http.DefaultClient.Do(request)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, x.want, response.StatusCode, name+path)
		}
	}
}
