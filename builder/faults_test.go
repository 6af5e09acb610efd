package builder_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/words"
	"github.com/jamq/jamq/journal"
	jamqsubmit "github.com/jamq/jamq/submit"
)

// TestAdmitFails: an operation for which Admit fails or panics has no effect, also after a restart,
// and costs nothing else. It can be submitted again.
func TestAdmitFails(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, fails := newMachine(t), errors.New("not now")
		var calls atomic.Int64
		rollup := &words.Saving{Rollup: words.Rollup{BeforeAdmit: func(context.Context) error {
			switch calls.Add(1) {
			case 1, 5:
				return fails
			case 2:
				panic("by chance")
			}
			return nil
		}}}
		m.cfg.CheckpointEvery = 10
		m.run(rollup, func(ctx context.Context, b *builder.Builder[words.Body]) {
			op := []byte("one")
			require.ErrorIs(t, b.Submit(ctx, op), fails)
			require.ErrorIs(t, b.Submit(ctx, op), builder.ErrPanic)
			submit(ctx, t, b, 1, "two")
			require.NoError(t, b.Submit(ctx, op))
			copy(op, "six")
			require.NoError(t, b.Await(ctx, final(2)))
			require.Equal(t, []string{"two", "one"}, rollup.State())
			require.ErrorIs(t, b.Submit(ctx, []byte("three")), fails)
			require.ErrorIs(t, b.Submit(ctx, nil), words.ErrWord)
		})
		again := new(words.Saving)
		_, err := m.open(again)
		require.NoError(t, err)
		require.Equal(t, []string{"two", "one"}, again.State())
		require.Empty(t, again.Waiting())
	})
}

// TestReplayFails: an operation that was accepted and cannot be replayed is not forgotten.
func TestReplayFails(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		b, err := m.open(new(words.Rollup))
		require.NoError(t, err)
		require.NoError(t, b.Submit(t.Context(), []byte("one")))
		_, err = m.open(new(unready))
		require.ErrorIs(t, err, builder.ErrPanic)
		require.NotErrorIs(t, err, builder.ErrLog)
		again := new(words.Rollup)
		m.run(again, func(ctx context.Context, b *builder.Builder[words.Body]) { require.NoError(t, b.Await(ctx, final(1))) })
		require.Equal(t, []string{"one"}, again.State())
	})
}

// unready is a rollup whose ReplayChange panics.
type unready struct{ words.Rollup }

// ReplayChange implements builder.Operations.
func (*unready) ReplayChange(context.Context, []byte) error { panic("by chance") }

// TestAdmitIsNotRepeated: an operation that was accepted is executed after a restart, although
// Admit refuses it now.
func TestAdmitIsNotRepeated(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		b, err := m.open(new(words.Rollup))
		require.NoError(t, err)
		require.NoError(t, b.Submit(t.Context(), []byte("one")))
		strict := &words.Rollup{BeforeAdmit: func(context.Context) error { return words.ErrWord }}
		m.run(strict, func(ctx context.Context, b *builder.Builder[words.Body]) {
			require.ErrorIs(t, b.Submit(ctx, []byte("one")), words.ErrWord)
			require.NoError(t, b.Await(ctx, final(1)))
		})
		require.Equal(t, []string{"one"}, strict.State())
	})
}

// TestDiesBeforeTheAnswer: the process dies when an operation is admitted and its user has no
// answer. The user submits the operation again, and it is executed once, whether the log had it or
// not.
func TestDiesBeforeTheAnswer(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, log := newMachine(t), new(failing)
		open := func(rollup *words.Rollup) *builder.Builder[words.Body] {
			b, err := builder.Open(t.Context(), m.cfg, log, builder.Rollup[words.Body](rollup), m.network)
			require.NoError(t, err)
			return b
		}
		b := open(new(words.Rollup))
		for _, fails := range []*atomic.Bool{&log.now, &log.late} { // before and after the write
			fails.Store(true)
			require.ErrorIs(t, b.Submit(t.Context(), []byte("one")), builder.ErrLog)
			fails.Store(false)
			b = open(new(words.Rollup))
		}
		rollup := new(words.Rollup)
		b = open(rollup)
		require.Equal(t, []string{"one"}, rollup.Waiting())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Run(ctx) }()
		require.NoError(t, b.Submit(ctx, []byte("one")))
		require.NoError(t, b.Drain(ctx, func() bool { return len(rollup.Waiting()) > 0 }))
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Equal(t, []string{"one"}, rollup.State())
	})
}

// TestSubmitAfterRun: an operation that is admitted when Run has returned is refused, because the
// host closes the log, and another builder may write to it.
func TestSubmitAfterRun(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, rollup := newMachine(t), &slowAdmit{gate: make(chan struct{})}
		answer := make(chan error, 1)
		m.run(rollup, func(ctx context.Context, b *builder.Builder[words.Body]) {
			go func() { answer <- b.Submit(t.Context(), []byte("late")) }()
			synctest.Wait()
		})
		records := func() (n int) {
			require.NoError(t, m.log.Replay(func([]byte) error { n++; return nil }))
			return n
		}
		before := records()
		close(rollup.gate)
		require.ErrorIs(t, <-answer, builder.ErrStopped)
		require.Equal(t, before, records())
	})
}

// slowAdmit is a rollup whose Admit waits.
type slowAdmit struct {
	words.Rollup
	gate chan struct{}
}

func (s *slowAdmit) Admit(ctx context.Context, op []byte) error {
	<-s.gate
	return s.Rollup.Admit(ctx, op)
}

// TestRootPanics: a panic of Root costs that call. Apply is not repeated.
func TestRootPanics(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		var panics atomic.Bool
		rollup := &words.Rollup{Hash: func(state []string) common.Hash {
			if len(state) > 0 && panics.Swap(false) {
				panic("by chance")
			}
			return common.Hash{byte(len(state))}
		}}
		m.run(rootPanics{rollup, &panics}, func(ctx context.Context, b *builder.Builder[words.Body]) {
			submit(ctx, t, b, 1, "one")
			submit(ctx, t, b, 2, "two")
			require.Equal(t, []string{"one", "two"}, rollup.State())
		})
	})
}

// rootPanics is a rollup whose Root panics once after each block.
type rootPanics struct {
	*words.Rollup
	panics *atomic.Bool
}

func (r rootPanics) Apply(ctx context.Context, b builder.Block[words.Body]) error {
	err := r.Rollup.Apply(ctx, b)
	r.panics.Store(true)
	return err
}

// TestLargeOperation: an operation that fits into no work package is refused.
func TestLargeOperation(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		b, err := m.open(new(words.Rollup))
		require.NoError(t, err)
		most := m.network.Spec().MaxBundleSize
		require.NoError(t, b.Submit(t.Context(), bytes.Repeat([]byte("a"), most)))
		require.ErrorIs(t, b.Submit(t.Context(), make([]byte, most+1)), builder.ErrTooLarge)
	})
}

// TestLargePackage: a package that does not fit into the log costs its block, and nothing else.
func TestLargePackage(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		large := &packer{Network: m.network}
		large.size.Store(journal.MaxRecord/4 + 1)
		b, err := builder.Open(t.Context(), m.cfg, &m.log, builder.Rollup[words.Body](new(words.Rollup)), large)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Run(ctx) }()
		require.NoError(t, b.Submit(ctx, []byte("one")))
		bubble.Await(t, time.Minute, func() bool { return b.Health().BuildFailures > 2 }, "it cannot be packed")
		require.ErrorIs(t, b.Health().LastError, builder.ErrTooLarge)
		large.size.Store(0)
		require.NoError(t, b.Await(ctx, final(1)))
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

// packer is a network whose packages have more data than they need.
type packer struct {
	*simnet.Network
	size atomic.Int64
}

// Pack implements builder.Network.
func (p *packer) Pack(ctx context.Context, at builder.Anchor, payload []byte) (builder.Package, error) {
	pkg, err := p.Network.Pack(ctx, at, payload)
	if n := p.size.Load(); n > 0 {
		pkg.Data = make([]byte, n)
	}
	return pkg, err
}

// TestFollowEnds: a network that stops without an error ends the builder, and nothing is accepted
// any more.
func TestFollowEnds(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		b, err := builder.Open(t.Context(), m.cfg, &m.log, builder.Rollup[words.Body](new(words.Rollup)), deaf{m.network})
		require.NoError(t, err)
		require.ErrorIs(t, b.Run(t.Context()), builder.ErrFollow)
		require.ErrorIs(t, b.Submit(t.Context(), []byte("one")), builder.ErrStopped)
	})
}

// deaf is a network whose Follow ends at once.
type deaf struct{ *simnet.Network }

// Follow implements builder.Network.
func (deaf) Follow(context.Context, jamqsubmit.Recovery, jamqsubmit.ChainSink) error { return nil }

// TestLogPanics: a log that panics has failed, also for calls that share the write.
func TestLogPanics(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, log := newMachine(t), new(failing)
		b, err := builder.Open(t.Context(), m.cfg, log, builder.Rollup[words.Body](new(words.Rollup)), m.network)
		require.NoError(t, err)
		log.panics.Store(true)
		errs := make(chan error, 3)
		for i := range cap(errs) {
			go func() { errs <- b.Submit(t.Context(), fmt.Append(nil, i)) }()
		}
		for range cap(errs) {
			require.ErrorIs(t, <-errs, builder.ErrLog)
		}
	})
}

// TestHungAdmit: a call of Admit that does not end holds up neither blocks nor other operations,
// also if a checkpoint is due.
func TestHungAdmit(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, hang := newMachine(t), make(chan struct{})
		m.cfg.CheckpointEvery = 10
		rollup := new(words.Saving)
		var calls atomic.Int64
		rollup.BeforeAdmit = func(context.Context) error {
			if calls.Add(1) == 1 {
				<-hang
			}
			return nil
		}
		m.run(rollup, func(ctx context.Context, b *builder.Builder[words.Body]) {
			ended := make(chan error, 1)
			go func() { ended <- b.Submit(ctx, []byte("first")) }()
			time.Sleep(time.Minute)
			for i, word := range []string{"second", "third", "fourth"} {
				submit(ctx, t, b, uint64(i)+1, word)
			}
			close(hang)
			require.NoError(t, <-ended)
			require.NoError(t, b.Await(ctx, final(4)))
		})
	})
}

// TestFinalFails: blocks are made while Final fails, and it is called for all of them afterwards,
// also after a restart.
func TestFinalFails(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, fails := newMachine(t), new(atomic.Bool)
		fails.Store(true)
		m.cfg.CheckpointEvery = 10
		rollup := &words.Saving{BeforeFinal: func() error {
			if fails.Load() {
				return errors.New("the index is down")
			}
			return nil
		}}
		m.run(rollup, func(ctx context.Context, b *builder.Builder[words.Body]) {
			submit(ctx, t, b, 1, "one")
			submit(ctx, t, b, 2, "two")
			require.Empty(t, rollup.Finals())
			fails.Store(false)
			bubble.Await(t, time.Second, func() bool { return len(rollup.Finals()) == 2 }, "Final is called again")
			fails.Store(true)
			submit(ctx, t, b, 3, "three")
		})
		again := new(words.Saving)
		_, err := m.open(again)
		require.NoError(t, err)
		require.Contains(t, again.Finals(), uint64(3))
	})
}

// failing is a log that fails from a moment on, or refuses records of a size.
type failing struct {
	journal.Memory
	now, panics atomic.Bool
	late        atomic.Bool // fails after the write

	most atomic.Int64
}

func (f *failing) Append(records ...[]byte) error {
	if f.panics.Load() {
		panic("the database is closed")
	}
	if f.now.Load() {
		return errors.New("the disk is full")
	}
	err := f.Memory.Append(records...)
	if f.late.Load() {
		return errors.New("the disk has failed after the write")
	}
	return err
}

func (f *failing) Replace(records ...[]byte) error {
	for _, r := range records {
		if most := int(f.most.Load()); most > 0 && len(r) > most {
			return journal.ErrTooLarge
		}
	}
	return f.Memory.Replace(records...)
}

// TestLogFails: Run ends at the first write that fails, and nothing is accepted any more.
func TestLogFails(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, log := newMachine(t), new(failing)
		b, err := builder.Open(t.Context(), m.cfg, log, builder.Rollup[words.Body](new(words.Rollup)), m.network)
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- b.Run(t.Context()) }()
		submit(t.Context(), t, b, 1, "one")
		log.now.Store(true)
		require.ErrorIs(t, b.Submit(t.Context(), []byte("two")), builder.ErrLog)
		log.now.Store(false)
		require.ErrorIs(t, b.Submit(t.Context(), []byte("three")), builder.ErrLog)
		require.ErrorIs(t, <-ended, builder.ErrLog)
		require.ErrorIs(t, b.Await(t.Context(), final(2)), builder.ErrLog)
	})
}

// TestLargeCheckpoint: a checkpoint that the log refuses costs a longer log. Prune is called
// for those that the log has.
func TestLargeCheckpoint(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, log, rollup := newMachine(t), new(failing), new(pruning)
		m.cfg.CheckpointEvery = 10
		b, err := builder.Open(t.Context(), m.cfg, log, builder.Rollup[words.Body](rollup), m.network)
		require.NoError(t, err)
		log.most.Store(1)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Run(ctx) }()
		for i, word := range []string{"one", "two", "three", "four"} {
			submit(ctx, t, b, uint64(i)+1, word)
		}
		require.Zero(t, rollup.pruned.Load())
		log.most.Store(0)
		bubble.Await(t, time.Hour, func() bool { return rollup.pruned.Load() > 0 }, "the log has a checkpoint")
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		m.cfg.NewChain = true
		rollup = new(pruning)
		_, err = builder.Open(t.Context(), m.cfg, log, builder.Rollup[words.Body](rollup), m.network)
		require.NoError(t, err)
		require.EqualValues(t, 1, rollup.pruned.Load())
	})
}

// pruning is a rollup that counts the calls of Prune, which all fail.
type pruning struct {
	words.Saving
	pruned atomic.Int64
}

// Prune implements builder.Pruner.
func (p *pruning) Prune(context.Context) error {
	p.pruned.Add(1)
	return errors.New("a file cannot be removed")
}

// TestNewChainNeedsCheckpoints: it is refused at the first start, and not when it is needed.
func TestNewChainNeedsCheckpoints(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		m.cfg.NewChain = true
		_, err := m.open(new(words.Rollup))
		require.ErrorIs(t, err, builder.ErrInvalidConfig)
	})
}

// TestHealthNamesTheCall: a call of the host that hangs or fails is in Health, with its method,
// until it returns or succeeds.
func TestHealthNamesTheCall(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		hangs  bool
		panics bool
	}{
		"Admit hangs":       {method: "Rollup.Admit", hangs: true},
		"Admit panics":      {method: "Rollup.Admit", panics: true},
		"TakeChanges hangs": {method: "Rollup.TakeChanges", hangs: true},
		"Propose hangs":     {method: "Rollup.Propose", hangs: true},
		"Propose fails":     {method: "Rollup.Propose"},
		"Apply hangs":       {method: "Rollup.Apply", hangs: true},
		"Apply fails":       {method: "Rollup.Apply"},
		"Apply panics":      {method: "Rollup.Apply", panics: true},
		"Payload hangs":     {method: "Rollup.Payload", hangs: true},
		"Payload fails":     {method: "Rollup.Payload"},
		"Final hangs":       {method: "Rollup.Final", hangs: true},
		"Final fails":       {method: "Rollup.Final"},
		"Codec fails":       {method: "Codec"},
		"Codec panics":      {method: "Codec", panics: true},
		"Log hangs":         {method: "Log.Append", hangs: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				m := newMachine(t)
				h := &troubled{method: c.method, fault: func(ctx context.Context) error { return errDisturbed }, gate: make(chan struct{})}
				switch {
				case c.hangs:
					h.fault = func(context.Context) error { <-h.gate; return nil }
				case c.panics:
					h.fault = func(context.Context) error { panic(errDisturbed) }
				}
				b, err := builder.Open(t.Context(), m.cfg, h, builder.Rollup[words.Body](h), m.network)
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- b.Run(ctx) }()
				require.NoError(t, b.Submit(ctx, []byte("one")))
				require.NoError(t, b.Await(ctx, final(1)))
				synctest.Wait() // the calls that follow the block have returned
				health := b.Health()
				require.Empty(t, health.Calls)
				require.True(t, health.Running)

				h.on.Store(true)
				began := time.Now()
				answered := make(chan error, 1)
				go func() { answered <- b.Submit(ctx, []byte("two")) }()
				var call builder.Call
				bubble.Await(t, time.Hour, func() (found bool) {
					if c.method == "Rollup.Admit" && c.panics { // as users do
						_ = b.Submit(ctx, []byte("two"))
					}
					health := b.Health()
					call, found = health.Stuck(10 * time.Minute)
					return found
				}, "the call is named")
				require.Equal(t, c.method, call.Method)
				require.Contains(t, call.String(), c.method)
				if c.hangs {
					require.Positive(t, call.Running)
					require.False(t, call.Since.Before(began))
				} else {
					require.Positive(t, call.Failures)
					require.False(t, call.FailingSince.Before(began))
					require.ErrorContains(t, call.Err, errDisturbed.Error())
				}

				h.on.Store(false)
				close(h.gate)
				if c.method == "Rollup.Admit" && c.panics {
					require.ErrorIs(t, <-answered, builder.ErrPanic)
					require.NoError(t, b.Submit(ctx, []byte("two")))
				} else {
					require.NoError(t, <-answered)
				}
				require.NoError(t, b.Await(ctx, final(2)))
				bubble.Await(t, time.Minute, func() bool { return b.Health().Calls == nil }, "no call runs or fails")
				cancel()
				require.ErrorIs(t, <-ended, context.Canceled)
			})
		})
	}
}

// TestStuckIsOverWhenIdle: failures of which nothing has come since are no reason for an alarm,
// because a node without users makes no calls that could succeed.
func TestStuckIsOverWhenIdle(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		now := time.Now()
		failing := func(ago, lasted time.Duration) builder.Health {
			last := now.Add(-ago)
			return builder.Health{Calls: []builder.Call{{Method: "Network.Send", Failures: 2, FailedAt: last, FailingSince: last.Add(-lasted), Err: errDisturbed}}}
		}
		for _, c := range []struct {
			health builder.Health
			stuck  bool
		}{
			{builder.Health{}, false},
			{failing(time.Second, time.Hour), true},
			{failing(time.Second, time.Second), false},
			{failing(24*time.Hour, time.Hour), false},
			{builder.Health{Calls: []builder.Call{{Method: "Rollup.Apply", Running: 1, Since: now.Add(-time.Hour)}}}, true},
			{builder.Health{Calls: []builder.Call{{Method: "Rollup.Apply", Running: 1, Since: now}}}, false},
		} {
			_, stuck := c.health.Stuck(time.Minute)
			require.Equal(t, c.stuck, stuck, "%v", c.health.Calls)
		}
	})
}

// TestCanceledByTheHost: a call that fails with context.Canceled, although its context goes on, has
// failed.
func TestCanceledByTheHost(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		h := &troubled{method: "Rollup.Apply", fault: func(context.Context) error { return fmt.Errorf("the client was closed: %w", context.Canceled) }}
		h.on.Store(true)
		m.run(h, func(ctx context.Context, b *builder.Builder[words.Body]) {
			require.NoError(t, b.Submit(ctx, []byte("one")))
			bubble.Await(t, time.Hour, func() bool {
				health := b.Health()
				_, stuck := health.Stuck(time.Minute)
				return stuck
			}, "it is named")
			h.on.Store(false)
			require.NoError(t, b.Await(ctx, final(1)))
		})
	})
}

var errDisturbed = errors.New("disturbed")

// troubled is a host of which one method has a fault.
type troubled struct {
	words.Rollup
	journal.Memory
	method string
	fault  func(ctx context.Context) error
	gate   chan struct{}
	on     atomic.Bool
}

func (h *troubled) trouble(ctx context.Context, method string) error {
	if h.on.Load() && method == h.method {
		return h.fault(ctx)
	}
	return nil
}

func (h *troubled) TakeChanges() [][]byte {
	_ = h.trouble(context.Background(), "Rollup.TakeChanges")
	return h.Rollup.TakeChanges()
}

func (h *troubled) Admit(ctx context.Context, op []byte) error {
	if err := h.trouble(ctx, "Rollup.Admit"); err != nil {
		return err
	}
	return h.Rollup.Admit(ctx, op)
}

func (h *troubled) Propose(ctx context.Context, number uint64) (words.Body, common.Hash, error) {
	if err := h.trouble(ctx, "Rollup.Propose"); err != nil {
		return words.Body{}, common.Hash{}, err
	}
	return h.Rollup.Propose(ctx, number)
}

func (h *troubled) Apply(ctx context.Context, b builder.Block[words.Body]) error {
	if err := h.trouble(ctx, "Rollup.Apply"); err != nil {
		return err
	}
	return h.Rollup.Apply(ctx, b)
}

func (h *troubled) Payload(ctx context.Context, b builder.Block[words.Body]) ([]byte, error) {
	if err := h.trouble(ctx, "Rollup.Payload"); err != nil {
		return nil, err
	}
	return h.Rollup.Payload(ctx, b)
}

func (h *troubled) Final(ctx context.Context, _ builder.Block[words.Body]) error {
	return h.trouble(ctx, "Rollup.Final")
}

func (h *troubled) Encode(body words.Body) ([]byte, error) {
	if err := h.trouble(context.Background(), "Codec"); err != nil {
		return nil, err
	}
	return json.Marshal(body)
}

func (h *troubled) Decode(raw []byte) (body words.Body, err error) {
	err = json.Unmarshal(raw, &body)
	return body, err
}

func (h *troubled) Append(records ...[]byte) error {
	if err := h.trouble(context.Background(), "Log.Append"); err != nil {
		return err
	}
	return h.Memory.Append(records...)
}

// TestHealthHasTheEnd: after a builder has stopped by itself, Health has the error of Run, whatever
// it was, and calls that need a running builder return it.
func TestHealthHasTheEnd(t *testing.T) {
	for name, want := range map[string]error{"follow": builder.ErrFollow, "diverged": builder.ErrDiverged} {
		bubble.Run(t, func(t *testing.T) {
			m, rollup := newMachine(t), new(words.Rollup)
			var network builder.Network = m.network
			if name == "follow" {
				network = deaf{m.network}
			} else {
				var calls atomic.Int64
				rollup.Hash = func([]string) common.Hash { return common.Hash{byte(calls.Add(1))} }
			}
			b, err := builder.Open(t.Context(), m.cfg, &m.log, builder.Rollup[words.Body](rollup), network)
			require.NoError(t, err)
			require.NoError(t, b.Submit(t.Context(), []byte("one")))
			require.ErrorIs(t, b.Run(t.Context()), want)
			require.ErrorIs(t, b.Health().Err, want)
			_, err = b.Stats(t.Context())
			require.ErrorIs(t, err, builder.ErrStopped)
			require.ErrorIs(t, err, want)
		})
	}
}

// TestLogFailsAtTheEnd: if the log fails while Run ends, Run returns that error.
func TestLogFailsAtTheEnd(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		log := &held{Log: &m.log, comes: make(chan struct{}), goes: make(chan struct{})}
		b, err := builder.Open(t.Context(), m.cfg, log, builder.Rollup[words.Body](new(words.Rollup)), m.network)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Run(ctx) }()
		time.Sleep(10 * m.network.Spec().SlotDuration)
		synctest.Wait()
		log.holds.Store(true)
		go func() { _ = b.SetCores(t.Context(), []jamq.CoreIndex{1}) }()
		<-log.comes
		stop()
		synctest.Wait()
		close(log.goes)
		require.ErrorIs(t, <-ended, builder.ErrLog)
	})
}

// held is a log with an append that fails when the test lets it go.
type held struct {
	builder.Log
	holds       atomic.Bool
	comes, goes chan struct{}
}

// Append implements builder.Log.
func (l *held) Append(records ...[]byte) error {
	if l.holds.Load() {
		close(l.comes)
		<-l.goes
		return errors.New("no space left")
	}
	return l.Log.Append(records...)
}
