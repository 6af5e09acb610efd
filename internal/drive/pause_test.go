package drive_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/drive"
	"github.com/jamq/jamq/submit"
)

// picky is a host whose builds and sends end as the test says.
type picky struct {
	host
	mu     sync.Mutex
	builds int
	sends  []uint64
	build  func(bundlequeue.Build) error
	send   func(bundlequeue.Send) error
}

func (p *picky) Build(ctx context.Context, r bundlequeue.Build) (drive.Package, error) {
	p.mu.Lock()
	p.builds++
	fail := p.build
	p.mu.Unlock()
	if fail != nil {
		if err := fail(r); err != nil {
			return drive.Package{}, err
		}
	}
	return p.host.Build(ctx, r)
}

func (p *picky) Submit(_ context.Context, r bundlequeue.Send) error {
	p.mu.Lock()
	p.sends = append(p.sends, r.Number)
	fail := p.send
	p.mu.Unlock()
	if fail != nil {
		return fail(r)
	}
	return nil
}

// done returns how many builds there were, and the bundles whose packages were sent.
func (p *picky) done() (builds int, sends []uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.builds, slices.Clone(p.sends)
}

// begin starts a runner on the block of slot 1.
func begin(t *testing.T, p *picky, change func(*submit.Config)) (*drive.Runner, jamq.Block) {
	t.Helper()
	time.Sleep(time.Until(jamq.CommonEra()))
	cfg := submit.DefaultConfig(jamq.Tiny())
	if change != nil {
		change(&cfg)
	}
	root := jamq.Block{Hash: jamq.HeaderHash{'r'}}
	r, err := drive.NewRunner(cfg, root, p, p)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context()))
	t.Cleanup(r.Stop)
	best := jamq.Block{Hash: jamq.HeaderHash{1}, Parent: root.Hash, Slot: 1}
	require.NoError(t, r.Import(t.Context(), best, best.Hash))
	return r, best
}

var errNoCore = submit.WithClass(submit.Fatal, errors.New("core 9 does not exist"))

// A fatal error pauses the runner: it builds and sends nothing until it is resumed, or given other
// cores. It still takes events, and the outcome of a send that was under way is not lost.
func TestFatalPauses(t *testing.T) {
	for name, resume := range map[string]func(*testing.T, *drive.Runner){
		"Resume": func(t *testing.T, r *drive.Runner) { require.NoError(t, r.Resume(t.Context())) },
		"Cores": func(t *testing.T, r *drive.Runner) {
			require.NoError(t, r.Step(t.Context(), bundlequeue.Cores{Cores: []jamq.CoreIndex{1, 0}}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answered, begun := make(chan struct{}), make(chan struct{})
				var once sync.Once
				p := &picky{send: func(r bundlequeue.Send) error {
					if r.Number == 1 {
						<-begun // so that the other send is under way
						return errNoCore
					}
					once.Do(func() { close(begun) })
					<-answered
					return nil
				}}
				r, _ := begin(t, p, nil)
				ctx := t.Context()
				require.NoError(t, r.Enqueue(ctx, bundlequeue.Enqueue{Number: 1, Bundle: []byte("one")}))
				require.NoError(t, r.Enqueue(ctx, bundlequeue.Enqueue{Number: 2, Bundle: []byte("two")}))
				time.Sleep(10 * time.Second)
				synctest.Wait()
				require.ErrorIs(t, r.Health().Paused, errNoCore)
				require.Equal(t, 1, r.Health().Fatal)
				builds, sends := p.done()
				require.ElementsMatch(t, []uint64{1, 2}, sends)

				close(answered) // the other send ends while the runner is paused
				require.NoError(t, r.Enqueue(ctx, bundlequeue.Enqueue{Number: 3, Bundle: []byte("three")}))
				time.Sleep(time.Minute)
				synctest.Wait()
				info, _, err := r.Info(ctx, 2)
				require.NoError(t, err)
				require.Equal(t, bundlequeue.Submitted, info.State)
				buildsNow, sendsNow := p.done()
				require.Equal(t, builds, buildsNow)
				require.Equal(t, sends, sendsNow)

				p.mu.Lock()
				p.send = nil
				p.mu.Unlock()
				resume(t, r)
				require.NoError(t, r.Health().Paused)
				time.Sleep(20 * time.Second)
				synctest.Wait()
				_, sendsNow = p.done()
				require.Greater(t, len(sendsNow), len(sends))
				info, _, err = r.Info(ctx, 1)
				require.NoError(t, err)
				require.Equal(t, bundlequeue.Submitted, info.State)
			})
		})
	}
}

// A fatal error of the builder pauses as well. The alarm for the bundle goes on.
func TestFatalBuildPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &picky{build: func(bundlequeue.Build) error { return errNoCore }}
		r, _ := begin(t, p, nil)
		require.NoError(t, r.Enqueue(t.Context(), bundlequeue.Enqueue{Number: 1}))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		builds, sends := p.done()
		require.Equal(t, 1, builds)
		require.Empty(t, sends)
		require.ErrorIs(t, r.Health().Paused, errNoCore)
		require.True(t, r.Health().Delayed)
	})
}

// An error of class Rebuild ends the sends of a package. Errors of the other classes repeat them,
// with the same bytes.
func TestClassesOfSendErrors(t *testing.T) {
	for class, want := range map[submit.Class]int{submit.Retryable: 9, submit.OtherGuarantor: 9, submit.Rebuild: 1} {
		t.Run(class.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &picky{send: func(bundlequeue.Send) error { return submit.WithClass(class, errors.New("no")) }}
				r, _ := begin(t, p, nil)
				require.NoError(t, r.Enqueue(t.Context(), bundlequeue.Enqueue{Number: 1}))
				time.Sleep(time.Hour)
				synctest.Wait()
				builds, sends := p.done()
				require.Equal(t, 1, builds)
				require.Len(t, sends, want)
				require.NoError(t, r.Health().Paused)
			})
		})
	}
}

// If an invariant is violated, the runner stops before it acts on the step.
func TestInvariantsStopTheRunner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("the pool holds a transaction twice")
		var wrong error
		p := &picky{}
		observed := 0
		r, _ := begin(t, p, func(c *submit.Config) {
			c.CheckInvariants = true
			c.Invariants = func() error { return wrong }
			c.Observe = func(submit.Observation) { observed++ }
		})
		wrong = broken
		require.ErrorIs(t, r.Enqueue(t.Context(), bundlequeue.Enqueue{Number: 1}), broken)
		r.Stop()
		require.ErrorIs(t, r.Health().Err, broken)
		require.Zero(t, observed)
		builds, _ := p.done()
		require.Zero(t, builds)
	})
}

// Step takes each kind of event.
func TestStepTakesEveryEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed []uint64
		p := &picky{}
		r, best := begin(t, p, func(c *submit.Config) {
			c.CheckInvariants = true
			c.Observe = func(o submit.Observation) {
				if f, ok := o.Effect.(bundlequeue.Failed); ok {
					failed = append(failed, f.Number)
				}
			}
		})
		ctx := t.Context()
		require.NoError(t, r.Step(ctx, bundlequeue.Reserve{Number: 1}))
		require.NoError(t, r.Enqueue(ctx, bundlequeue.Enqueue{Number: 2}))
		require.NoError(t, r.Step(ctx, bundlequeue.Rekey{From: 2, To: 5}))
		require.NoError(t, r.Step(ctx, bundlequeue.Resize{Depth: 2}))
		can, err := r.CanEnqueue(ctx)
		require.NoError(t, err)
		require.False(t, can)
		require.NoError(t, r.Step(ctx, bundlequeue.Cores{Cores: []jamq.CoreIndex{1}}))
		require.NoError(t, r.Step(ctx, bundlequeue.Release{Number: 1}))
		require.Equal(t, []uint64{5}, failed)
		number, err := r.EnqueueNext(ctx, common.Hash{1}, common.Hash{2}, []byte("one"))
		require.NoError(t, err)
		require.Equal(t, uint64(1), number)
		time.Sleep(8 * time.Second)
		require.NoError(t, r.Step(ctx, bundlequeue.Retry{Number: 1}))
		require.NoError(t, r.Step(ctx, bundlequeue.GiveUp{Number: 1}))
		require.ErrorIs(t, r.Step(ctx, bundlequeue.Told{}), bundlequeue.ErrWrongEvidence)
		root := jamq.Block{Hash: jamq.HeaderHash{2, 90}, Parent: best.Hash, Slot: 90}
		state := chainview.State{Cores: make([]chainview.CoreReport, 2), Accumulated: make([][]jamq.PackageHash, 12)}
		for slot := jamq.Slot(83); slot <= root.Slot; slot++ {
			state.Recent = append(state.Recent, chainview.RecentBlock{Hash: jamq.HeaderHash{2, byte(slot)}, Slot: slot})
		}
		require.NoError(t, r.Step(ctx, bundlequeue.Continue{Root: root, State: state}))
		require.Equal(t, []uint64{5, 1}, failed)
		stats, err := r.Stats(ctx)
		require.NoError(t, err)
		require.Equal(t, 1, stats.Cores)
		require.Equal(t, uint64(1), stats.Next)
	})
}

// A bundle whose package died waits for a block that can be its anchor. The alarm's reason names
// this cause.
func TestDelayedForWantOfAnAnchor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, best := begin(t, &picky{}, nil)
		ctx := t.Context()
		require.NoError(t, r.Enqueue(ctx, bundlequeue.Enqueue{Number: 1}))
		time.Sleep(10 * time.Second)
		for slot := jamq.Slot(2); slot <= 8; slot++ { // the package is anchored to the root
			best = jamq.Block{Hash: jamq.HeaderHash{byte(slot)}, Parent: best.Hash, Slot: slot}
			require.NoError(t, r.Import(ctx, best, best.Hash))
		}
		health := r.Health()
		require.Equal(t, uint64(1), health.Waiting.Number)
		require.Equal(t, "no block can be its anchor yet", health.Waiting.Reason)
		require.False(t, health.Delayed)
		time.Sleep(121 * time.Second)
		require.True(t, r.Health().Delayed, "JAM makes no blocks")
		next := jamq.Block{Hash: jamq.HeaderHash{9}, Parent: best.Hash, Slot: 9}
		require.NoError(t, r.Import(ctx, next, next.Hash))
		time.Sleep(10 * time.Second)
		require.False(t, r.Health().Delayed)
		require.Zero(t, r.Health().Waiting.Number)
	})
}

// Many goroutines execute a block on the same head at once. The first one gets a number. The
// blocks of the others have no pre-state any more.
func TestEnqueueNextFromManyGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 50
		r, _ := begin(t, &picky{}, func(c *submit.Config) { c.Queue.MaxQueueDepth = many })
		_, err := r.EnqueueNext(t.Context(), common.Hash{1}, common.Hash{2}, []byte("first"))
		require.NoError(t, err)
		results := make(chan error, many)
		for i := range many {
			go func() {
				number, err := r.EnqueueNext(t.Context(), common.Hash{2}, common.Hash{3, byte(i)}, []byte("bundle"))
				if err == nil && number != 2 {
					t.Errorf("number %d", number)
				}
				results <- err
			}()
		}
		accepted := 0
		for range many {
			if err := <-results; err == nil {
				accepted++
			} else {
				require.ErrorIs(t, err, bundlequeue.ErrWrongParent)
			}
		}
		require.Equal(t, 1, accepted)
		for _, hashes := range [][2]common.Hash{{{}, {9}}, {{9}, {}}} {
			_, err = r.EnqueueNext(t.Context(), hashes[0], hashes[1], []byte("bundle"))
			require.ErrorIs(t, err, bundlequeue.ErrWrongParent)
		}
	})
}

// News that finality has overtaken is no error for a feed.
func TestOldNewsIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, best := begin(t, &picky{}, nil)
		ctx := t.Context()
		next := jamq.Block{Hash: jamq.HeaderHash{2}, Parent: best.Hash, Slot: 2}
		require.NoError(t, r.Import(ctx, next, next.Hash))
		require.NoError(t, r.Finalize(ctx, next.Hash))
		require.NoError(t, r.Finalize(ctx, best.Hash))
		fork := jamq.Block{Hash: jamq.HeaderHash{3}, Parent: best.Hash, Slot: 2}
		require.NoError(t, r.Import(ctx, fork, next.Hash))
	})
}

// A send that hangs is not begun again when the runner is resumed.
func TestWorkUnderWayIsNotBegunTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answered, begun := make(chan struct{}), make(chan struct{})
		var once sync.Once
		p := &picky{send: func(r bundlequeue.Send) error {
			if r.Number == 1 {
				once.Do(func() { close(begun) })
				<-answered
				return nil
			}
			<-begun // so that the other send is under way
			return errNoCore
		}}
		r, _ := begin(t, p, func(c *submit.Config) { c.Queue.MaxSubmitRetries = 0 })
		ctx := t.Context()
		require.NoError(t, r.Enqueue(ctx, bundlequeue.Enqueue{Number: 1}))
		require.NoError(t, r.Enqueue(ctx, bundlequeue.Enqueue{Number: 2}))
		time.Sleep(10 * time.Second)
		require.Error(t, r.Health().Paused)
		require.NoError(t, r.Resume(ctx))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		_, sends := p.done()
		require.ElementsMatch(t, []uint64{1, 2}, sends)
		close(answered)
	})
}
