package bundlequeue

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// A queue can write down and read again every event that it accepts.
func TestLimitsSurviveSnapshotsAndRecords(t *testing.T) {
	cfg := DefaultConfig(jamq.Tiny())
	cfg.MaxQueueDepth, cfg.FirstNumber = maxDepth, most-1
	q, err := New(cfg, jamq.Block{Hash: jamq.HeaderHash{'g'}})
	require.NoError(t, err)
	_, err = Restore(cfg, q.AppendSnapshot(nil))
	require.NoError(t, err)

	s := newScene(t, nil)
	s.enqueue(1)
	s.step(Rekey{From: 1, To: most})
	_, err = Restore(s.q.cfg, s.q.AppendSnapshot(nil))
	require.NoError(t, err)
	require.ErrorIs(t, s.try(Rekey{From: most, To: most + 1}), ErrWrongNumber)
}

func TestConfigHasUpperLimits(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"FirstNumber":         func(c *Config) { c.FirstNumber = most },
		"MaxQueueDepth":       func(c *Config) { c.MaxQueueDepth = math.MaxInt },
		"ReservationTimeout":  func(c *Config) { c.ReservationTimeout = math.MaxInt64 },
		"SubmitRetryInterval": func(c *Config) { c.SubmitRetryInterval = math.MaxInt64 },
		"BackoffMax":          func(c *Config) { c.BackoffMax = math.MaxInt64 },
	} {
		cfg := DefaultConfig(jamq.Tiny())
		change(&cfg)
		require.ErrorIs(t, cfg.Validate(), ErrInvalidConfig, name)
	}
	cfg := DefaultConfig(jamq.Tiny())
	cfg.BackoffMax = longest
	require.NoError(t, cfg.Validate())
	now := instant(jamq.CommonEra().UnixNano())
	for i := 1; i < 200; i++ {
		require.Greater(t, now+cfg.backoff(i, 7), now, "after %d failures", i)
	}
}

// A number that is final is never given again, also when the bundle is forgotten.
func TestRekeyNeverReachesFinalNumbers(t *testing.T) {
	s := newScene(t, func(c *Config) { c.RetentionWindow = 0 })
	s.enqueue(1)
	pkgs := s.run()
	s.block(report(pkgs[0], 0))
	h := s.block(func(b *jamq.Block) { b.Available = []jamq.CoreIndex{0} })
	s.enqueue(2)
	s.step(FinalizedBlock{Hash: h})
	_, held := s.q.Info(1)
	require.False(t, held, "final and forgotten")
	require.ErrorIs(t, s.try(Rekey{From: 2, To: 1}), ErrWrongNumber)
}

// Packages that are dead when they are ready delay a bundle and never fail it, whatever the reason.
// A Died effect gives the reason each time, and the queue asks again only once something has
// changed.
func TestUselessBuildsDelay(t *testing.T) {
	for name, c := range map[string]struct {
		context func(Build) jamq.RefineContext
		reason  anchor.Reason
		waits   string
	}{
		"old lookup anchor": {func(b Build) jamq.RefineContext {
			return jamq.RefineContext{Anchor: b.Anchor.Hash, LookupAnchorSlot: 1, Prerequisites: b.Prerequisites}
		}, anchor.LookupExpired, "finality does not move"},
		"anchor on another fork": {func(b Build) jamq.RefineContext {
			return jamq.RefineContext{Anchor: jamq.HeaderHash{0xee}, LookupAnchorSlot: 40, Prerequisites: b.Prerequisites}
		}, anchor.OtherFork, "no new block"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, nil)
			s.blocks(39)
			s.otherFork()
			s.block(nil)
			s.enqueue(1)
			builds := 0
			answer := func() {
				for len(s.builds) > 0 {
					b := s.builds[0]
					s.builds = s.builds[1:]
					builds++
					s.log = nil
					s.step(Built{Ticket: b.Ticket, Package: jamq.PackageHash{1, byte(builds)}, Context: c.context(b), Bundle: []byte("x")})
					require.Contains(t, s.log[0], fmt.Sprintf("dead 1v%d since", builds))
					require.Contains(t, s.log[0], c.reason.String())
				}
			}
			for range 100 { // time passes, and nothing else
				answer()
				s.now = s.now.Add(6 * time.Second)
				s.step(Tick{})
			}
			require.Equal(t, 1, builds)
			for range 30 {
				s.block(nil)
				answer()
				s.step(FinalizedBlock{Hash: s.parent})
				answer()
			}
			require.GreaterOrEqual(t, builds, 30)
			require.Empty(t, s.failed)
			require.Empty(t, s.sends)
			delay, delayed := s.q.Delayed()
			require.True(t, delayed)
			require.Equal(t, builds, delay.UselessBuilds)
			require.Contains(t, delay.Reason, c.waits)
			require.Equal(t, uint64(builds), s.q.Stats().Totals.Useless)
			require.Zero(t, s.q.Stats().Totals.Died)
		})
	}
}

// An anchor that no imported block has is a mistake of the host and no reorg. The request stays
// open, so the host can name another block or import the one that it named.
func TestUnknownAnchor(t *testing.T) {
	s := newScene(t, nil)
	s.blocks(3)
	s.enqueue(1)
	b := s.builds[0]
	built := Built{Ticket: b.Ticket, Package: jamq.PackageHash{1}, Context: jamq.RefineContext{Anchor: jamq.HeaderHash{0xee}}}
	err := s.try(built)
	require.ErrorIs(t, err, ErrUnknownAnchor)
	require.ErrorIs(t, err, ErrInadmissible)
	require.ErrorContains(t, err, fmt.Sprint(built.Context.Anchor))
	require.ErrorContains(t, err, fmt.Sprint(s.q.Best().Hash))
	require.True(t, s.q.Expects(b.Ticket))
	require.Zero(t, s.q.Stats().Totals.Useless)
	s.step(Imported{Block: jamq.Block{Hash: built.Context.Anchor, Parent: s.parent, Slot: 1000}, Best: s.parent})
	require.NoError(t, s.try(built), "now it is on another fork")
	require.Equal(t, uint64(1), s.q.Stats().Totals.Useless)
}

// One wrong reading of the clock does not stop the queue for as long as it was off.
func TestClockJumpsAndComesBack(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	s.run()
	right := s.now
	s.now = right.Add(24 * time.Hour)
	s.step(Tick{})
	s.run()
	sent := s.q.Stats().Totals.Sends
	s.now = right.Add(time.Second)
	s.step(Tick{})
	s.now = right.Add(2 * time.Minute)
	s.step(Tick{})
	require.Greater(t, s.q.Stats().Totals.Sends, sent)
}

// B6 while finality stands still and no guarantor can be reached: a bundle has a bounded number of
// packages, and goes on once finality moves.
func TestB6UnsettledVersionsAreBounded(t *testing.T) {
	s := newScene(t, func(c *Config) { c.MaxVersionRetries = 0 })
	s.enqueue(1)
	for range 200 {
		s.answer()
		for _, e := range s.sends {
			s.step(Sent{Ticket: e.Ticket}) // check counts the versions after each step
		}
		s.sends = nil
		s.block(nil)
	}
	info, _ := s.q.Info(1)
	require.Len(t, info.Versions, s.q.cfg.maxVersions())
	delay, _ := s.q.Delayed()
	require.Contains(t, delay.Reason, "finality has not settled them")
	s.step(FinalizedBlock{Hash: s.parent})
	s.block(nil)
	require.Len(t, s.builds, 1)
	require.Empty(t, s.failed)
	info, _ = s.q.Info(1)
	require.Empty(t, info.Versions, "what is settled and not lost is forgotten")
	require.False(t, s.builds[0].MinAnchor.IsZero(), "but not where it died")
}
