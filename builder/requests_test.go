package builder_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/journal"
	jamqsubmit "github.com/jamq/jamq/submit"
)

var errNoCore = jamqsubmit.WithClass(jamqsubmit.Fatal, errors.New("core 9 does not exist"))

// TestFatalPauses: after a fatal error the builder makes and sends nothing until it is resumed, or
// gets other cores. Blocks are made meanwhile, and the outcome of a send that runs is not lost.
func TestFatalPauses(t *testing.T) {
	for name, resume := range map[string]func(*scripted) error{
		"Resume":   func(b *scripted) error { return b.Resume(b.t.Context()) },
		"SetCores": func(b *scripted) error { return b.SetCores(b.t.Context(), []jamq.CoreIndex{1, 0}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answered, begun := make(chan struct{}), make(chan struct{})
				var once sync.Once
				s := &script{send: func(_ context.Context, number uint64) error {
					if number == 1 {
						<-begun // so that the other send runs
						return errNoCore
					}
					once.Do(func() { close(begun) })
					<-answered
					return nil
				}}
				b := s.open(t, nil, nil)
				b.make(1)
				b.make(2)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				require.ErrorIs(t, b.Health().Paused, errNoCore)
				require.Equal(t, 1, b.Health().Fatal)
				builds, sent := s.done()
				require.ElementsMatch(t, []uint64{1, 2}, sent)

				close(answered) // the other send ends during the pause
				b.make(3)
				time.Sleep(time.Minute)
				synctest.Wait()
				block, _ := b.Block(2)
				require.Equal(t, bundlequeue.Submitted, block.Progress.State)
				buildsNow, sentNow := s.done()
				require.Equal(t, builds, buildsNow)
				require.Equal(t, sent, sentNow)

				s.set(nil, nil)
				require.NoError(t, resume(b))
				require.NoError(t, b.Health().Paused)
				time.Sleep(20 * time.Second)
				synctest.Wait()
				_, sentNow = s.done()
				require.Greater(t, len(sentNow), len(sent))
				block, _ = b.Block(1)
				require.Equal(t, bundlequeue.Submitted, block.Progress.State)
			})
		})
	}
}

// TestFatalBuildPauses: a fatal error of Pack pauses as well. The alarm for the block goes on.
func TestFatalBuildPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{pack: func(builder.Anchor) error { return errNoCore }}
		b := s.open(t, nil, nil)
		b.make(1)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		builds, sent := s.done()
		require.Equal(t, 1, builds)
		require.Empty(t, sent)
		require.ErrorIs(t, b.Health().Paused, errNoCore)
		require.True(t, b.Health().Delayed)
	})
}

// TestPausedSendsNothing: a send that waits for its window when a fatal error comes is not made.
func TestPausedSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{pack: func(at builder.Anchor) error {
			if at.Number == 2 {
				return errNoCore
			}
			return nil
		}}
		b := s.open(t, nil, nil)
		b.make(1)
		b.make(2)
		synctest.Wait()
		require.Error(t, b.Health().Paused)
		_, before := s.done()
		time.Sleep(10 * time.Second)
		_, after := s.done()
		require.Equal(t, before, after)
	})
}

// TestWorkUnderWayIsNotBegunTwice: a send that hangs is not begun again when the builder is
// resumed.
func TestWorkUnderWayIsNotBegunTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answered, begun := make(chan struct{}), make(chan struct{})
		var once sync.Once
		s := &script{send: func(_ context.Context, number uint64) error {
			if number == 1 {
				once.Do(func() { close(begun) })
				<-answered
				return nil
			}
			<-begun // so that the other send runs
			return errNoCore
		}}
		b := s.open(t, nil, func(c *builder.Config) { c.Queue.MaxSubmitRetries = 0 })
		b.make(1)
		b.make(2)
		time.Sleep(10 * time.Second)
		require.Error(t, b.Health().Paused)
		require.NoError(t, b.Resume(t.Context()))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		_, sent := s.done()
		require.ElementsMatch(t, []uint64{1, 2}, sent)
		close(answered)
	})
}

// TestClassesOfSendErrors: an error of class Rebuild ends the sends of a package. Errors of the
// other classes repeat them.
func TestClassesOfSendErrors(t *testing.T) {
	for class, want := range map[jamqsubmit.Class]int{jamqsubmit.Retryable: 9, jamqsubmit.OtherGuarantor: 9, jamqsubmit.Rebuild: 1} {
		t.Run(class.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{send: func(context.Context, uint64) error { return jamqsubmit.WithClass(class, errors.New("no")) }}
				b := s.open(t, nil, nil)
				b.make(1)
				time.Sleep(time.Hour)
				synctest.Wait()
				builds, sent := s.done()
				require.Equal(t, 1, builds)
				require.Len(t, sent, want)
				require.NoError(t, b.Health().Paused)
			})
		})
	}
}

// TestInvariantsStopTheBuilder: if an invariant is violated, Run ends with the error, and the step
// is neither in the log nor acted upon.
func TestInvariantsStopTheBuilder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("the pool holds a transaction twice")
		var wrong error
		s, log := new(script), new(journal.Memory)
		b := s.open(t, log, func(c *builder.Config) {
			c.CheckInvariants = true
			c.Invariants = func() error { return wrong }
		})
		wrong = broken
		next := jamq.Block{Hash: jamq.HeaderHash{2}, Parent: b.best.Hash, Slot: 2}
		require.ErrorIs(t, b.Import(t.Context(), next, next.Hash), broken)
		synctest.Wait()
		require.ErrorIs(t, b.stop(), broken)
		require.ErrorIs(t, b.Health().Err, broken)
		require.ErrorIs(t, b.Import(t.Context(), next, next.Hash), builder.ErrStopped)
		require.ErrorIs(t, b.Import(t.Context(), next, next.Hash), broken, "the cause")
		again := s.run(t, log, nil)
		require.Equal(t, jamq.HeaderHash{1}, s.recovered().Best.Hash)
		require.ErrorIs(t, again.stop(), context.Canceled)
	})
}

// TestDelayedForWantOfAnAnchor: a block whose package died waits for a JAM block that can be its
// anchor. The reason of the alarm names this cause.
func TestDelayedForWantOfAnAnchor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(script).open(t, nil, nil)
		b.make(1)
		time.Sleep(10 * time.Second)
		for slot := jamq.Slot(2); slot <= 8; slot++ { // the package is anchored to the root
			b.next(slot)
		}
		health := b.Health()
		require.Equal(t, uint64(1), health.Waiting.Number)
		require.Equal(t, "no block can be its anchor yet", health.Waiting.Reason)
		require.False(t, health.Delayed)
		time.Sleep(121 * time.Second)
		require.True(t, b.Health().Delayed, "JAM makes no blocks")
		b.next(9)
		time.Sleep(10 * time.Second)
		require.False(t, b.Health().Delayed)
		require.Zero(t, b.Health().Waiting.Number)
	})
}

// TestOldNewsIsIgnored: news that finality has overtaken is no error for a feed. Finality of an
// unknown block is one.
func TestOldNewsIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(script).open(t, nil, nil)
		ctx, old := t.Context(), b.best
		b.next(2)
		require.NoError(t, b.Finalize(ctx, b.best.Hash))
		require.NoError(t, b.Finalize(ctx, old.Hash))
		fork := jamq.Block{Hash: jamq.HeaderHash{3}, Parent: old.Hash, Slot: 2}
		require.NoError(t, b.Import(ctx, fork, b.best.Hash))
		require.Error(t, b.Finalize(ctx, jamq.HeaderHash{9}))
	})
}

// otherFork is a block beside the best chain of TestInadmissiblePackages.
var otherFork = jamq.HeaderHash{99}

// TestInadmissiblePackages: a host whose packages must not be sent is seen to fail.
func TestInadmissiblePackages(t *testing.T) {
	for name, c := range map[string]struct {
		want  error
		spoil func(*jamq.RefineContext)
	}{
		"prerequisites":  {bundlequeue.ErrInadmissible, func(c *jamq.RefineContext) { c.Prerequisites = make([]jamq.PackageHash, 9) }},
		"unknown anchor": {bundlequeue.ErrUnknownAnchor, func(c *jamq.RefineContext) { c.Anchor = jamq.HeaderHash{98} }},
		"other fork":     {builder.ErrUseless, func(c *jamq.RefineContext) { c.Anchor = otherFork }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var failed, ok atomic.Int32
				s := &script{spoil: c.spoil}
				b := s.run(t, nil, func(c *builder.Config) {
					c.Metrics.Count = func(counter, label string, _ int) {
						switch {
						case counter == builder.CountBuilds && label == "failed":
							failed.Add(1)
						case counter == builder.CountBuilds:
							ok.Add(1)
						}
					}
				})
				synctest.Wait()
				require.NoError(t, b.Import(t.Context(), jamq.Block{Hash: otherFork, Parent: scriptRoot.Hash, Slot: 1}, scriptRoot.Hash))
				b.make(1)
				for slot := jamq.Slot(1); slot <= 30; slot++ {
					b.next(slot)
					time.Sleep(6 * time.Second)
				}
				synctest.Wait()
				_, sent := s.done()
				require.Empty(t, sent)
				health := b.Health()
				require.True(t, health.Delayed, "an alarm after 20 slots")
				require.Equal(t, uint64(1), health.Waiting.Number)
				require.Greater(t, health.BuildFailures, 1, "in a row")
				require.ErrorIs(t, health.LastError, c.want)
				require.Zero(t, health.Builds)
				require.Zero(t, ok.Load())
				require.EqualValues(t, health.BuildFailures, failed.Load())
			})
		})
	}
}

// brittle is a log that fails at a step of the queue.
type brittle struct {
	journal.Memory
	left   int // steps that it takes
	broken atomic.Bool
}

func (l *brittle) Append(records ...[]byte) error {
	time.Sleep(time.Millisecond) // a reader that does not wait for it sees the step before
	for _, r := range records {
		if r[0] != 'Q' {
			continue
		}
		if l.left--; l.left < 0 {
			l.broken.Store(true)
			return errDisturbed
		}
	}
	return l.Memory.Append(records...)
}

// has reports whether the log has the step that enqueues a block.
func (l *brittle) has(number uint64) (found bool) {
	_ = l.Replay(func(record []byte) error {
		if record[0] == 'Q' {
			_, ev, _ := bundlequeue.DecodeRecord(record[1:])
			enqueue, ok := ev.(bundlequeue.Enqueue)
			found = found || ok && enqueue.Number == number
		}
		return nil
	})
	return found
}

// TestNothingFollowsFromAFailedAppend: a step that the log does not have has no effect: the host
// does not see it, no package is made or sent, and Run ends.
func TestNothingFollowsFromAFailedAppend(t *testing.T) {
	for left := range 8 {
		synctest.Test(t, func(t *testing.T) {
			log := &brittle{left: left}
			intact := func(act string) error {
				if log.broken.Load() {
					t.Errorf("%d steps: %s", left, act)
				}
				return nil
			}
			s := &script{
				pack: func(builder.Anchor) error { return intact("pack") },
				send: func(context.Context, uint64) error { return intact("send") },
			}
			b := s.run(t, log, nil)
			go watch(t.Context(), b.Watch, func(e bundlequeue.Effect) {
				_ = intact(fmt.Sprintf("%T", e))
				if build, ok := e.(bundlequeue.Build); ok && !log.has(build.Number) {
					t.Errorf("%d steps: a package is requested for block %d, which is not in the log", left, build.Number)
				}
			})
			synctest.Wait()
			best := scriptRoot
			for slot := jamq.Slot(1); !log.broken.Load(); slot++ {
				_ = b.Submit(t.Context(), fmt.Append(nil, "word ", slot))
				next := jamq.Block{Hash: jamq.HeaderHash{2, byte(slot)}, Parent: best.Hash, Slot: slot}
				_ = b.Import(t.Context(), next, next.Hash)
				best = next
				time.Sleep(6 * time.Second)
			}
			synctest.Wait()
			require.ErrorIs(t, b.stop(), builder.ErrLog)
		})
	}
}

// TestRunStopsWhileASendHangs: a guarantor that does not answer holds up neither the queue nor the
// end of Run.
func TestRunStopsWhileASendHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{send: func(ctx context.Context, _ uint64) error { <-ctx.Done(); return ctx.Err() }}
		b := s.open(t, nil, nil)
		b.make(1)
		time.Sleep(5 * time.Second)
		require.Equal(t, 1, b.Health().Sends)
		b.next(2)
		require.ErrorIs(t, b.stop(), context.Canceled)
		require.ErrorIs(t, b.Finalize(t.Context(), b.best.Hash), builder.ErrStopped)
		require.False(t, b.Health().Running)
	})
}

// TestTicketsEnd: the builder forgets a request with its outcome, so that its memory is bounded.
func TestTicketsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{pack: func(builder.Anchor) error { return errors.New("not now") }}
		b := s.open(t, nil, nil)
		b.make(1)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Greater(t, b.Health().BuildFailures, 10)
		working, err := builder.Working(b.Builder)
		require.NoError(t, err)
		require.Zero(t, working)
	})
}

// TestFailedBuilderBeginsNothing: a builder that has failed begins nothing, also in the loop over
// the open requests of the queue that its failure interrupts.
func TestFailedBuilderBeginsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(script).open(t, nil, nil)
		failed := errors.New("the log has failed")
		working, err := builder.FailAndAct(b.Builder, failed)
		require.NoError(t, err)
		require.Zero(t, working)
		require.ErrorIs(t, b.stop(), failed)
	})
}
