package bundlequeue

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

// givenEvidence is evidence that the test sets.
type givenEvidence struct {
	fates   map[jamq.PackageHash]*givenFate
	changed []jamq.PackageHash
}

// givenFate is a Fate that the test sets.
type givenFate struct {
	status  chainview.Status
	settled Settlement
	needs   []jamq.PackageHash
}

func (f *givenFate) Status() chainview.Status { return f.status }
func (f *givenFate) Standing() Standing {
	return Standing{Reported: !f.status.Reported.IsZero(), Accumulated: !f.status.Accumulated.IsZero(), Dead: f.status.Dead}
}
func (f *givenFate) Settled() Settlement                   { return f.settled }
func (f *givenFate) Prerequisites() []jamq.PackageHash     { return f.needs }
func (f *givenFate) Anchor() (a anchor.Point, s jamq.Slot) { return a, s }
func (f *givenFate) Sent(time.Time)                        {}

func (c *givenEvidence) Observe(time.Time, Event) ([]Effect, error) { return nil, ErrWrongEvidence }
func (c *givenEvidence) Advance(time.Time)                          {}
func (c *givenEvidence) NextWake() (t time.Time)                    { return t }
func (c *givenEvidence) Blocks() Blocks                             { return c }
func (c *givenEvidence) AppendSnapshot(b []byte) []byte             { return b }
func (c *givenEvidence) Forget(pkg jamq.PackageHash)                { delete(c.fates, pkg) }

func (c *givenEvidence) Watch(p Watched) (Fate, error) {
	f := &givenFate{needs: p.Context.Prerequisites}
	c.fates[p.Package] = f
	return f, nil
}

func (c *givenEvidence) Fate(pkg jamq.PackageHash) (Fate, bool) {
	f, ok := c.fates[pkg]
	return f, ok
}

func (c *givenEvidence) Changes(f func(jamq.PackageHash)) {
	for _, pkg := range c.changed {
		f(pkg)
	}
	c.changed = nil
}

func (c *givenEvidence) Best() (p anchor.Point)      { return p }
func (c *givenEvidence) Finalized() (p anchor.Point) { return p }
func (c *givenEvidence) Anchor(_ anchor.Point, offset int) (at anchor.Point, real int, ok bool) {
	return at, offset, true
}
func (c *givenEvidence) Locate(jamq.HeaderHash) (p anchor.Point, onBest bool) { return p, true }
func (c *givenEvidence) Knows(jamq.HeaderHash) bool                           { return true }
func (c *givenEvidence) Follow(Fate, int) Following                           { return Following{Possible: true, Name: true} }
func (c *givenEvidence) CoreFree(jamq.CoreIndex) bool                         { return true }

// prerequisite is the state of a package that another one names.
type prerequisite struct{ dead, reported, accumulated bool }

func (p prerequisite) String() string {
	return fmt.Sprintf("prerequisite dead %v, reported %v, accumulated %v", p.dead, p.reported, p.accumulated)
}

// status returns the status of such a package.
func (p prerequisite) status() (s chainview.Status) {
	if p.dead {
		s.Dead = anchor.Unavailable
	}
	if p.reported {
		s.Reported = anchor.Point{Hash: jamq.HeaderHash{1}}
	}
	if p.accumulated {
		s.Accumulated = anchor.Point{Hash: jamq.HeaderHash{2}}
	}
	return s
}

// TestWhatIsALoss gives a bundle that survives no loss one package that dies. The bundle fails if
// that is a loss, and otherwise gets another package. A death is a loss if a guarantor took or
// refused the package, and it died
//
//   - by D5 or by the clock;
//   - by D2, and the package that it names is alive and was reported or accumulated;
//   - by D6, and the package that it names is alive.
func TestWhatIsALoss(t *testing.T) {
	answers := map[string]Sent{"taken": {OK: true}, "refused": {Refused: true}, "not reached": {}}
	reached := map[string]bool{"taken": true, "refused": true}
	needs := []prerequisite{{}, {reported: true}, {accumulated: true}, {reported: true, accumulated: true}, {dead: true}, {dead: true, reported: true}}
	for reason := anchor.OtherFork; reason <= anchor.ClockExpired; reason++ {
		for answer, ev := range answers {
			for _, need := range needs {
				loss := reached[answer]
				switch reason {
				case anchor.Unavailable, anchor.ClockExpired:
				case anchor.AnchorExpired:
					loss = loss && !need.dead && (need.reported || need.accumulated)
				case anchor.NeverReady:
					loss = loss && !need.dead
				default:
					loss = false
				}
				t.Run(fmt.Sprintf("%v, %s, %v", reason, answer, need), func(t *testing.T) {
					require.Equal(t, loss, failsAfter(t, reason, ev, need.status()))
				})
			}
		}
	}
}

// failsAfter reports whether a bundle that survives no loss fails after a death.
func failsAfter(t *testing.T, reason anchor.Reason, answer Sent, need chainview.Status) bool {
	c := &givenEvidence{fates: make(map[jamq.PackageHash]*givenFate)}
	cfg := DefaultConfig(jamq.Tiny())
	cfg.MaxVersionRetries = 0
	q, err := NewWith(cfg, c)
	require.NoError(t, err)
	step := func(ev Event) []Effect {
		effects, err := q.Step(jamq.CommonEra(), ev)
		require.NoError(t, err)
		require.NoError(t, q.check())
		return effects
	}
	foreign, pkg := jamq.PackageHash{9}, jamq.PackageHash{1}
	c.fates[foreign] = &givenFate{status: need}
	build := step(Enqueue{Number: 1})[1].(Build)
	effects := step(Built{Ticket: build.Ticket, Package: pkg, Context: jamq.RefineContext{Prerequisites: []jamq.PackageHash{foreign}}})
	answer.Ticket = effects[len(effects)-1].(Send).Ticket
	step(answer)
	c.fates[pkg].status.Dead, c.fates[pkg].settled, c.changed = reason, SettledDead, []jamq.PackageHash{pkg}
	effects = step(Tick{})
	switch last := effects[len(effects)-1].(type) {
	case Failed:
		return true
	case Build:
		require.Equal(t, 2, last.Version)
	default:
		t.Fatalf("have %v, want a failure or another build", effects)
	}
	return false
}

// A bundle gets MaxVersionRetries packages after its first lost one, and fails with the next loss.
func TestFailsAfterTheLastRetry(t *testing.T) {
	for retries := range 4 {
		s := newScene(t, func(c *Config) { c.MaxVersionRetries = retries })
		s.enqueue(1)
		sent := make(map[jamq.PackageHash]bool)
		for range 100 {
			for _, pkg := range s.run() {
				sent[pkg] = true
			}
			if len(s.failed) > 0 {
				break
			}
			s.block(nil)
			s.step(FinalizedBlock{Hash: s.parent})
		}
		require.Len(t, s.failed, 1, "retries %d", retries)
		require.Len(t, sent, retries+1)
		require.Equal(t, fmt.Sprintf("block 1: %d packages lost", retries+1), s.failed[0].Reason)
	}
}

// Builds that fail and packages that are of no use are no losses, whatever their number.
func TestOnlyLossesEndABundle(t *testing.T) {
	s := newScene(t, func(c *Config) { c.MaxVersionRetries = 0 })
	other := s.otherFork()
	s.enqueue(1)
	for i := range 20 {
		for len(s.builds) > 0 {
			b := s.builds[0]
			s.builds = nil
			if i%2 == 0 {
				s.step(BuildFailed{Ticket: b.Ticket})
				continue
			}
			s.hashes++
			s.step(Built{Ticket: b.Ticket, Package: jamq.PackageHash{s.hashes, 2}, Context: jamq.RefineContext{Anchor: other}})
		}
		s.now = s.now.Add(time.Minute)
		s.block(nil)
		s.step(FinalizedBlock{Hash: s.parent})
	}
	require.Empty(t, s.failed)
	require.Len(t, s.run(), 1, "it goes on as soon as a build succeeds")
	require.Equal(t, Submitted, s.state(1))
}

// After a loss a reorg may bring the package back to life. Then it is no loss any more.
func TestLossIsTakenBackByAReorg(t *testing.T) {
	s := newScene(t, func(c *Config) { c.MaxVersionRetries = 0 })
	s.enqueue(1)
	pkg := s.run()[0]
	fork := s.block(nil)
	s.blocks(2)
	delay, _ := s.q.Delayed()
	require.Equal(t, "1 packages are lost, and their death is not final", delay.Reason)
	s.blockOn(fork, 20, 'b', report(pkg, 0))
	s.blockOn(s.parent, 21, 'b', nil)
	require.Equal(t, Guaranteed, s.state(1))
	s.step(FinalizedBlock{Hash: fork})
	require.Empty(t, s.failed)
	require.Zero(t, s.q.items[0].losses())
}
