package jip2server_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/journal"
)

// A server that restarts after its faults were changed and a script was injected has the same chain
// and the same faults, and continues as a server that did not restart.
func TestJournalOfFaults(t *testing.T) {
	dir := t.TempDir()
	open := func(name string) (*jip2server.Server, *journal.File) {
		file, err := journal.Open(filepath.Join(dir, name))
		require.NoError(t, err)
		cfg := jip2server.DefaultConfig(jamtest.DefaultConfig(jamq.Tiny(), 7))
		cfg.Chain.FinalityLag, cfg.Journal = 4, file
		s, err := jip2server.New(cfg)
		require.NoError(t, err)
		return s, file
	}
	reorg, err := jamtest.ParseScript("at 2 fork 3\nat 2 reorg\nat 2 abandon")
	require.NoError(t, err)
	changes := []func(s *jip2server.Server){
		func(s *jip2server.Server) {
			require.NoError(t, s.ChangeFaults(func(f *jamtest.Faults) { f.SkipProbability = 0.5 }))
		},
		func(s *jip2server.Server) { require.NoError(t, s.Inject(reorg)) },
		func(s *jip2server.Server) {
			require.NoError(t, s.ChangeFaults(func(f *jamtest.Faults) {
				f.LossProbability, f.ReportLatency, f.FinalityStopped = 0.25, [2]jamq.Slot{2, 9}, true
			}))
		},
		func(s *jip2server.Server) {
			require.NoError(t, s.ChangeFaults(func(f *jamtest.Faults) { f.FinalityStopped, f.Congested = false, true }))
		},
		func(*jip2server.Server) {},
	}
	calm, calmFile := open("calm")
	defer func() { require.NoError(t, calmFile.Close()) }()
	for i, change := range changes {
		step(t, calm, 8)
		change(calm)
		s, file := open("restarts")
		step(t, s, 8)
		change(s)
		require.NoError(t, file.Close())
		s, file = open("restarts")
		require.Equal(t, head(calm), head(s), "restart %d", i)
		require.Equal(t, faults(calm), faults(s), "restart %d", i)
		require.NoError(t, file.Close())
	}
	require.Equal(t, jamtest.Faults{
		LossProbability: 0.25, SkipProbability: 0.5, ReportLatency: [2]jamq.Slot{2, 9}, Congested: true,
	}, faults(calm))
}

func head(s *jip2server.Server) (best jamq.Block) {
	s.View(func(c *jamtest.Chain) { best = c.Best() })
	return best
}

func faults(s *jip2server.Server) (f jamtest.Faults) {
	s.View(func(c *jamtest.Chain) { f = c.Faults() })
	return f
}

// failing is a journal whose disk is full.
type failing struct{ err error }

func (f *failing) Append(...[]byte) error               { return f.err }
func (*failing) Replay(func(record []byte) error) error { return nil }

// Faults that are invalid or cannot be written down change nothing.
func TestFaultsRefused(t *testing.T) {
	full := new(failing)
	s, _ := start(t, func(cfg *jip2server.Config) { cfg.Journal = full })
	before := faults(s)
	err := s.ChangeFaults(func(f *jamtest.Faults) { f.LossProbability = 2 })
	require.ErrorIs(t, err, jamtest.ErrInvalidConfig)
	require.Equal(t, before, faults(s))

	full.err = errors.New("disk full")
	require.ErrorIs(t, s.ChangeFaults(func(f *jamtest.Faults) { f.LossProbability = 1 }), full.err)
	require.Equal(t, before, faults(s))
	script, err := jamtest.ParseScript("at 1 skip 5")
	require.NoError(t, err)
	require.ErrorIs(t, s.Inject(script), full.err)
	full.err = nil
	slot := head(s).Slot
	step(t, s, 1)
	require.Equal(t, slot+1, head(s).Slot, "no slot is skipped")
}
