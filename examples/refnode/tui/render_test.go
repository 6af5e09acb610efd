package tui

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/examples/refnode/live"
)

var update = flag.Bool("update", false, "write the golden files anew")

func empty() *live.State {
	return &live.State{Node: live.Info{ChainID: "4359", JAM: "simulated, tiny", SlotMillis: 6000, Cores: 2}, Chain: live.Chain{Slot: 1000}}
}

// busy is a state with everything in it: a fork, skipped slots, a verdict, a dead version, bundles
// in all states.
func busy() *live.State {
	s := empty()
	s.Flow = live.Flow{Sent: 48, Pool: 3, Queue: 9, Cores: 10, Accumulated: 6, Finalized: 20, Rate: 1.6}
	s.Heads = live.Heads{Pending: 12, Latest: 7, Safe: 5, Finalized: 5}
	s.Fees = []live.Fee{{Base: 0.875, Floor: 1, Surge: 1.25, Full: 0.42}}
	for slot := jamq.Slot(985); slot <= 1000; slot++ {
		if slot != 988 && slot != 995 && slot != 1000 {
			s.Chain.Blocks = append(s.Chain.Blocks, live.Block{Slot: slot, Final: slot < 992})
		}
	}
	s.Chain.Blocks = append(s.Chain.Blocks, live.Block{Slot: 993, Lane: 1}, live.Block{Slot: 994, Lane: 1})
	s.Chain.Cores = []live.Core{
		{Core: 0, Reports: []live.Report{{From: 986, To: 987, Number: 5, Version: 1, End: "available"}, {From: 991, To: 996, Number: 6, Version: 1, End: "timeout"}, {From: 999, Number: 7, Version: 2}}},
		{Core: 1, Reports: []live.Report{{From: 990, To: 992, End: "available"}}},
	}
	mark := func(state string, slot jamq.Slot) live.Mark { return live.Mark{State: state, Slot: slot} }
	s.Bundles = live.Bundles{More: 2, Rows: []live.Bundle{
		{Number: 9, Txs: 5, State: "queued"},
		{Number: 8, Txs: 5, State: "submitted", Versions: []live.Version{{Version: 1, Marks: []live.Mark{mark("queued", 997), mark("building", 998), mark("sending", 998), mark("submitted", 999)}}}},
		{Number: 7, Txs: 1, State: "guaranteed", Versions: []live.Version{
			{Version: 1, Dead: "D2: unreported, anchor expired", Marks: []live.Mark{mark("queued", 985), mark("submitted", 986), mark("dead", 995)}},
			{Version: 2, Marks: []live.Mark{mark("queued", 995), mark("submitted", 997), mark("guaranteed", 999)}},
		}},
		{Number: 5, Txs: 4, State: "finalized", Versions: []live.Version{{Version: 1, Marks: []live.Mark{mark("queued", 900), mark("submitted", 985), mark("guaranteed", 986), mark("accumulated", 987), mark("finalized", 991)}}}},
	}}
	for i, kind := range []string{live.KindLab, live.KindDead, live.KindFinal, live.KindBack} {
		s.Events = append(s.Events, live.Event{ID: uint64(9 - i), At: 1_800_000_000_000 - int64(i)*1500, Kind: kind, Text: []string{"finality stands still", "block 7 v1 is dead, D2: unreported, anchor expired", "blocks 4–5 final", "JAM reorganized: 2 blocks replaced"}[i]})
	}
	return s
}

func TestRenderGolden(t *testing.T) {
	for name, x := range map[string]struct {
		state         *live.State
		width, height int
	}{
		"empty":  {empty(), 80, 24},
		"busy":   {busy(), 100, 32},
		"narrow": {busy(), 56, 20},
		"tiny":   {busy(), 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			text := ansi.Strip(Render(x.state, x.width, x.height, time.UTC)) + "\n"
			path := filepath.Join("testdata", name+".txt")
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), text)
		})
	}
}

// Whatever there is to show, it fits.
func TestRenderFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width, height := rapid.IntRange(-1, 200).Draw(t, "width"), rapid.IntRange(-1, 80).Draw(t, "height")
		s := busy()
		s.Chain.Slot = jamq.Slot(rapid.Uint32().Draw(t, "slot"))
		for range rapid.IntRange(0, 100).Draw(t, "events") {
			s.Events = append(s.Events, live.Event{Text: strings.Repeat("long ", 60)})
		}
		lines := strings.Split(Render(s, width, height, time.UTC), "\n")
		if len(lines) > max(height, leastHeight) {
			t.Fatalf("%d lines in %d", len(lines), height)
		}
		for _, line := range lines {
			if got := ansi.StringWidth(line); got > max(width, leastWidth) {
				t.Fatalf("%d columns in %d: %q", got, width, line)
			}
		}
	})
}

func TestLine(t *testing.T) {
	require.Equal(t, "slot 1000 | users 48 pool 3 queue 9 cores 10 accumulated 6 finalized 20 (1.6/s) | pending 12 latest 7 finalized 5", Line(busy()))
}

func TestPrice(t *testing.T) {
	for gwei, want := range map[float64]string{0: "0 gwei", 8e-9: "8 wei", 1e-4: "0.0001 gwei", 1.25: "1.25 gwei"} {
		require.Equal(t, want, price(gwei))
	}
}
