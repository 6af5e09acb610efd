//go:build unix

package page_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/examples/refnode/lab"
)

var (
	costFor  = flag.Duration("cost", 0, "how long TestDrawingCost measures; 0: not at all")
	costSlot = flag.Duration("cost.slot", 250*time.Millisecond, "length of a slot in TestDrawingCost")
)

// TestDrawingCost logs which share of a core the main thread of the page needs under load, with as
// many updates as a node sends at most, four a second. With the default slots the whole picture
// moves in each of them.
func TestDrawingCost(t *testing.T) {
	if *costFor == 0 {
		t.Skip("skipped: -cost says how long to measure")
	}
	b := openBrowser(t)
	s := serve(t, "127.0.0.1:0", *costSlot, func(cfg *lab.Config) {
		cfg.JAM.LossProbability, cfg.JAM.SkipProbability = 0.05, 0.08
		cfg.Spec.Cores, cfg.Spec.Validators = 3, 9
	})
	b.size(1280, 900, 1, false)
	b.open(s.url)
	b.wait(isLive, "the page does not come to life")
	s.traffic(200*time.Millisecond, func(int) int { return 1 })
	b.wait(count("5")+" > 20", "it flows")
	require.Empty(t, b.complaints())
	b.call("Performance.enable", map[string]any{"timeDomain": "threadTicks"}) // processor time
	before, began := b.metrics(), time.Now()
	updates := s.updates(*costFor)
	took := time.Since(began).Seconds()
	after := b.metrics()
	for _, name := range []string{"TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration"} {
		t.Logf("%-20s %5.2f %% of a core", name, 100*(after[name]-before[name])/took)
	}
	t.Logf("%.1f updates a second, %.0f elements", float64(updates)/took, after["Nodes"])
}

// updates counts the updates that the node sends during a time. It reads another stream than the
// page, which therefore has no work with it.
func (s *served) updates(during time.Duration) (count int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), during)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/live", nil)
	require.NoError(s.t, err)
	response, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	for err == nil {
		var line string
		if line, err = lines.ReadString('\n'); strings.HasPrefix(line, "data: {") {
			count++
		}
	}
	require.ErrorIs(s.t, err, context.DeadlineExceeded)
	return count
}

// metrics returns what Chromium measures, times in seconds.
func (b *browser) metrics() map[string]float64 {
	b.t.Helper()
	var all struct {
		Metrics []struct {
			Name  string
			Value float64
		}
	}
	require.NoError(b.t, json.Unmarshal(b.call("Performance.getMetrics", nil), &all))
	values := make(map[string]float64)
	for _, m := range all.Metrics {
		values[m.Name] = m.Value
	}
	return values
}
