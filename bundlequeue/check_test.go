package bundlequeue

import (
	"fmt"
	"testing"
	"time"

	"github.com/jamq/jamq"
)

// check returns what is wrong with a queue on a chain that obeys the rules, or nil. Tests call it
// after every step.
func (q *Queue) check() error {
	for _, it := range q.items {
		alive := 0
		for _, v := range it.versions {
			if !v.dead() {
				alive++
			}
		}
		if alive > 1 {
			return fmt.Errorf("B1: bundle %d has %d versions alive on one chain", it.number, alive)
		}
		if n := len(it.versions); n > q.cfg.maxVersions() {
			return fmt.Errorf("B6: bundle %d has %d packages, want at most %d", it.number, n, q.cfg.maxVersions())
		}
		if n := it.losses(); n > q.cfg.MaxVersionRetries+1 {
			return fmt.Errorf("bundle %d has lost %d packages, want at most %d", it.number, n, q.cfg.MaxVersionRetries+1)
		}
	}
	return q.Check()
}

// scene is a queue with a chain of hand-made blocks, on virtual time.
type scene struct {
	t       *testing.T
	q       *Queue
	now     time.Time
	log     []string // every effect
	builds  []Build
	sends   []Send
	failed  []Failed
	hashes  byte
	parent  jamq.HeaderHash
	slot    jamq.Slot
	records [][]byte // of every step that was taken
}

func newScene(t *testing.T, change func(*Config)) *scene {
	t.Helper()
	cfg := DefaultConfig(jamq.Tiny())
	if change != nil {
		change(&cfg)
	}
	root := jamq.Block{Hash: jamq.HeaderHash{'g'}}
	q, err := New(cfg, root)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, q: q, now: jamq.CommonEra(), parent: root.Hash}
	s.blocks(8) // an ordinary chain: anchors of any offset exist
	return s
}

// step feeds an event that must be taken, and keeps its effects.
func (s *scene) step(ev Event) {
	s.t.Helper()
	if err := s.try(ev); err != nil {
		s.t.Fatalf("%T refused: %v", ev, err)
	}
}

func (s *scene) try(ev Event) error {
	s.t.Helper()
	effects, err := s.q.Step(s.now, ev)
	for _, e := range effects {
		s.log = append(s.log, e.String())
		switch e := e.(type) {
		case Build:
			s.builds = append(s.builds, e)
		case Send:
			s.sends = append(s.sends, e)
		case Failed:
			s.failed = append(s.failed, e)
		}
	}
	if err := s.q.check(); err != nil {
		s.t.Fatalf("after %T: %v", ev, err)
	}
	if err == nil {
		record, err := AppendRecord(nil, s.now, ev)
		if err != nil {
			s.t.Fatal(err)
		}
		s.records = append(s.records, record)
	}
	return err
}

func (s *scene) enqueue(number uint64) {
	s.t.Helper()
	s.step(Enqueue{Number: number, Bundle: []byte(fmt.Sprintf("bundle %d", number))})
}

// block imports one block on the best chain, a slot later, as fill wants it.
func (s *scene) block(fill func(*jamq.Block)) jamq.HeaderHash {
	s.t.Helper()
	return s.blockOn(s.parent, s.slot+1, 'a', fill)
}

func (s *scene) blockOn(parent jamq.HeaderHash, slot jamq.Slot, fork byte, fill func(*jamq.Block)) jamq.HeaderHash {
	s.t.Helper()
	b := jamq.Block{Hash: jamq.HeaderHash{fork, byte(slot)}, Parent: parent, Slot: slot}
	if fill != nil {
		fill(&b)
	}
	s.slot, s.parent = slot, b.Hash
	s.now = s.now.Add(6 * time.Second)
	s.step(Imported{Block: b, Best: b.Hash})
	return b.Hash
}

func (s *scene) blocks(n int) {
	s.t.Helper()
	for range n {
		s.block(nil)
	}
}

// answer builds all requested packages.
func (s *scene) answer() {
	s.t.Helper()
	for len(s.builds) > 0 {
		b := s.builds[0]
		s.builds = s.builds[1:]
		s.hashes++
		s.step(Built{
			Ticket:  b.Ticket,
			Package: jamq.PackageHash{byte(b.Number), byte(b.Version), s.hashes},
			Context: jamq.RefineContext{Anchor: b.Anchor.Hash, LookupAnchorSlot: s.slot, Prerequisites: b.Prerequisites},
			Bundle:  b.Bundle,
		})
	}
}

// deliver confirms all sends and returns their packages.
func (s *scene) deliver() []jamq.PackageHash {
	s.t.Helper()
	var out []jamq.PackageHash
	for len(s.sends) > 0 {
		e := s.sends[0]
		s.sends = s.sends[1:]
		out = append(out, e.Package)
		s.step(Sent{Ticket: e.Ticket, OK: true})
	}
	return out
}

// run answers builds and sends until the queue asks for nothing more, and returns what was sent.
func (s *scene) run() []jamq.PackageHash {
	s.t.Helper()
	var out []jamq.PackageHash
	for len(s.builds)+len(s.sends) > 0 {
		s.answer()
		out = append(out, s.deliver()...)
	}
	return out
}

// otherFork imports a block beside the best chain.
func (s *scene) otherFork() jamq.HeaderHash {
	s.t.Helper()
	b := jamq.Block{Hash: jamq.HeaderHash{0xee}, Parent: s.parent, Slot: 1000}
	s.step(Imported{Block: b, Best: s.parent})
	return b.Hash
}

func (s *scene) state(number uint64) State {
	s.t.Helper()
	info, ok := s.q.Info(number)
	if !ok {
		s.t.Fatalf("bundle %d is not in the queue", number)
	}
	return info.State
}

func report(pkg jamq.PackageHash, core jamq.CoreIndex) func(*jamq.Block) {
	return func(b *jamq.Block) { b.Reported = append(b.Reported, jamq.Report{Package: pkg, Core: core}) }
}

func accumulate(pkg jamq.PackageHash, core jamq.CoreIndex) func(*jamq.Block) {
	return func(b *jamq.Block) {
		b.Available = append(b.Available, core)
		b.AccumulatedKnown = true
		b.Accumulated = append(b.Accumulated, pkg)
	}
}

// restart replaces the queue by one that is restored from its snapshot.
func (s *scene) restart() {
	s.t.Helper()
	q, err := Restore(s.q.cfg, s.q.AppendSnapshot(nil))
	if err != nil {
		s.t.Fatal(err)
	}
	s.q = q
}
