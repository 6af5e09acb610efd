package jip2

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/drive"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/codec"
	"github.com/jamq/jamq/submit/journal"
)

// parcel is a bundle on its way: a name, and once it is built the package.
type parcel struct {
	name    string
	raw     []byte
	context jamq.RefineContext
}

// builder is a runner's host that has nothing but a node's RPC.
type builder struct {
	feed  *Feed
	codec *codec.Codec

	mu    sync.Mutex
	again []parcel
}

func (b *builder) Build(ctx context.Context, r bundlequeue.Build) (drive.Package, error) {
	refine, err := b.feed.Context(ctx, r.Anchor.Hash, r.Prerequisites)
	if err != nil {
		return drive.Package{}, err
	}
	p := codec.WorkPackage{Context: refine, Items: []codec.WorkItem{{Service: 9, Payload: []byte(unpack(r.Bundle).name)}}}
	raw, err := b.codec.Encode(&p)
	if err != nil {
		return drive.Package{}, err
	}
	hash, err := b.codec.PackageHash(&p)
	return drive.Package{Hash: hash, Context: refine, Bundle: pack(parcel{unpack(r.Bundle).name, raw, refine})}, err
}

func (b *builder) Submit(ctx context.Context, r bundlequeue.Send) error {
	p := unpack(r.Bundle)
	return b.feed.Submit(ctx, Submission{Core: r.Core, Hash: r.Package, Context: p.context, Package: p.raw})
}

func (b *builder) observe(o submit.Observation) {
	if failed, ok := o.Effect.(bundlequeue.Failed); ok {
		b.mu.Lock()
		b.again = append(b.again, unpack(failed.Bundle))
		b.mu.Unlock()
	}
}

// enqueue keeps the queue full until all bundles are in it, and those that came back as well.
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

// process is a simulated node whose chain runs by the clock and survives its end in a journal.
type process struct {
	*nodeUnderTest
	path    string
	file    *journal.File
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	oracle *jamtest.Oracle
}

func startProcess(t *testing.T) *process {
	t.Helper()
	p := &process{
		nodeUnderTest: &nodeUnderTest{t: t}, path: filepath.Join(t.TempDir(), "chain"),
		oracle: jamtest.NewOracle(9, func(p []byte) jamtest.Execution { return jamtest.Execution{Txs: []string{string(p)}} }),
	}
	p.begin()
	t.Cleanup(p.kill)
	return p
}

func (p *process) begin() {
	p.t.Helper()
	chain := jamtest.DefaultConfig(jamq.Tiny(), 7)
	chain.StartSlot = jamq.NewSlotClock(chain.Spec).SlotAt(time.Now())
	chain.LossProbability, chain.SkipProbability, chain.UnavailableProbability = 0.1, 0.1, 0.05
	chain.FinalityLag, chain.MaxForkDepth, chain.ForkProbability = 3, 2, 0.1
	cfg := jip2server.DefaultConfig(chain)
	cfg.Observe = func(u jamtest.Update) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.oracle.Observe(u)
	}
	var err error
	p.file, err = journal.Open(p.path)
	require.NoError(p.t, err)
	cfg.Journal = p.file
	p.chain, err = jip2server.New(cfg)
	require.NoError(p.t, err)
	p.up()
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	server := p.chain
	p.running.Go(func() { _ = server.Run(ctx) })
}

// kill ends the process; nothing of it stays but the journal.
func (p *process) kill() {
	p.cancel()
	p.running.Wait()
	p.down()
	_ = p.file.Close()
}

func (p *process) verdict() jamtest.Verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.oracle.Check()
}

// startBuilder starts a runner that has nothing but the node's RPC.
func startBuilder(t *testing.T, p *process) (*builder, *drive.Runner) {
	t.Helper()
	feed, err := OpenFeed(t.Context(), p.client(nil), FeedConfig{Service: marks})
	require.NoError(t, err)
	b := &builder{feed: feed}
	b.codec, err = codec.New(codec.V072, feed.Spec())
	require.NoError(t, err)
	cfg := submit.DefaultConfig(feed.Spec())
	cfg.Observe = b.observe
	runner, err := drive.NewRunner(cfg, feed.Root(), b, b)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	require.NoError(t, runner.Start(ctx))
	followed := make(chan error, 1)
	go func() { followed <- feed.Follow(ctx, runner) }()
	t.Cleanup(func() {
		cancel()
		if err := <-followed; !errors.Is(err, context.Canceled) {
			t.Errorf("follow: %v", err)
		}
		runner.Stop()
	})
	return b, runner
}

// TestRunnerOverConnections runs a whole builder and a whole chain with connections
// between them. The connections are cut again and again, and the chain's process is
// killed and restarted from its journal. On the chain, every bundle must be executed
// once and in order.
func TestRunnerOverConnections(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		const bundles, patience = 35, 5000
		p := startProcess(t)
		b, runner := startBuilder(t, p)
		var waiting []parcel
		for i := range bundles {
			name := fmt.Sprint("bundle ", i)
			p.oracle.Expect(name)
			waiting = append(waiting, parcel{name: name})
		}
		kills := 0
		for tick := 0; len(p.verdict().Lost) > 0; tick++ {
			time.Sleep(jamq.Tiny().SlotDuration)
			waiting = b.enqueue(t.Context(), runner, waiting)
			switch {
			case tick%23 == 11:
				p.chain.Cut()
			case tick%25 == 20 && kills < 5:
				kills++
				p.kill()
				p.begin()
			}
			v := p.verdict()
			require.Less(t, tick, patience, "%v", &v)
		}
		v := p.verdict()
		require.True(t, v.OK(), "%v", &v)
		require.Len(t, v.Executed, bundles)
		require.Positive(t, kills)
	})
}
