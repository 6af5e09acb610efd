package builder_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/words"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/journal"
	jamqsubmit "github.com/jamq/jamq/submit"
)

// simulated is a simulated JAM chain whose host and guarantors have troubles.
type simulated struct {
	*simnet.Network
	buildTime time.Duration
	steady    bool // no call fails by chance
	calls     atomic.Int64

	unreachable, deaf atomic.Bool // guarantors, and the host
}

func (s *simulated) Pack(ctx context.Context, at builder.Anchor, payload []byte) (builder.Package, error) {
	pkg, err := s.Network.Pack(ctx, at, payload)
	time.Sleep(s.buildTime)
	if s.calls.Add(1)%7 == 0 && !s.steady {
		return builder.Package{}, errors.New("no package this time")
	}
	return pkg, err
}

func (s *simulated) Send(ctx context.Context, pkg builder.Package, core jamq.CoreIndex, attempt int) error {
	if s.unreachable.Load() {
		return errors.New("no guarantor can be reached")
	}
	err := s.Network.Send(ctx, pkg, core, attempt)
	if s.calls.Add(1)%11 == 0 && !s.steady {
		return errors.New("it arrived, and the answer was lost")
	}
	return err
}

func (s *simulated) Follow(ctx context.Context, found jamqsubmit.Recovery, to jamqsubmit.ChainSink) error {
	return s.Network.Follow(ctx, found, late{to, s})
}

// late is a sink that gets nothing while the host is deaf.
type late struct {
	jamqsubmit.ChainSink
	s *simulated
}

func (l late) Import(ctx context.Context, block jamq.Block, best jamq.HeaderHash) error {
	for l.s.deaf.Load() && ctx.Err() == nil {
		time.Sleep(time.Second)
	}
	return l.ChainSink.Import(ctx, block, best)
}

// TestSimulation: a builder is driven by a simulated chain. Pack is slow in some seeds, guarantors
// and blocks are out of reach for a while in others, finality is older than a lookup anchor lives,
// and the set of cores changes. Every operation is executed once, and blocks in their order.
func TestSimulation(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) { simulate(t, seed) })
		})
	}
}

func simulate(t *testing.T, seed uint64) {
	cfg := jamtest.DefaultConfig(jamq.Tiny(), seed)
	cfg.SkipProbability, cfg.LossProbability, cfg.UnavailableProbability = float64(seed%4)/10, float64(seed%5)/10, float64(seed%3)/20
	cfg.ForeignLoad, cfg.LastMomentProbability = float64(seed%3)/5, float64(seed%2)/5
	cfg.FinalityLag, cfg.MaxForkDepth, cfg.ForkProbability = 4, 3, float64(seed%3)/10
	if seed%6 == 5 {
		// A slow package is nearly too old when it is ready.
		cfg.FinalityLag = int(cfg.Spec.MaxLookupAnchorAge) / 3
	}
	s := &simulated{
		// 12.5 s and more: an anchor from the table expires before the package is ready.
		buildTime: []time.Duration{0, 2 * time.Second, 12500 * time.Millisecond, 25 * time.Second}[seed%4],
	}
	s.play(t, cfg, 12, func(b *builder.Builder[words.Body], slot int) error { return s.trouble(b, seed, slot) })
}

// TestSlowBuilderFinalizes: a host that takes 12.5 s for each package makes everything final on the
// tiny chain: a package that is too old when it is ready makes the next anchor fresher.
func TestSlowBuilderFinalizes(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		s := &simulated{buildTime: 12500 * time.Millisecond, steady: true}
		stats := s.play(t, jamtest.DefaultConfig(jamq.Tiny(), 1), 60, nil)
		require.Zero(t, stats.Totals.Entered(bundlequeue.FailedState))
		require.LessOrEqual(t, stats.Totals.Useless, uint64(2), "it learns from the first one")
	})
}

// TestStalledFinalityDelays: finality that stands still for longer than a lookup anchor lives
// delays blocks and fails none. The alarm gives the reason.
func TestStalledFinalityDelays(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		alarm, s := "", &simulated{steady: true}
		stats := s.play(t, jamtest.DefaultConfig(jamq.Tiny(), 1), 120, func(b *builder.Builder[words.Body], slot int) error {
			if h := b.Health(); h.Delayed {
				alarm = h.Waiting.Reason
			}
			return s.Driver().ChangeFaults(func(f *jamtest.Faults) { f.FinalityStopped = slot > 10 && slot < 200 })
		})
		require.Zero(t, stats.Totals.Entered(bundlequeue.FailedState))
		require.Contains(t, alarm, "finality does not move")
		require.Contains(t, alarm, "D3")
	})
}

// trouble begins and ends outages, and changes the set of cores.
func (s *simulated) trouble(b *builder.Builder[words.Body], seed uint64, slot int) error {
	within := func(from, to int) bool { return slot >= from && slot < to }
	s.unreachable.Store(seed%3 == 1 && (within(20, 120) || within(200, 240)))
	s.deaf.Store(seed%5 == 2 && (within(30, 50) || within(150, 250)))
	if seed%7 == 3 && (slot == 40 || slot == 100) { // longer than a lookup anchor lives
		if err := s.Driver().ChangeFaults(func(f *jamtest.Faults) { f.FinalityStopped = slot == 40 }); err != nil {
			return err
		}
	}
	if seed%4 == 3 && slot%25 == 0 {
		sets := [][]jamq.CoreIndex{{0}, {1, 0}, {1}, {0, 1}}
		return b.SetCores(context.Background(), sets[slot/25%len(sets)])
	}
	return nil
}

// play runs a builder until n blocks of one word each are final, and judges by the final JAM chain
// alone. trouble is called once in each slot.
func (s *simulated) play(t *testing.T, cfg jamtest.Config, n int, trouble func(*builder.Builder[words.Body], int) error) (stats bundlequeue.Stats) {
	t.Helper()
	cfg.StartSlot = jamq.NewSlotClock(cfg.Spec).SlotAt(time.Now())
	chain, err := jamtest.New(cfg)
	require.NoError(t, err)
	s.Network = simnet.New(chain, 7)
	builderConfig := builder.DefaultConfig(cfg.Spec)
	builderConfig.CheckInvariants = true
	rollup := new(words.Saving)
	rollup.Most = 1
	b, err := builder.Open(t.Context(), builderConfig, new(journal.Memory), builder.Rollup[words.Body](rollup), builder.Network(s))
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, b.Submit(t.Context(), fmt.Appendf(nil, "word %03d", i)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()

	const maxSlots = 5000
	var executed []string
	slots, driven := 0, make(chan struct{})
	go func() {
		defer close(driven)
		_ = s.Run(ctx, func(u jamtest.Update) {
			slots++
			for _, a := range u.Final {
				for _, word := range words.Executed(a.Payload) {
					executed = append(executed, string(word))
				}
			}
			if trouble != nil {
				if err := trouble(b, slots); err != nil && ctx.Err() == nil {
					t.Errorf("slot %d: %v", slots, err)
				}
			}
			if len(executed) >= n || slots > maxSlots {
				go func() {
					stats, _ = b.Stats(ctx)
					cancel()
				}()
			}
		})
	}()
	require.ErrorIs(t, <-ended, context.Canceled)
	<-driven
	require.Len(t, executed, n, "after %d slots", slots)
	for i, word := range executed {
		require.Equal(t, fmt.Sprintf("word %03d", i), word, "the order of %v", executed)
	}
	return stats
}
