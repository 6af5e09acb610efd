package ops

import (
	"context"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/examples/internal/opstest"
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

// metrics returns the metrics that a node serves.
func metrics(t *testing.T, server *httptest.Server) opstest.Metrics {
	status, text := get(t, server.URL+"/metrics")
	require.Equal(t, http.StatusOK, status)
	return opstest.Read(t, text)
}

func pay(t *testing.T, n *node.Node, nonce uint64) {
	tx, err := types.SignNewTx(n.Accounts()[0].Key, types.LatestSigner(n.ChainConfig()), &types.LegacyTx{
		Nonce: nonce, GasPrice: big.NewInt(20e9), Gas: 21_000, To: &common.Address{1},
	})
	require.NoError(t, err)
	require.NoError(t, n.SendTransaction(tx))
}

// A node has the metrics of a transaction that is final.
func TestMetrics(t *testing.T) {
	n, server, _ := running(t, nil)
	pay(t, n, 0)
	wait.Until(t, func() bool {
		now, err := n.Levels(t.Context())
		return err == nil && now.Heads.Finalized.Number == 1
	}, "the transaction is final")
	m := metrics(t, server)
	require.EqualValues(t, 1, m["jamq_txpool_admitted_total"].Metric[0].Counter.GetValue())
	require.EqualValues(t, 1, m["jamq_submit_build_seconds"].Metric[0].Histogram.GetSampleCount())
	require.Positive(t, m["jamq_jam_slot"].Metric[0].Gauge.GetValue())
	require.InDelta(t, 0.05, m["jamq_jam_slot_length_seconds"].Metric[0].Gauge.GetValue(), 1e-9)
	require.EqualValues(t, 1, m["jamq_node_alive"].Metric[0].Gauge.GetValue())
	require.EqualValues(t, 1, m["jamq_jam_feed_nodes"].Metric[0].Gauge.GetValue())
}

// all returns the metrics of a node that is ready, and one series for each counter with a label,
// which a node has from the first event on.
func all(t *testing.T) opstest.Metrics {
	n, server, _ := running(t, nil)
	wait.Until(t, func() bool { return n.Ready() == nil }, "the node is ready")
	found, m := metrics(t, server), New()
	for _, counter := range m.counters {
		counter("a value").Add(1)
	}
	counted, err := m.registry.Gather()
	require.NoError(t, err)
	for _, family := range counted {
		if found[family.GetName()] == nil {
			found[family.GetName()] = family
		}
	}
	return found
}

// operations is the page for operators.
const operations = "../../../docs/operations.md"

// Each metric is explained, and each one that the dashboard or the page for operators names exists.
// Those of a fleet are in examples/relayer/ops.
func TestExplained(t *testing.T) {
	m := all(t)
	m.Explained(t)
	require.Greater(t, len(m.Name(t, "grafana.json")), 10)
	require.Greater(t, len(m.Name(t, operations, "jamq_eoa_")), 10)
}

func TestAlerts(t *testing.T) { all(t).Alerts(t, operations) }

// No value that a package measures is ignored. The test reads the names from the source.
func TestEachMeasurementIsAMetric(t *testing.T) {
	m := New()
	constant := regexp.MustCompile(`(?m)^\t(Count|\w+Seconds)\w* += "(\w+)"$`)
	for pkg, prefix := range map[string]string{"builder": "submit", "statedb": "statedb"} {
		found := 0
		files, err := filepath.Glob("../../../" + pkg + "/*.go")
		require.NoError(t, err)
		for _, file := range files {
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, c := range constant.FindAllStringSubmatch(string(raw), -1) {
				found++
				name := prefix + "/" + c[2]
				if c[1] == "Count" {
					require.NotNil(t, m.counters[name], "%s", name)
				} else {
					require.NotNil(t, m.times[name], name)
				}
			}
		}
		require.Greater(t, found, 3, pkg)
	}
}

func TestBuildLabels(t *testing.T) {
	require.Equal(t, prometheus.Labels{"version": "unknown", "goversion": "unknown", "revision": "unknown"}, buildLabels(nil))
	info := &debug.BuildInfo{GoVersion: "go1.25.0", Main: debug.Module{Version: "v0.1.0"}}
	require.Equal(t, prometheus.Labels{"version": "v0.1.0", "goversion": "go1.25.0", "revision": "unknown"}, buildLabels(info))
	info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "false"}}
	require.Equal(t, "abc", buildLabels(info)["revision"])
	info.Settings[1].Value = "true"
	require.Equal(t, "abc-dirty", buildLabels(info)["revision"])
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
