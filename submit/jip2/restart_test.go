package jip2

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/drive"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/codec"
	"github.com/jamq/jamq/submit/journal"
)

// written is a parcel in the queue.
type written struct {
	Name    string
	Raw     []byte
	Context jamq.RefineContext
}

func pack(p parcel) []byte {
	raw, err := json.Marshal(written{p.name, p.raw, p.context})
	if err != nil {
		panic(err)
	}
	return raw
}

func unpack(b []byte) parcel {
	var w written
	if err := json.Unmarshal(b, &w); err != nil {
		panic(err)
	}
	return parcel{w.Name, w.Raw, w.Context}
}

// durable is a builder's process: a runner with a journal, and a feed that
// continues after the queue's last block.
type durable struct {
	*builder
	runner *drive.Runner
	end    func()
}

func startDurable(t *testing.T, p *process, disk *journal.Memory, root jamq.Block) *durable {
	t.Helper()
	client := p.client(nil)
	parameters, err := client.Parameters(t.Context())
	require.NoError(t, err)
	spec, err := parameters.Spec("test")
	require.NoError(t, err)
	d := &durable{builder: &builder{}}
	d.codec, err = codec.New(codec.V072, spec)
	require.NoError(t, err)
	cfg := submit.DefaultConfig(spec)
	cfg.Observe = d.observe
	d.runner, err = drive.OpenRunner(cfg, root, drive.Durability{Journal: disk, SnapshotEvery: 50}, d, d)
	require.NoError(t, err)
	found := d.runner.Recovered()
	from := FeedConfig{Service: marks, Root: jamq.Block{Hash: found.Finalized.Hash, Slot: found.Finalized.Slot}, Best: found.Best.Hash}
	d.feed, err = OpenFeed(t.Context(), client, from)
	require.NoError(t, err)
	d.feed.finalEvery = 30
	for _, out := range found.Out {
		known := Known{Package: out.Package, Context: out.Context, Core: out.Core}
		for into, at := range map[*jamq.Slot]anchor.Point{&known.Reported: out.Reported, &known.Available: out.Available, &known.Accumulated: out.Accumulated} {
			if !at.IsZero() && at.Height <= found.Finalized.Height {
				*into = at.Slot
			}
		}
		d.feed.Restore(known)
	}
	ctx, cancel := context.WithCancel(context.Background())
	require.NoError(t, d.runner.Start(ctx))
	followed := make(chan error, 1)
	go func() { followed <- d.feed.Follow(ctx, d.runner) }()
	ended := false
	d.end = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		if err := <-followed; !errors.Is(err, context.Canceled) {
			t.Errorf("follow: %v", err)
		}
		d.runner.Stop()
		client.Close()
	}
	t.Cleanup(d.end)
	return d
}

// A builder ends with packages out, and comes back when the chain is further than all that its
// queue knows, and many times further than one package lives: all that it had is executed, once and
// in order.
func TestRunnerComesBackLate(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		const bundles = 8
		p := startProcess(t)
		var disk journal.Memory
		final, err := p.client(nil).FinalizedBlock(t.Context())
		require.NoError(t, err)
		d := startDurable(t, p, &disk, jamq.Block{Hash: jamq.HeaderHash(final.HeaderHash), Slot: final.Slot})
		var waiting []parcel
		for i := range bundles {
			name := fmt.Sprint("bundle ", i)
			p.oracle.Expect(name)
			waiting = append(waiting, parcel{name: name})
		}
		out := func() bool {
			waiting = d.enqueue(t.Context(), d.runner, waiting)
			infos, err := d.runner.Infos(t.Context())
			require.NoError(t, err)
			sent := 0
			for _, i := range infos {
				if i.State == bundlequeue.Submitted || i.State == bundlequeue.Guaranteed {
					sent++
				}
			}
			return len(waiting) == 0 && sent > 0
		}
		bubble.Await(t, time.Millisecond, out, "a package is out")
		d.end()
		time.Sleep(120 * jamq.Tiny().SlotDuration)
		d = startDurable(t, p, &disk, jamq.Block{})
		bubble.Await(t, time.Millisecond, func() bool {
			waiting = d.enqueue(t.Context(), d.runner, waiting)
			return len(p.verdict().Lost) == 0
		}, "all bundles are executed")
		v := p.verdict()
		require.True(t, v.OK(), "%v", &v)
		require.Len(t, v.Executed, bundles)
	})
}
