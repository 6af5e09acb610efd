package buildertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/internal/wire"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/journal"
)

const service jamq.ServiceID = 7

// world is the part of a test that outlives the builder's process: the JAM chain, the
// log, the users, and judge, which checks the result only by the events on the chain.
type world[B any] struct {
	rules   Case[B]
	seed    uint64
	random  *rand.Rand // of the goroutine that plays
	jam     jamtest.Config
	network *simnet.Network // of the present JAM chain
	log     journal.Journal // of the present life
	logs    string          // the directory of Case.Log
	cfg     builder.Config
	diary   *diary
	// refusals is the number of checkpoints, out of 8, that the log refuses.
	refusals int
	// failures is the number of writes to the log that still fail.
	failures int

	mu      sync.Mutex
	answers map[string]answer // to operations
	dropped map[string]bool   // operations of which the rollup said so
	next    int               // operation
	again   [][]byte          // operations whose answer was lost with the process
	late    [][]byte          // accepted operations that users submit again
	lateAt  time.Time         // when they did so last
	// mayBeLate is how many more accepted operations may be submitted again some minutes
	// later.
	mayBeLate int
	executed  map[string]int // on the final chain
	final     []link         // the final chain, from the genesis on
	problem   error          // the first one
	settled   chan struct{}  // closed when there is one, or everything is executed
	payloads  map[string]string
}

// answer is the answer that a user has received to an operation.
type answer int

const (
	lost     answer = iota // it may be executed
	accepted               // it must be executed, or dropped
	refused                // it must not be executed
)

// link is a block of the rollup that is final on JAM.
type link struct {
	number uint64
	root   common.Hash
	ops    [][]byte
}

func newWorld[B any](c Case[B], seed uint64) (*world[B], error) {
	cfg := jamtest.DefaultConfig(jamq.Tiny(), seed)
	cfg.SkipProbability, cfg.LossProbability, cfg.UnavailableProbability = float64(seed%3)/10, float64(seed%4)/10, float64(seed%2)/20
	cfg.FinalityLag, cfg.MaxForkDepth, cfg.ForkProbability = 3, 2, float64(seed%2)/10
	w := &world[B]{
		rules: c, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), jam: cfg, diary: newDiary(cfg.Spec), log: new(journal.Memory),
		answers: make(map[string]answer), dropped: make(map[string]bool), executed: make(map[string]int), settled: make(chan struct{}), payloads: make(map[string]string),
	}
	w.cfg = builder.DefaultConfig(cfg.Spec)
	w.cfg.CheckpointEvery, w.refusals = 40, 1
	if seed%3 == 2 { // most of them, several in a row
		w.cfg.CheckpointEvery, w.refusals = 10, 6
	}
	w.cfg.CheckInvariants = true
	if seed%2 == 1 { // blocks fail
		w.cfg.Queue.MaxVersionRetries = 0
	}
	genesis := c.New()
	if _, ok := genesis.(builder.Checkpointer); ok { // the JAM chain ends with each process
		w.cfg.NewChain = seed%5 == 4
	}
	w.final = []link{{root: genesis.Root()}}
	return w, errors.Join(closeRollup(genesis), w.beginChain())
}

// beginChain begins a new JAM chain in place of the present one.
func (w *world[B]) beginChain() error {
	w.jam.StartSlot = jamq.NewSlotClock(w.jam.Spec).SlotAt(time.Now())
	chain, err := jamtest.New(w.jam)
	if err != nil {
		return err
	}
	w.network = simnet.New(chain, service)
	w.jam.Seed++
	return nil
}

// drive drives the present JAM chain until end is called.
func (w *world[B]) drive(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	driving := make(chan struct{})
	go func() {
		defer close(driving)
		_ = w.network.Run(ctx, w.judge)
	}()
	return func() { cancel(); <-driving }
}

// closeRollup closes a rollup that can be closed.
func closeRollup[B any](r builder.Rollup[B]) error {
	if c, ok := r.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// plan chooses, by the seed, the moments at which the processes are killed.
func (w *world[B]) plan() []int {
	var deaths []int
	w.failures = w.random.IntN(3)
	if w.random.IntN(4) == 0 { // such runs are long
		w.mayBeLate = 2
	}
	for range w.random.IntN(4) {
		deaths = append(deaths, 1+w.random.IntN(400))
	}
	return deaths
}

// patience is the time after which a run fails if operations are still missing.
const patience = 10 * time.Hour

// play runs the builder in several processes, one after the other.
func (w *world[B]) play(ctx context.Context, deaths []int) (moments int, problem error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	end := w.drive(ctx)
	defer func() { end() }()
	// Each process except the last is killed at the given moment of its life. The last
	// process, for which 0 means no moment, runs until all operations are executed.
	lives := append(slices.Clone(deaths), 0)
	for i := 0; i < len(lives); i++ {
		moment := lives[i]
		if w.cfg.NewChain && i > 0 {
			end()
			if err := w.beginChain(); err != nil {
				return 0, err
			}
			end = w.drive(ctx)
		}
		l := newLife(w, moment)
		err := l.run(ctx)
		moments = l.passed()
		switch failed := l.logHasFailed(); {
		case failed && errors.Is(err, builder.ErrLog):
			lives = append(lives, 0)
		case err != nil && !failed && !l.isDead() && ctx.Err() == nil:
			w.fail(fmt.Errorf("the builder stopped: %w", err))
		}
		if w.isSettled() || ctx.Err() != nil {
			break
		}
		w.diary.note("the process has ended at moment %d: %v", moments, err)
		time.Sleep(time.Duration(w.random.IntN(60)) * time.Second)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.problem == nil && ctx.Err() != nil {
		w.problem = fmt.Errorf("after %v, these operations are not executed: %s", patience, list(w.missing()))
	}
	return moments, w.problem
}

// fail records a problem, which decides the test. Only the first problem counts.
func (w *world[B]) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.problem == nil {
		w.problem = err
		w.settleLocked()
	}
}

func (w *world[B]) settleLocked() {
	select {
	case <-w.settled:
	default:
		close(w.settled)
	}
}

func (w *world[B]) isSettled() bool {
	select {
	case <-w.settled:
		return true
	default:
		return false
	}
}

// samePayload checks that a block always has the same payload, even after a restart.
func (w *world[B]) samePayload(name string, have []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	want, known := w.payloads[name]
	if known && want != string(have) && w.problem == nil {
		w.problem = fmt.Errorf("the payload of %.80s differs from byte %d on: %s", name, differsAt(want, string(have)), difference(want, string(have)))
		w.settleLocked()
	}
	w.payloads[name] = string(have)
}

// differsAt returns the index of the first byte in which two payloads differ.
func differsAt(a, b string) (i int) {
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	return i
}

// difference shows two payloads around their first difference.
func difference(was, is string) string {
	const before, after = 20, 60
	at := differsAt(was, is)
	around := func(s string) string { return s[max(0, at-before):min(len(s), at+after)] }
	return fmt.Sprintf("it was …%q… of %d bytes, and now …%q… of %d bytes", around(was), len(was), around(is), len(is))
}

// missing returns the accepted operations without an outcome. The caller holds w.mu.
func (w *world[B]) missing() (all [][]byte) {
	for op, answer := range w.answers {
		if answer == accepted && w.executed[op] == 0 && !w.dropped[op] {
			all = append(all, []byte(op))
		}
	}
	slices.SortFunc(all, bytes.Compare)
	return all
}

// namedIn returns the operations that a problem mentions, for the diary to show.
func (w *world[B]) namedIn(problem error) (names []string) {
	if problem == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for op := range w.answers {
		if name := short([]byte(op)); strings.Contains(problem.Error(), name) {
			names = append(names, name)
		}
	}
	return names
}

// judge executes the packages that are final on the JAM chain, like the service.
func (w *world[B]) judge(u jamtest.Update) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range u.Final {
		if a.Service == service && w.problem == nil {
			if w.problem = w.accumulate(a.Payload); w.problem != nil {
				w.settleLocked()
			}
		}
	}
}

// accumulate executes one payload, and checks that the block continues the last one.
func (w *world[B]) accumulate(raw []byte) error {
	p, err := parsePayload(raw)
	if err != nil {
		return err
	}
	w.diary.note("block %d is final", p.number)
	if last := w.final[len(w.final)-1]; p.number != last.number+1 || p.pre != last.root {
		return fmt.Errorf("block %d on %s does not continue block %d with %s", p.number, p.pre, last.number, last.root)
	}
	ops := w.rules.Executed(p.inner)
	w.final = append(w.final, link{p.number, p.post, ops})
	for _, op := range ops {
		name := string(op)
		switch answer, known := w.answers[name]; {
		case !known:
			return fmt.Errorf("block %d executes %s, which no user has submitted", p.number, short(op))
		case answer == refused:
			return fmt.Errorf("block %d executes %s, which was refused", p.number, short(op))
		case w.dropped[name]:
			return fmt.Errorf("block %d executes %s, which was dropped", p.number, short(op))
		}
		if w.executed[name]++; w.executed[name] > 1 {
			return fmt.Errorf("block %d executes %s a second time", p.number, short(op))
		}
	}
	return nil
}

// leaveChain removes the final blocks of a JAM chain that has ended.
func (w *world[B]) leaveChain(known uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// The JAM chain was replaced by a new one, and the builder keeps only the blocks that it
	// knew to be final. Later blocks are executed again on the new chain, so the judge must
	// forget them.
	for uint64(len(w.final)) > known+1 {
		last := w.final[len(w.final)-1]
		w.final = w.final[:len(w.final)-1]
		w.diary.note("block %d has never happened", last.number)
		for _, op := range last.ops {
			w.executed[string(op)]--
		}
	}
}

// take returns the next operation to submit. first is true for a new operation.
func (w *world[B]) take() (op []byte, first, some bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// The answer to this operation was lost with an earlier process.
	if len(w.again) > 0 {
		op, w.again = w.again[0], w.again[1:]
		return op, false, true
	}
	if w.next == w.rules.Operations {
		return nil, false, false
	}
	op = w.rules.Operation(w.next)
	w.next++
	w.answers[string(op)] = lost
	return op, true, true
}

// answered records the answer to an operation.
func (w *world[B]) answered(op []byte, err error, first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.answers[string(op)] = accepted
	// If the answer to a user's first submission was lost, a rollup may refuse the second one
	// although the operation was accepted. Only a refused first submission proves that the
	// operation must not be executed.
	case first:
		w.answers[string(op)] = refused
		if w.executed[string(op)] > 0 && w.problem == nil {
			w.problem = fmt.Errorf("a block executes %s, which was refused", short(op))
			w.settleLocked()
		}
	}
}

// repeatLater records that an accepted operation may be submitted again later.
func (w *world[B]) repeatLater(op []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mayBeLate > 0 {
		w.mayBeLate--
		w.late = append(w.late, op)
	}
}

// takeLate returns the next accepted operation that a user submits again.
func (w *world[B]) takeLate() (op []byte, some bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.late) == 0 {
		return nil, false
	}
	op, w.late, w.lateAt = w.late[0], w.late[1:], time.Now()
	return op, true
}

// unanswered records that an operation must be submitted again.
func (w *world[B]) unanswered(op []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.again = append(w.again, op)
}

// look ends the test if its outcome is certain.
func (w *world[B]) look(rollup builder.Rollup[B]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rules.Dropped != nil {
		for _, op := range w.rules.Dropped(rollup) {
			w.dropped[string(op)] = true
			if w.executed[string(op)] > 0 && !w.cfg.NewChain && w.problem == nil {
				w.problem = fmt.Errorf("the rollup reports %s as dropped, which a final block has executed", short(op))
			}
		}
	}
	const quiet = 4 * time.Minute // enough to execute an operation once more
	switch {
	case w.problem != nil, w.next < w.rules.Operations, len(w.again) > 0, len(w.late) > 0, len(w.missing()) > 0, time.Since(w.lateAt) < quiet:
		return
	}
	w.problem = w.enough()
	w.settleLocked()
}

// fewest is the share of operations that every run must execute, as a divisor: one in
// four. A rollup that refuses more in Admit would pass all checks without being tested.
const fewest = 4

// enough returns an error if too few operations were executed. The caller holds w.mu.
func (w *world[B]) enough() error {
	counts := make(map[answer]int)
	for _, a := range w.answers {
		counts[a]++
	}
	executed := 0
	for _, n := range w.executed {
		executed += n
	}
	w.diary.note("%d of %d operations were executed, %d refused and %d dropped", executed, len(w.answers), counts[refused], len(w.dropped))
	if executed*fewest < len(w.answers) {
		return fmt.Errorf("%d of %d operations were executed, %d refused and %d dropped; want at least a quarter executed, or little is tested",
			executed, len(w.answers), counts[refused], len(w.dropped))
	}
	return nil
}

// payload is the payload of the wrapped rollup. It contains the payload of the inner
// rollup, and also the number and the roots of the block, so that judge can check the
// chain.
type payload struct {
	number    uint64
	pre, post common.Hash
	inner     []byte
}

func (p *payload) encode() []byte {
	return wire.AppendBytes(wire.AppendHash(wire.AppendHash(wire.AppendUint(nil, p.number), p.pre), p.post), p.inner)
}

var errPayload = errors.New("buildertest: a payload that Rollup.Payload did not make")

func parsePayload(raw []byte) (p payload, err error) {
	r := wire.NewReader(raw)
	p.number, p.pre, p.post = r.Uint(), wire.ReadHash[common.Hash](r), wire.ReadHash[common.Hash](r)
	p.inner = r.Bytes()
	if err := r.Done(); err != nil {
		return p, fmt.Errorf("%w: %w", errPayload, err)
	}
	return p, nil
}
