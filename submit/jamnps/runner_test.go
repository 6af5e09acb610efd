package jamnps

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/drive"
	"github.com/jamq/jamq/submit"
)

// parcel is a bundle on its way.
type parcel struct {
	name string
	raw  []byte
}

func pack(p parcel) []byte { return append([]byte(p.name+"|"), p.raw...) }

func unpack(b []byte) parcel {
	name, raw, _ := strings.Cut(string(b), "|")
	return parcel{name, []byte(raw)}
}

// builder is a runner's host that has nothing but the network.
type builder struct {
	t    *testing.T
	w    *world
	feed *Feed

	mu    sync.Mutex
	again []parcel
}

func (b *builder) Build(ctx context.Context, r bundlequeue.Build) (drive.Package, error) {
	refine, err := b.feed.Context(ctx, r.Anchor.Hash, r.Prerequisites)
	if err != nil {
		return drive.Package{}, err
	}
	raw, hash := encodePackage(b.t, b.w, refine, unpack(r.Bundle).name, 0)
	return drive.Package{Hash: hash, Context: refine, Bundle: pack(parcel{unpack(r.Bundle).name, raw})}, nil
}

func (b *builder) Submit(ctx context.Context, r bundlequeue.Send) error {
	return b.feed.client.SubmitPackage(ctx, Submission{Core: r.Core, Attempt: r.Attempt, Package: unpack(r.Bundle).raw})
}

func (b *builder) observe(o submit.Observation) {
	if failed, ok := o.Effect.(bundlequeue.Failed); ok {
		b.mu.Lock()
		b.again = append(b.again, unpack(failed.Bundle))
		b.mu.Unlock()
	}
}

// enqueue fills the queue with the bundles that it gave up, and then with those that wait.
func (b *builder) enqueue(ctx context.Context, runner *drive.Runner, waiting []parcel) []parcel {
	b.mu.Lock()
	waiting, b.again = append(b.again, waiting...), nil
	b.mu.Unlock()
	for len(waiting) > 0 {
		stats, err := runner.Stats(ctx)
		if err == nil {
			err = runner.Enqueue(ctx, bundlequeue.Enqueue{Number: stats.Next, Bundle: pack(waiting[0])})
		}
		if err != nil {
			break
		}
		waiting = waiting[1:]
	}
	return waiting
}

// TestRunnerOverTheNetwork runs a whole builder on a network of three nodes. One node
// refuses packages now and then, one goes away and comes back, and connections are
// cut. On the chain, every bundle must be accumulated once and in order.
func TestRunnerOverTheNetwork(t *testing.T) {
	bubble.Run(t, playNetwork)
}

func playNetwork(t *testing.T) {
	const bundles, patience = 20, 3000
	w := newWorld(t)
	peers := []*guarantor{startGuarantor(t, w, 1), startGuarantor(t, w, 2), startGuarantor(t, w, 3)}
	feed, err := OpenFeed(t.Context(), openClient(t, w, nil, peers...), FeedConfig{})
	require.NoError(t, err)
	b := &builder{t: t, w: w, feed: feed}
	cfg := submit.DefaultConfig(jamq.Tiny())
	cfg.Observe = b.observe
	runner, err := drive.NewRunner(cfg, feed.Root(), b, b)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, runner.Start(ctx))
	defer runner.Stop()
	followed := make(chan error)
	go func() { followed <- feed.Follow(ctx, runner) }()
	defer func() {
		cancel()
		require.ErrorIs(t, <-followed, context.Canceled)
	}()

	var want []string
	var waiting []parcel
	for i := range bundles {
		want = append(want, fmt.Sprint("bundle ", i))
		waiting = append(waiting, parcel{name: want[i]})
	}
	clock := jamq.NewSlotClock(jamq.Tiny())
	for tick := 0; len(w.finalize(2).done) < bundles; tick++ {
		time.Sleep(jamq.Tiny().SlotDuration)
		w.grow(w.best, clock.SlotAt(time.Now())-w.best.header.Slot)
		waiting = b.enqueue(ctx, runner, waiting)
		switch tick % 12 {
		case 2:
			peers[0].cut()
		case 4:
			peers[1].set(func() { peers[1].refuse[133] = !peers[1].refuse[133] })
		case 6:
			peers[2].down()
		case 9:
			peers[2].up()
		}
		require.Less(t, tick, patience, "%d of %d", len(w.finalized.done), bundles)
	}
	require.Equal(t, want, w.finalized.done)
}
