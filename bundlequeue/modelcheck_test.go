package bundlequeue

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/internal/wire"
)

var (
	modelSize   = flag.String("modelcheck", "small", "size of TestModelCheck: small, medium or full")
	modelBudget = flag.String("modelcheck.budget", "", "the only search of TestModelCheck, as in blocks=6,forks=1,retries=0")
)

// modelBundles is how many rollup blocks the model has.
const modelBundles = 3

// modelConfig is the configuration of the model's queue. The same bytes are never sent twice,
// because a second send could add nothing: a package that was sent once may be reported at any
// time.
func modelConfig(retries, lookup int) Config {
	cfg := DefaultConfig(worldSpec(3, lookup))
	cfg.MaxVersionRetries = retries
	cfg.MaxSubmitRetries = 0
	return cfg
}

// state is a node of the graph that the model checker searches.
type state struct {
	w     world
	queue []byte // its snapshot: that it restores the queue exactly is checked along the way
	key   uint64 // hash of both
	trace *step  // how it was reached
}

// step is a move and the steps before it.
type step struct {
	before *step
	text   func() string
}

func (s *step) String() string {
	var lines []string
	for ; s != nil; s = s.before {
		lines = append(lines, s.text())
	}
	var b strings.Builder
	for i := len(lines) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "%3d %s\n", len(lines)-i, lines[i])
	}
	return b.String()
}

// model searches all states that the moves reach.
type model struct {
	cfg Config
	// The search plays on from those ends whose key it divides. The workers reach the ends in any
	// order, so only the keys make the same sample in each run.
	sample  uint64
	visited [256]struct {
		sync.Mutex
		m map[uint64]struct{}
	}
	lowest struct { // the end with the lowest key
		sync.Mutex
		end *state
	}
	states, moves, ends, proved atomic.Int64
	failure                     atomic.Pointer[string]
}

func newModel(retries, lookup int, sample uint64) *model {
	m := &model{cfg: modelConfig(retries, lookup), sample: sample}
	for i := range m.visited {
		m.visited[i].m = make(map[uint64]struct{})
	}
	return m
}

// run searches breadth first from the start.
func (m *model) run(left budget) error {
	start, err := m.start(left)
	if err != nil {
		return err
	}
	m.isNew(start)
	level := []*state{start}
	for len(level) > 0 && m.failure.Load() == nil {
		level = m.expandAll(level)
	}
	if last := m.lowest.end; last != nil && m.proved.Load() == 0 {
		m.prove(last)
	}
	if f := m.failure.Load(); f != nil {
		return fmt.Errorf("%s", *f)
	}
	return nil
}

// expandAll returns the new states that one move makes of a level.
func (m *model) expandAll(level []*state) []*state {
	workers := runtime.GOMAXPROCS(0)
	next := make([][]*state, workers)
	var taken atomic.Int64
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for m.failure.Load() == nil {
				k := taken.Add(1) - 1
				if k >= int64(len(level)) {
					return
				}
				s := level[k]
				level[k] = nil
				next[i] = append(next[i], m.expand(s)...)
			}
		})
	}
	wg.Wait()
	var all []*state
	for _, n := range next {
		all = append(all, n...)
	}
	return all
}

func (m *model) fail(s *state, err error) {
	text := fmt.Sprintf("%v\n%v", err, s.trace)
	m.failure.CompareAndSwap(nil, &text)
}

// isNew tells whether a state was seen for the first time.
func (m *model) isNew(s *state) bool {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(s.queue)))
	b = append(b, s.queue...)
	sum := sha256.Sum256(append(b, s.w.encode()...))
	s.key = binary.LittleEndian.Uint64(sum[:])
	shard := &m.visited[sum[8]]
	shard.Lock()
	defer shard.Unlock()
	if _, seen := shard.m[s.key]; seen {
		return false
	}
	shard.m[s.key] = struct{}{}
	m.states.Add(1)
	return true
}

func (w *world) encode() []byte {
	b := []byte{byte(w.best), byte(w.final)}
	for _, f := range w.left.fields() {
		b = append(b, byte(*f.left))
	}
	for i := range w.blocks {
		k := &w.blocks[i]
		b = append(b, byte(k.parent), k.slot, byte(k.reported[0]), byte(k.reported[1]))
		for c := range k.available {
			if k.available[c] {
				b = append(b, byte(c))
			}
		}
		if k.clears {
			b = append(b, worldCores)
		}
		b = append(b, 0xff)
	}
	for i := range w.packages {
		p := &w.packages[i]
		b = append(b, byte(p.name), byte(p.anchor), p.look, byte(p.needs), byte(p.core))
		if p.sent {
			b = append(b, 0xfe)
		}
	}
	return append(b, byte(len(w.builds)), byte(len(w.sends)))
}

// start returns the state in which all bundles are enqueued on a chain of two blocks.
func (m *model) start(left budget) (*state, error) {
	q, err := New(m.cfg, jamq.Block{Hash: blockHash(0)})
	if err != nil {
		return nil, err
	}
	s := &state{w: newWorld(&m.cfg.Spec, left)}
	for range 2 {
		i, b := s.w.extend(s.w.best, 1, [worldCores]bool{}, false, [worldCores]int8{none, none})
		s.w.best = i
		if err := m.step(s, q, Imported{Block: b, Best: b.Hash}); err != nil {
			return nil, err
		}
	}
	for i := range modelBundles {
		if err := m.step(s, q, executed(q, i)); err != nil {
			return nil, err
		}
	}
	return s, m.seal(s, q)
}

// executed is a bundle that was executed on the last one. Its commitment begins
// with its name. Each failure of a bundle has a new ticket, so none repeats.
func executed(q *Queue, name int) Enqueue {
	return Enqueue{
		Number: q.Next(), Commitment: common.Hash{byte(name), 1, byte(q.ticket), byte(q.ticket >> 8)}, Parent: q.Head(), Bundle: []byte(string(rune('0' + name))),
	}
}

// step feeds the queue an event and takes its effects to the world.
func (m *model) step(s *state, q *Queue, ev Event) error {
	effects, err := q.Step(jamq.CommonEra().Add(s.w.now), ev)
	if err != nil {
		return fmt.Errorf("%T refused: %w", ev, err)
	}
	for _, e := range effects {
		switch e := e.(type) {
		case Build:
			s.w.builds = append(s.w.builds, e)
		case Send:
			s.w.sends = append(s.w.sends, e)
			s.w.packages[e.Package[0]-1].sent = true
			s.w.packages[e.Package[0]-1].core = int8(e.Core)
		case Failed:
			s.w.handedBack = append(s.w.handedBack, int8(e.Bundle[0]-'0'))
		}
	}
	return nil
}

// seal ends a move: it executes returned bundles again, checks the state, and
// stores the queue.
func (m *model) seal(s *state, q *Queue) error {
	for len(s.w.handedBack) > 0 {
		name := s.w.handedBack[0]
		s.w.handedBack = s.w.handedBack[1:]
		if err := m.step(s, q, executed(q, int(name))); err != nil {
			return err
		}
	}
	// The effects of the queue are judged before its state.
	if err := s.w.judge(int8(len(s.w.blocks) - 1)); err != nil {
		return err
	}
	if err := s.w.compare(q); err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return err
	}
	// Counters would tell states apart that behave alike.
	q.total, q.delays = Totals{}, anchor.NewDelays(&m.cfg.Spec)
	s.queue = squeeze(q.appendBody(make([]byte, 0, 4096)))
	return nil
}

// restore takes the queue out again. That this gives the very same queue is one of the things that
// the search proves.
func (m *model) restore(s *state) (*Queue, error) {
	r := wire.NewReader(stretch(s.queue))
	q := read(m.cfg, r)
	return q, r.Done()
}

// squeeze shortens runs of zeros, of which the model's hashes mostly consist; stretch undoes it.
func squeeze(b []byte) []byte {
	out := make([]byte, 0, len(b)/2)
	for i := 0; i < len(b); {
		out = append(out, b[i])
		if b[i] != 0 {
			i++
			continue
		}
		run := i
		for i < len(b) && b[i] == 0 && i-run < 255 {
			i++
		}
		out = append(out, byte(i-run))
	}
	return out
}

func stretch(b []byte) []byte {
	out := make([]byte, 0, 4*len(b))
	for i := 0; i < len(b); i++ {
		out = append(out, b[i])
		if b[i] == 0 {
			i++
			out = append(out, make([]byte, b[i]-1)...)
		}
	}
	return out
}

// compare checks what the queue believes against what the world knows.
func (w *world) compare(q *Queue) error {
	have := 0
	for _, it := range q.items {
		have |= 1 << it.commitment[0]
		for _, v := range it.versions {
			i := int8(v.pkg[0] - 1)
			if v.reported() != w.reports(w.best, i, -1) || v.accumulated() != w.has(w.best, i, -1) {
				return fmt.Errorf("B5: %dv%d is reported: %v, accumulated: %v, and the chain says otherwise", it.number, v.number, v.reported(), v.accumulated())
			}
			if it.state == Finalized && v == it.winner() && !w.has(w.final, i, -1) {
				return fmt.Errorf("bundle %d is final, and the finalized chain does not have it", it.number)
			}
		}
	}
	if have != 1<<modelBundles-1 || len(q.items) != modelBundles {
		return fmt.Errorf("B2: of %d bundles the queue holds %d: %b", modelBundles, len(q.items), have)
	}
	return nil
}

// expand returns the new states that one move makes of a state.
func (m *model) expand(s *state) []*state {
	var out []*state
	moves := s.w.moves()
	for _, mv := range moves {
		next, err := m.move(s, mv)
		if err != nil {
			m.fail(next, err)
			return nil
		}
		m.moves.Add(1)
		if m.isNew(next) {
			out = append(out, next)
		}
	}
	if len(moves) == 0 {
		m.end(s)
	}
	return out
}

// end takes a state without moves.
func (m *model) end(s *state) {
	m.ends.Add(1)
	if s.key%m.sample == 0 {
		m.prove(s)
	}
	m.lowest.Lock()
	defer m.lowest.Unlock()
	if m.lowest.end == nil || s.key < m.lowest.end.key {
		m.lowest.end = s
	}
}

// prove proves that every bundle of an end can still become final.
func (m *model) prove(s *state) {
	m.proved.Add(1)
	if end, err := m.endsWell(s); err != nil {
		m.fail(end, err)
	}
}

// move returns the state after a move. On an error the state is unchanged.
func (m *model) move(s *state, mv move) (*state, error) {
	next := &state{w: s.w.clone(), trace: &step{s.trace, mv.text}}
	q, err := m.restore(s)
	if err != nil {
		return next, err
	}
	if err := mv.make(m, next, q); err != nil {
		return next, err
	}
	return next, m.seal(next, q)
}

// endsWell plays on as if nothing went wrong any more, until every bundle is final.
func (m *model) endsWell(s *state) (*state, error) {
	for range 200 {
		q, err := m.restore(s)
		if err != nil {
			return s, err
		}
		if q.Pending() == 0 {
			return s, nil
		}
		if s, err = m.move(s, s.w.fair()); err != nil {
			return s, err
		}
		if len(s.w.blocks) > 100 {
			break
		}
	}
	return s, fmt.Errorf("liveness: not every bundle is final after a long time without faults")
}

// move is something that can happen.
type move struct {
	text func() string
	make func(m *model, s *state, q *Queue) error
}

// search is one search of the model: how many losses a bundle survives, which
// faults may occur, and the greatest age of lookup anchors (L), if rule D3
// takes part.
type search struct {
	retries int
	left    budget
	lookup  int // 0: anyLookup
}

// searches are those of each size. Each visits every state that its budget allows. The default ones
// go through three versions of each bundle on a straight chain, through every fork two deep with
// its reorg, through the failure of bundles on forks and under stalled finality, and through lookup
// anchors that are too old (D3) because slots are skipped or finality stalls.
var searches = map[string][]search{
	"small": {
		{retries: 2, left: budget{blocks: 7}},
		{retries: 2, left: budget{blocks: 3, forks: 1, reorgs: 1, delays: 1}},
		{retries: 0, left: budget{blocks: 5, stalls: 1, cores: 1, outages: 1}},
		{retries: 0, left: budget{blocks: 5, stalls: 1, skips: 1}, lookup: 3},
		{retries: 2, left: budget{blocks: 5, clears: 2}},
	},
	"medium": {
		{retries: 2, left: budget{blocks: 7, clears: 2}},
		{retries: 2, left: budget{blocks: 4, forks: 1, reorgs: 1, clears: 1}},
		{retries: 2, left: budget{blocks: 10}},
		{retries: 2, left: budget{blocks: 4, failures: 1, careless: 1, delays: 1}},
		{retries: 2, left: budget{blocks: 4, delays: 1, cores: 2}},
		{retries: 0, left: budget{blocks: 7, stalls: 1, cores: 1, outages: 1}},
		{retries: 0, left: budget{blocks: 5, forks: 1, reorgs: 1, stalls: 1}},
		{retries: 2, left: budget{blocks: 6, forks: 1, reorgs: 1}},
		{retries: 2, left: budget{blocks: 4, forks: 1, reorgs: 1, delays: 1}},
		{retries: 2, left: budget{blocks: 3, forks: 1, reorgs: 1, delays: 1, skips: 1}},
		{retries: 1, left: budget{blocks: 7, stalls: 1, skips: 1}, lookup: 3},
		{retries: 0, left: budget{blocks: 4, forks: 1, reorgs: 1, stalls: 1, skips: 1}, lookup: 3},
	},
	"full": {
		{retries: 2, left: budget{blocks: 8, clears: 2}},
		{retries: 2, left: budget{blocks: 5, forks: 1, reorgs: 1, delays: 1, clears: 1}},
		{retries: 2, left: budget{blocks: 12}},
		{retries: 2, left: budget{blocks: 6, skips: 2, failures: 1, delays: 1}},
		{retries: 2, left: budget{blocks: 6, delays: 1, cores: 2}},
		{retries: 1, left: budget{blocks: 9, stalls: 2, cores: 1, outages: 2}},
		{retries: 0, left: budget{blocks: 6, forks: 1, reorgs: 1, stalls: 1}},
		{retries: 2, left: budget{blocks: 7, forks: 1, reorgs: 1}},
		{retries: 2, left: budget{blocks: 5, forks: 1, reorgs: 2, delays: 1, skips: 1}},
		{retries: 1, left: budget{blocks: 8, stalls: 2, skips: 2}, lookup: 3},
		{retries: 1, left: budget{blocks: 6, forks: 1, reorgs: 1, stalls: 1, skips: 1}, lookup: 4},
	},
}

// parseSearch reads the flag -modelcheck.budget.
func parseSearch(text string) (search, error) {
	s := search{retries: 2, lookup: anyLookup}
	for _, part := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		n, err := strconv.ParseInt(value, 10, 8)
		if err != nil {
			return search{}, fmt.Errorf("-modelcheck.budget: %q: %w", part, err)
		}
		fields := s.left.fields()
		i := slices.IndexFunc(fields, func(f budgetField) bool { return f.name == name })
		switch {
		case name == "retries":
			s.retries = int(n)
		case name == "lookup":
			s.lookup = int(n)
		case i < 0:
			return search{}, fmt.Errorf("-modelcheck.budget: unknown name %q", name)
		default:
			*fields[i].left = int8(n)
		}
	}
	return s, nil
}

// TestModelCheck searches every interleaving within budgets of builds, sends, blocks, lost and late
// reports, availability, cleared cores, skipped slots, forks two deep, reorgs, finality, outages
// and changes of cores, for three bundles on at most two cores. It checks promises B1 to B6 in each
// state.
//
// It plays on from a sample of the ends of a search, to check that every bundle can still become
// final. An end that can proves it of every state before it. The small size is for each run of the
// tests; the others are for the deep stage.
func TestModelCheck(t *testing.T) {
	size := *modelSize
	todo := searches[size]
	if *modelBudget != "" {
		s, err := parseSearch(*modelBudget)
		if err != nil {
			t.Fatal(err)
		}
		todo = []search{s}
	}
	if len(todo) == 0 {
		t.Fatalf("-modelcheck is %q, want small, medium or full", size)
	}
	sample := uint64(400) // all ends would take an hour
	if size == "small" {
		sample = 20
	}
	// States are short-lived. With the default a third of the time would go into collecting them.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	total, began := int64(0), time.Now()
	for _, s := range todo {
		m := newModel(s.retries, cmp.Or(s.lookup, anyLookup), sample)
		err := m.run(s.left)
		total += m.states.Load()
		t.Logf("%+v: %d distinct states, %d moves, %d ends, of which %d were played on to the last bundle",
			s, m.states.Load(), m.moves.Load(), m.ends.Load(), m.proved.Load())
		if err != nil {
			t.Fatal(err)
		}
	}
	fmt.Printf("%d distinct states in %v\n", total, time.Since(began).Round(time.Second/10))
}
