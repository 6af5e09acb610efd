package bundlequeue

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
)

// MarkSubmitted says "send" only of what the queue watches: a package that a reorg overtook while it was built must stay where it is, or
// two packages of one block could be reported side by side.
func TestMarkSubmittedRefusesWhatWasOvertaken(t *testing.T) {
	s := newScene(t, nil)
	simple := NewSimple(s.q)
	step := func(ev Event) {
		t.Helper()
		_, err := simple.Step(s.now, ev)
		require.NoError(t, err)
	}
	step(Enqueue[string]{Number: 1, Bundle: "one"})
	job, ok := simple.Dequeue()
	require.True(t, ok)
	a6, _ := s.q.view.AtHeight(6)
	a7, _ := s.q.view.AtHeight(7)
	parent := a6.Hash
	for slot := jamq.Slot(17); slot <= 19; slot++ {
		h := jamq.HeaderHash{'b', byte(slot)}
		step(Imported{Block: jamq.Block{Hash: h, Parent: parent, Slot: slot}, Best: s.q.Best().Hash})
		parent = h
	}
	step(Imported{Block: jamq.Block{Hash: parent}, Best: parent})
	context := jamq.RefineContext{Anchor: a7.Hash, LookupAnchorSlot: 7, Prerequisites: job.Prerequisites}
	_, err := simple.MarkSubmitted(s.now, job, jamq.PackageHash{1}, context, "one")
	require.ErrorIs(t, err, ErrNotExpected)
	_, watched := s.q.view.Trace(jamq.PackageHash{1})
	require.False(t, watched)
}

// What a queue takes it can write down and read again.
func TestLimitsSurviveSnapshotsAndRecords(t *testing.T) {
	cfg := DefaultConfig(jamq.Tiny())
	cfg.MaxQueueDepth, cfg.FirstNumber = maxDepth, most-1
	q, err := New[string](cfg, jamq.Block{Hash: jamq.HeaderHash{'g'}})
	require.NoError(t, err)
	_, err = Restore[string](cfg, text{}, AppendSnapshot[string](nil, text{}, q))
	require.NoError(t, err)

	s := newScene(t, nil)
	s.step(Resize{Depth: maxDepth})
	_, _, err = DecodeRecord[string](text{}, s.records[len(s.records)-1])
	require.NoError(t, err)
	s.enqueue(1)
	s.step(Rekey{From: 1, To: most})
	_, err = Restore[string](s.q.cfg, text{}, AppendSnapshot[string](nil, text{}, s.q))
	require.NoError(t, err)
	require.ErrorIs(t, s.try(Rekey{From: most, To: most + 1}), ErrWrongNumber)
	require.ErrorIs(t, s.try(Resize{Depth: maxDepth + 1}), ErrUnknownEvent)
}

func TestConfigHasUpperLimits(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"FirstNumber":         func(c *Config) { c.FirstNumber = most },
		"MaxQueueDepth":       func(c *Config) { c.MaxQueueDepth = math.MaxInt },
		"ReservationTimeout":  func(c *Config) { c.ReservationTimeout = math.MaxInt64 },
		"SubmitRetryInterval": func(c *Config) { c.SubmitRetryInterval = math.MaxInt64 },
		"BackoffMax":          func(c *Config) { c.BackoffMax = math.MaxInt64 },
		"GuaranteeTimeout":    func(c *Config) { c.GuaranteeTimeout = math.MaxInt64 },
		"FailureHold":         func(c *Config) { c.FailureHold = math.MaxInt64 },
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

// A builder whose packages are dead on arrival has failed to build: it is asked less and less often, and in the end the bundle fails,
// instead of holding up all others for ever.
func TestStillbornPackagesAreFailedBuilds(t *testing.T) {
	for name, context := range map[string]func(Build[string]) jamq.RefineContext{
		"old lookup anchor": func(b Build[string]) jamq.RefineContext {
			return jamq.RefineContext{Anchor: b.Anchor.Hash, LookupAnchorSlot: 1, Prerequisites: b.Prerequisites}
		},
		"unknown anchor": func(b Build[string]) jamq.RefineContext {
			return jamq.RefineContext{Anchor: jamq.HeaderHash{0xee}, LookupAnchorSlot: 40, Prerequisites: b.Prerequisites}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, nil)
			s.blocks(40)
			s.enqueue(1)
			builds := 0
			for range 100 {
				for len(s.builds) > 0 {
					b := s.builds[0]
					s.builds = s.builds[1:]
					builds++
					s.step(Built[string]{Ticket: b.Ticket, Package: jamq.PackageHash{1, byte(builds)}, Context: context(b), Bundle: "x"})
				}
				s.now = s.now.Add(6 * time.Second)
				s.step(Tick{})
			}
			require.Equal(t, s.q.cfg.MaxVersionRetries+1, builds)
			require.Len(t, s.failed, 1)
			require.Empty(t, s.sends)
		})
	}
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

	told := newToldScene(t, nil)
	right = told.now
	told.now = right.Add(24 * time.Hour)
	told.ok(told.s.Step(told.now, Reserve{Number: 1}))
	told.ok(told.s.Enqueue(told.now, 1, [32]byte{}, "one"))
	told.submit()
	told.now = right
	told.wait(time.Second)
	told.wait(60 * time.Second)
	require.NotZero(t, told.s.Stats().Totals.Died+told.s.Stats().Totals.Sends-1, "time-outs run again")
}
