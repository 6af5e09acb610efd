package command

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/jamtest/jip2server"
)

func newServer(t *testing.T) *jip2server.Server {
	t.Helper()
	chain := jamtest.DefaultConfig(jamq.Tiny(), 1)
	chain.FinalityLag = 4
	s, err := jip2server.New(jip2server.DefaultConfig(chain))
	require.NoError(t, err)
	return s
}

// Each command has its effect on the chain, and an answer.
func TestCommands(t *testing.T) {
	s := newServer(t)
	var out strings.Builder
	commands := "loss 1\n\n skip 0.5 \nlatency 7\nfinality stop\nhelp\n"
	require.NoError(t, obey(s, strings.NewReader(commands), &out))
	require.Equal(t, "ok: loss 1\nok: skip 0.5\nok: latency 7\nok: finality stop\n"+commandHelp, out.String())
	s.View(func(c *jamtest.Chain) {
		require.Equal(t, jamtest.Faults{
			LossProbability: 1, SkipProbability: 0.5, ReportLatency: [2]jamq.Slot{7, 7}, FinalityStopped: true,
		}, c.Faults())
	})
	out.Reset()
	require.NoError(t, obey(s, strings.NewReader("finality go\nskip 0"), &out))
	require.Equal(t, "ok: finality go\nok: skip 0\n", out.String())
	s.View(func(c *jamtest.Chain) { require.False(t, c.Faults().FinalityStopped) })
}

// After "reorg 2" the two best blocks are not on the best chain any more.
func TestReorgCommand(t *testing.T) {
	s := newServer(t)
	advance := func(slots int) (best jamq.Block) {
		for range slots {
			_, err := s.Step()
			require.NoError(t, err)
		}
		s.View(func(c *jamtest.Chain) { best = c.Best() })
		return best
	}
	below, parent := advance(5), advance(1)
	top := advance(1)
	var out strings.Builder
	require.NoError(t, obey(s, strings.NewReader("reorg 2\n"), &out))
	require.Equal(t, "ok: reorg 2\n", out.String())
	best := advance(4)
	s.View(func(c *jamtest.Chain) {
		require.True(t, c.Contains(best.Hash, below.Hash))
		require.False(t, c.Contains(best.Hash, parent.Hash))
		require.False(t, c.Contains(best.Hash, top.Hash))
	})
}

// A script's fault is counted from the current slot.
func TestScriptCommand(t *testing.T) {
	s := newServer(t)
	var out strings.Builder
	require.NoError(t, obey(s, strings.NewReader("at 2 skip 3\n"), &out))
	var blocks []bool
	for range 6 {
		u, err := s.Step()
		require.NoError(t, err)
		blocks = append(blocks, len(u.Imported) > 0)
	}
	require.Equal(t, []bool{true, false, false, false, true, true}, blocks)
}

// A command that is wrong changes nothing, and the answer names it.
func TestWrongCommands(t *testing.T) {
	for _, line := range []string{"loss 2", "loss", "loss much", "skip 1", "latency 0", "latency x", "finality", "finality on", "reorg 0", "reorg x", "at 1 burn 3", "at", "kill 1"} {
		s := newServer(t)
		var before jamtest.Faults
		s.View(func(c *jamtest.Chain) { before = c.Faults() })
		var out strings.Builder
		require.NoError(t, obey(s, strings.NewReader(line), &out))
		require.True(t, strings.HasPrefix(out.String(), "error: "+line+": "), "%s", &out)
		require.Equal(t, 1, strings.Count(out.String(), "\n"), "%s", &out)
		s.View(func(c *jamtest.Chain) { require.Equal(t, before, c.Faults()) })
	}
}
