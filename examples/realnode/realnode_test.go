package realnode

import (
	"context"
	"crypto/ed25519"
	"flag"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/internal/wait"
	"github.com/jamq/jamq/submit/codec"
	"github.com/jamq/jamq/submit/jamnps"
	"github.com/jamq/jamq/submit/jip2"
)

var (
	blocks = flag.Int("blocks", 0, "number of blocks to follow live, before and after a restart of the node; 0: skip the test")
	live   = flag.Bool("live", false, "log what the feeds log")
)

// chain records what a feed delivers.
type chain struct {
	mu    sync.Mutex
	slots map[jamq.HeaderHash]jamq.Slot
	best  jamq.HeaderHash
	final int
}

func (c *chain) Import(_ context.Context, b jamq.Block, best jamq.HeaderHash) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slots[b.Hash], c.best = b.Slot, best
	return nil
}

func (c *chain) Finalize(context.Context, jamq.HeaderHash) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.final++
	return nil
}

// head returns the best block and the number of delivered blocks.
func (c *chain) head() (best jamq.HeaderHash, slot jamq.Slot, delivered int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.best, c.slots[c.best], len(c.slots)
}

// TestRealNode follows a chain that a node of others makes: over JAMNP-S with the feed, and over
// JIP-2 with the client. Both sides see the same blocks. Nothing connects again until the node is
// killed, and then both continue. The node lacks methods that a builder needs over JIP-2, which the
// feed and the reference node say at their start. The results are those of docs/compatibility.md.
func TestRealNode(t *testing.T) {
	if *blocks == 0 {
		t.Skip("-blocks is 0: the test with a real node belongs to the deep stage")
	}
	n := startRealNode(t)
	log := new(output)
	logger := slog.New(slog.NewTextHandler(log, nil))
	if *live {
		logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	cfg := jip2.DefaultConfig(n.url())
	cfg.Logger = logger
	client, err := jip2.Open(cfg)
	require.NoError(t, err)
	defer client.Close()
	f := &findings{results: map[string]string{}}
	spec := checkStart(t, n, client, f)
	best, err := client.SubscribeBestBlock(wait.Context(t))
	require.NoError(t, err)
	genesis := walkBack(t, client)

	c, err := codec.New(codec.V072, spec)
	require.NoError(t, err)
	key := jamnps.KeyFromSeed([32]byte{1})
	netCfg := jamnps.DefaultConfig(ed25519.PrivateKey(key), jamq.HeaderHash(genesis.HeaderHash), c, []jamnps.Peer{n.peer})
	netCfg.Logger, netCfg.Listen = logger, "127.0.0.1:0"
	peers, err := jamnps.Open(netCfg)
	require.NoError(t, err)
	defer peers.Close()
	root := jamq.Block{Hash: netCfg.Genesis, Slot: genesis.Slot}
	feed, err := jamnps.OpenFeed(wait.Context(t), peers, jamnps.FeedConfig{Root: root, Logger: logger})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	seen := &chain{slots: map[jamq.HeaderHash]jamq.Slot{root.Hash: root.Slot}, best: root.Hash}
	go func() { ended <- feed.Follow(ctx, seen) }()

	followLive(t, client, best, seen, *blocks)
	require.NotContains(t, log.String(), "not connected")
	streams := strings.Count(log.String(), "announcements ended")
	require.LessOrEqual(t, streams, 1, "both sides open a stream, and the node may give up one: %s", log)
	n.kill()
	n.start()
	followLive(t, client, best, seen, *blocks)
	streams = strings.Count(log.String(), "announcements ended")
	require.LessOrEqual(t, streams, 4, "no more than the streams of two connections: %s", log)

	head, _, _ := seen.head()
	pkg := emptyPackage(t, c, head)
	f.ask(t, client, pkg)
	f.send(t, peers, feed, head, pkg) // the node closes the connection at unknown requests
	f.check(t)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// checkStart checks what the node can be asked, and that programs name what it lacks.
func checkStart(t *testing.T, n *realNode, client *jip2.Client, f *findings) jamq.ChainSpec {
	t.Helper()
	parameters, err := client.Parameters(wait.Context(t))
	require.NoError(t, err)
	spec, err := parameters.Spec("tiny")
	require.NoError(t, err)
	want := jamq.Tiny()
	require.Equal(t, want, spec)
	const lacks = "not supported by the node: beefyRoot, workPackageStatus"
	_, err = jip2.OpenFeed(wait.Context(t), client, jip2.FeedConfig{Service: jip2.Service{
		Key:   func(pkg jamq.PackageHash) []byte { return pkg[:] },
		Taken: func(jamq.PackageHash, []byte) (bool, error) { return false, nil },
	}})
	f.follow(err)
	require.ErrorIs(t, err, jip2.ErrUnsupported)
	require.ErrorContains(t, err, lacks)
	cfg := node.DefaultConfig(spec, spec.SlotDuration, 1)
	cfg.JAMURL = n.url()
	_, err = node.New(cfg)
	require.ErrorContains(t, err, lacks, "the reference node does not start")
	return spec
}

// walkBack returns the genesis block.
func walkBack(t *testing.T, client *jip2.Client) jip2.BlockDescriptor {
	t.Helper()
	at, err := client.BestBlock(wait.Context(t))
	for err == nil && at.Slot > 0 {
		at, err = client.Parent(wait.Context(t), jamq.HeaderHash(at.HeaderHash))
	}
	require.NoError(t, err)
	return at
}

// followLive waits for a number of blocks and compares each head that the client sees with the
// blocks of the feed.
func followLive(t *testing.T, client *jip2.Client, best *jip2.Subscription[jip2.BlockDescriptor], seen *chain, count int) {
	t.Helper()
	_, _, before := seen.head()
	for {
		u := wait.Receive(t, best.Updates(), "a new head")
		require.NoError(t, u.Err)
		wait.Until(t, func() bool {
			_, slot, _ := seen.head()
			return slot >= u.Value.Slot
		}, "the feed delivers slot %d", u.Value.Slot)
		head, slot, delivered := seen.head()
		if slot == u.Value.Slot {
			require.Equal(t, u.Value.HeaderHash, jip2.Hash(head))
		}
		if delivered >= before+count {
			parent, err := client.Parent(wait.Context(t), head)
			require.NoError(t, err)
			require.Less(t, parent.Slot, slot)
			return
		}
	}
}
