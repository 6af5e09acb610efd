package bundlequeue

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jamq/jamq"
)

// moves returns everything that can happen next.
func (w *world) moves() []move {
	var out []move
	open := len(w.builds) + len(w.sends)
	if len(w.builds) > 0 {
		out = append(out, w.answerBuild(true))
		if w.left.failures > 0 {
			out = append(out, w.answerBuild(false))
		}
		if w.left.careless > 0 {
			out = append(out, w.carelessBuild(true), w.carelessBuild(false))
		}
	} else if len(w.sends) > 0 {
		out = append(out, w.answerSend(true))
		if w.left.failures > 0 {
			out = append(out, w.answerSend(false))
		}
		if w.left.outages > 0 && !w.everReported(int8(w.sends[0].Package[0])-1) {
			out = append(out, w.loseSend())
		}
	}
	if w.canFinalize() {
		if w.left.stalls == 0 {
			return []move{w.finalize()}
		}
		out = append(out, w.finalize())
	}
	if w.left.cores > 0 {
		out = append(out, w.changeCores())
	}
	for i := range w.blocks {
		if w.left.reorgs > 0 && int8(i) != w.best && w.blocks[i].height >= w.blocks[w.best].height && w.descends(int8(i), w.final) {
			out = append(out, w.reorg(int8(i)))
		}
	}
	if w.left.blocks > 0 && (open == 0 || w.left.delays > 0) {
		out = append(out, w.blockMoves(open > 0)...)
	}
	return out
}

func (w *world) answerBuild(ok bool) move {
	e := w.builds[0]
	return move{func() string { return fmt.Sprintf("%v: %v", e, ok) }, func(m *model, s *state, q *Queue) error {
		b := s.w.builds[0]
		s.w.builds = s.w.builds[1:]
		if q.builds[b.Ticket] == nil {
			return nil // it became pointless
		}
		if !ok {
			s.w.left.failures--
			return m.step(s, q, BuildFailed{Ticket: b.Ticket})
		}
		if b.Anchor.Hash == blockHash(s.w.best) {
			return fmt.Errorf("R1: %v is to be anchored to the newest block", b)
		}
		return m.built(s, q, b, int8(b.Anchor.Hash[0])-1)
	}}
}

// built hands the queue a new package.
func (m *model) built(s *state, q *Queue, b Build, anchor int8) error {
	pkg := wpackage{name: int8(b.Bundle[0] - '0'), anchor: anchor, look: s.w.lookup(anchor), needs: none}
	if len(b.Prerequisites) > 0 {
		pkg.needs = int8(b.Prerequisites[0][0]) - 1
	}
	s.w.packages = append(s.w.packages, pkg)
	built := Built{Ticket: b.Ticket, Package: packageHash(int8(len(s.w.packages) - 1)), Bundle: b.Bundle}
	built.Context = jamq.RefineContext{Anchor: blockHash(anchor), LookupAnchorSlot: jamq.Slot(pkg.look), Prerequisites: b.Prerequisites}
	return m.step(s, q, built)
}

// carelessBuild is a builder that uses an anchor older than MinAnchor, or
// returns an earlier package. The queue should refuse it. The builder then
// answers with BuildFailed.
func (w *world) carelessBuild(older bool) move {
	e := w.builds[0]
	return move{func() string { return fmt.Sprintf("%v: careless, older anchor: %v", e, older) }, func(m *model, s *state, q *Queue) error {
		b := s.w.builds[0]
		s.w.builds = s.w.builds[1:]
		s.w.left.careless--
		it := q.builds[b.Ticket]
		if it == nil {
			return nil
		}
		var err error
		if anchor := s.w.blocks[int8(b.Anchor.Hash[0])-1].parent; older && anchor != none {
			kept := s.w.packages
			if err = m.built(s, q, b, anchor); err != nil {
				s.w.packages = kept
			}
		} else if n := len(it.versions); !older && n > 0 {
			v := it.versions[n-1]
			err = m.step(s, q, Built{Ticket: b.Ticket, Package: v.pkg, Bundle: b.Bundle, Context: jamq.RefineContext{
				Anchor: b.Anchor.Hash, LookupAnchorSlot: b.Anchor.Slot, Prerequisites: b.Prerequisites,
			}})
		} else {
			return m.step(s, q, BuildFailed{Ticket: b.Ticket})
		}
		if errors.Is(err, ErrInadmissible) {
			return m.step(s, q, BuildFailed{Ticket: b.Ticket})
		}
		return err
	}}
}

func (w *world) answerSend(ok bool) move {
	e := w.sends[0]
	return move{func() string { return fmt.Sprintf("%v: %v", e, ok) }, func(m *model, s *state, q *Queue) error {
		e := s.w.sends[0]
		s.w.sends = s.w.sends[1:]
		if q.sends[e.Ticket] == nil {
			return nil
		}
		if !ok {
			s.w.left.failures--
		}
		return m.step(s, q, Sent{Ticket: e.Ticket, OK: ok})
	}}
}

// everReported reports whether a block of any fork reports a package.
func (w *world) everReported(pkg int8) bool {
	return slices.ContainsFunc(w.blocks, func(b wblock) bool { return slices.Contains(b.reported[:], pkg) })
}

// loseSend answers a send with a failure. The package never arrives.
func (w *world) loseSend() move {
	e := w.sends[0]
	return move{func() string { return fmt.Sprintf("%v: never arrives", e) }, func(m *model, s *state, q *Queue) error {
		e := s.w.sends[0]
		s.w.sends = s.w.sends[1:]
		s.w.left.outages--
		s.w.packages[e.Package[0]-1].sent = false
		if q.sends[e.Ticket] == nil {
			return nil
		}
		return m.step(s, q, Sent{Ticket: e.Ticket})
	}}
}

// changeCores takes core 1 out of the set, or puts it back.
func (w *world) changeCores() move {
	return move{func() string { return "change cores" }, func(m *model, s *state, q *Queue) error {
		s.w.left.cores--
		cores := []jamq.CoreIndex{0, 1}
		if len(q.cores.indices()) == len(cores) {
			cores = cores[:1]
		}
		return m.step(s, q, Cores{Cores: cores})
	}}
}

// finalDepth is how many blocks behind the best one finality may come: forks are two deep.
const finalDepth = 2

// canFinalize reports whether a block can become final. That happens at once, unless finality
// stalls.
func (w *world) canFinalize() bool {
	return int(w.blocks[w.best].height)-int(w.blocks[w.final].height) > finalDepth
}

func (w *world) finalize() move {
	return move{func() string { return "finalize" }, func(m *model, s *state, q *Queue) error {
		i := s.w.best
		for s.w.blocks[i].parent != s.w.final {
			i = s.w.blocks[i].parent
		}
		s.w.final = i
		return m.step(s, q, FinalizedBlock{Hash: blockHash(i)})
	}}
}

func (w *world) reorg(to int8) move {
	return move{func() string { return fmt.Sprintf("reorg to b%d", to) }, func(m *model, s *state, q *Queue) error {
		s.w.best = to
		s.w.left.reorgs--
		return m.step(s, q, Imported{Block: jamq.Block{Hash: blockHash(to)}, Best: blockHash(to)})
	}}
}

// blockMoves returns every block that can come next: on the best one, or on another that is not too
// deep.
func (w *world) blockMoves(delayed bool) []move {
	var out []move
	for i := range w.blocks {
		parent := int8(i)
		if !w.descends(parent, w.final) || int(w.blocks[w.best].height)-int(w.blocks[parent].height) > finalDepth {
			continue
		}
		fork := parent != w.best && w.hasChild(parent)
		if parent != w.best && (fork && w.left.forks == 0) {
			continue
		}
		for slots := uint8(1); slots <= 2; slots++ {
			if slots == 1 || w.left.skips > 0 {
				out = w.blocksOn(out, parent, slots, false, fork, delayed)
			}
		}
		if w.left.clears > 0 && w.blocks[parent].core != w.blocks[0].core {
			out = w.blocksOn(out, parent, 1, true, fork, delayed)
		}
	}
	return out
}

func (w *world) hasChild(i int8) bool {
	for k := range w.blocks {
		if w.blocks[k].parent == i {
			return true
		}
	}
	return false
}

// blocksOn appends the blocks on a parent: every choice of availability and of reports.
func (w *world) blocksOn(out []move, parent int8, slots uint8, clears, fork, delayed bool) []move {
	p := &w.blocks[parent]
	for mask := range 1 << worldCores {
		var available [worldCores]bool
		var choice [worldCores][]int8
		possible := true
		for c := range worldCores {
			available[c] = mask>>c&1 == 1
			occupied := p.core[c].pkg != none
			possible = possible && (occupied || !available[c])
			choice[c] = []int8{none}
			timedOut := occupied && p.slot+slots >= p.core[c].since+uint8(w.spec.AvailabilityTimeout)
			if !occupied || available[c] || timedOut || clears {
				for k := range w.packages {
					if w.packages[k].core == int8(c) && w.packages[k].sent {
						choice[c] = append(choice[c], int8(k))
					}
				}
			}
		}
		if !possible {
			continue
		}
		for _, a := range choice[0] {
			for _, b := range choice[1] {
				together := []int8{a, b}
				if a != none && !w.mayReport(a, parent, slots, together) || b != none && !w.mayReport(b, parent, slots, together) {
					continue
				}
				out = append(out, w.block(parent, slots, available, clears, [worldCores]int8{a, b}, fork, delayed))
			}
		}
	}
	return out
}

func (w *world) block(parent int8, slots uint8, available [worldCores]bool, clears bool, reported [worldCores]int8, fork, delayed bool) move {
	next := len(w.blocks)
	name := func() string {
		return fmt.Sprintf("block b%d on b%d after %d slots, available %v, clears cores: %v, reports %v", next, parent, slots, available, clears, reported)
	}
	return move{name, func(m *model, s *state, q *Queue) error {
		s.w.left.blocks--
		if s.w.canFinalize() {
			s.w.left.stalls--
		}
		if fork {
			s.w.left.forks--
		}
		if delayed {
			s.w.left.delays--
		}
		if slots > 1 {
			s.w.left.skips--
		}
		if clears {
			s.w.left.clears--
		}
		i, b := s.w.extend(parent, slots, available, clears, reported)
		if s.w.blocks[i].height > s.w.blocks[s.w.best].height {
			s.w.best = i
		}
		s.w.now = max(s.w.now, time.Duration(s.w.blocks[i].slot)*s.w.spec.SlotDuration)
		return m.step(s, q, Imported{Block: b, Best: blockHash(s.w.best)})
	}}
}

// fair returns the next move of a world in which nothing goes wrong: answers first, then finality,
// then a block that reports and makes available all that it can.
func (w *world) fair() move {
	switch {
	case len(w.builds) > 0:
		return w.answerBuild(true)
	case len(w.sends) > 0:
		return w.answerSend(true)
	case w.canFinalize():
		return w.finalize()
	}
	var best move
	most := -1
	p := &w.blocks[w.best]
	for _, a := range append([]int8{none}, w.onCore(0)...) {
		for _, b := range append([]int8{none}, w.onCore(1)...) {
			n, together := 0, []int8{a, b}
			for _, k := range together {
				if k != none && w.mayReport(k, w.best, 1, together) {
					n++
				} else if k != none {
					n = -9
				}
			}
			if n > most {
				most = n
				best = w.block(w.best, 1, [worldCores]bool{p.core[0].pkg != none, p.core[1].pkg != none}, false, [worldCores]int8{a, b}, false, false)
			}
		}
	}
	return best
}

// onCore returns the packages that were sent to a core.
func (w *world) onCore(core int8) []int8 {
	var out []int8
	for k := range w.packages {
		if w.packages[k].core == core && w.packages[k].sent {
			out = append(out, int8(k))
		}
	}
	return out
}
