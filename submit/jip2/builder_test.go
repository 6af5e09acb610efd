package jip2

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/words"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/journal"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/codec"
)

// network is the way to JAM of a builder that has nothing but a node's RPC.
type network struct {
	client *Client
	codec  *codec.Codec
	feed   atomic.Pointer[Feed] // of Follow
}

func (n *network) Root(ctx context.Context) (jamq.Block, error) {
	final, err := n.client.FinalizedBlock(ctx)
	return jamq.Block{Hash: jamq.HeaderHash(final.HeaderHash), Slot: final.Slot}, err
}

func (n *network) Pack(ctx context.Context, at builder.Anchor, payload []byte) (builder.Package, error) {
	feed := n.feed.Load()
	if feed == nil {
		return builder.Package{}, errors.New("the chain is not known yet")
	}
	refine, err := feed.Context(ctx, at.Hash, at.Prerequisites)
	if err != nil {
		return builder.Package{}, err
	}
	p := codec.WorkPackage{Context: refine, Items: []codec.WorkItem{{Service: 9, Payload: payload}}}
	if err := words.Signer.Sign(n.codec, &p); err != nil {
		return builder.Package{}, err
	}
	raw, hash, err := n.codec.EncodePackage(&p)
	return builder.Package{Hash: hash, Context: refine, Data: raw}, err
}

func (n *network) Send(ctx context.Context, pkg builder.Package, core jamq.CoreIndex, _ int) error {
	return n.feed.Load().Submit(ctx, Submission{Core: core, Hash: pkg.Hash, Context: pkg.Context, Package: pkg.Data})
}

func (n *network) Follow(ctx context.Context, found submit.Recovery, to submit.ChainSink) error {
	feed, err := OpenFeed(ctx, n.client, FeedConfig{
		Service: marks, Root: jamq.Block{Hash: found.Finalized.Hash, Slot: found.Finalized.Slot}, Best: found.Best.Hash,
	})
	if err != nil {
		return err
	}
	feed.finalEvery = 30
	for _, out := range found.Out {
		known := Known{Package: out.Package, Context: out.Context, Core: out.Core}
		for into, at := range map[*jamq.Slot]anchor.Point{&known.Reported: out.Reported, &known.Available: out.Available, &known.Accumulated: out.Accumulated} {
			if !at.IsZero() && at.Height <= found.Finalized.Height {
				*into = at.Slot
			}
		}
		feed.Restore(known)
	}
	n.feed.Store(feed)
	return feed.Follow(ctx, to)
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
		oracle: jamtest.NewOracle(9, func(p []byte) jamtest.Execution { return executed(p) }),
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
	chain.Genesis = words.Genesis(9)
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

// executed does what the service does with a payload.
func executed(payload []byte) (e jamtest.Execution) {
	for _, word := range words.Executed(payload) {
		e.Txs = append(e.Txs, string(word))
	}
	return e
}

// running is a builder's process.
type running struct {
	*builder.Builder[words.Body]
	end func()
}

// startBuilder starts a builder whose blocks have one word.
func startBuilder(t *testing.T, p *process, log builder.Log) *running {
	t.Helper()
	n := &network{client: p.client(nil)}
	parameters, err := n.client.Parameters(t.Context())
	require.NoError(t, err)
	spec, err := parameters.Spec("test")
	require.NoError(t, err)
	n.codec, err = codec.New(codec.V072, spec)
	require.NoError(t, err)
	rollup := new(words.Saving)
	rollup.Most = 1
	cfg := builder.DefaultConfig(spec)
	cfg.CheckpointEvery = 50
	b, err := builder.Open(t.Context(), cfg, log, builder.Rollup[words.Body](rollup), builder.Network(n))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	end := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v", err)
		}
		n.client.Close()
	})
	t.Cleanup(end)
	synctest.Wait()
	return &running{b, end}
}

// submitWords submits words, which the chain must execute.
func submitWords(t *testing.T, p *process, b *running, n int) {
	t.Helper()
	for i := range n {
		word := fmt.Sprint("word ", i)
		p.oracle.Expect(word)
		require.NoError(t, b.Submit(t.Context(), []byte(word)))
	}
}

// TestBuilderOverConnections runs a whole builder and a whole chain with connections
// between them. The connections are cut again and again, and the chain's process is
// killed and restarted from its journal. On the chain, every word must be executed
// once and in order.
func TestBuilderOverConnections(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		const blocks, patience = 35, 5000
		p := startProcess(t)
		submitWords(t, p, startBuilder(t, p, new(journal.Memory)), blocks)
		kills := 0
		for tick := 0; len(p.verdict().Lost) > 0; tick++ {
			time.Sleep(jamq.Tiny().SlotDuration)
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
		require.Len(t, v.Executed, blocks)
		require.Positive(t, kills)
	})
}

// TestBuilderComesBackLate: a builder ends with packages on their way, and comes back when the
// chain is further than all that its log knows, and many times further than one package lives: all
// that it had is executed, once and in order.
func TestBuilderComesBackLate(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		const blocks = 8
		p, log := startProcess(t), new(journal.Memory)
		b := startBuilder(t, p, log)
		submitWords(t, p, b, blocks)
		sent := func() bool {
			stats, err := b.Stats(t.Context())
			require.NoError(t, err)
			return stats.Count[bundlequeue.Submitted]+stats.Count[bundlequeue.Guaranteed] > 0
		}
		bubble.Await(t, time.Millisecond, sent, "a package is on its way")
		b.end()
		time.Sleep(120 * jamq.Tiny().SlotDuration)
		startBuilder(t, p, log)
		bubble.Await(t, time.Millisecond, func() bool { return len(p.verdict().Lost) == 0 }, "all words are executed")
		v := p.verdict()
		require.True(t, v.OK(), "%v", &v)
		require.Len(t, v.Executed, blocks)
	})
}
