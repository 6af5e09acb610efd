package jip2net_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/jip2net"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/words"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/journal"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit/codec"
	"github.com/jamq/jamq/submit/jip2"
)

const rollup jamq.ServiceID = 9

// node is a simulated JAM node with connections in memory.
type node struct {
	wire   bubble.Wire
	fault  atomic.Pointer[jip2server.Error] // of serviceData
	server *jip2server.Server

	mu     sync.Mutex
	oracle *jamtest.Oracle
}

// startNode starts a node whose chain runs by the clock until the test ends.
func startNode(t *testing.T) *node {
	t.Helper()
	n := &node{oracle: jamtest.NewOracle(rollup, func(payload []byte) (e jamtest.Execution) {
		for _, word := range words.Executed(payload) {
			e.Txs = append(e.Txs, string(word))
		}
		return e
	})}
	chain := jamtest.DefaultConfig(jamq.Tiny(), 7)
	chain.StartSlot = jamq.NewSlotClock(chain.Spec).SlotAt(time.Now())
	chain.LossProbability, chain.SkipProbability = 0.2, 0.1
	chain.FinalityLag, chain.MaxForkDepth, chain.ForkProbability = 3, 2, 0.1
	chain.Genesis = words.Genesis(rollup)
	cfg := jip2server.DefaultConfig(chain)
	cfg.Observe = func(u jamtest.Update) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.oracle.Observe(u)
	}
	cfg.Fault = func(method string) (f jip2server.Fault) {
		if method == "serviceData" {
			f.Error = n.fault.Load()
		}
		return f
	}
	var err error
	n.server, err = jip2server.New(cfg)
	require.NoError(t, err)
	server := &http.Server{Handler: n.server, ReadHeaderTimeout: time.Minute}
	listener := n.wire.Listen()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) })
	running.Go(func() { _ = n.server.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		_ = server.Close()
		n.server.Cut()
		running.Wait()
	})
	return n
}

func (n *node) config() jip2net.Config {
	cfg := jip2.DefaultConfig("ws://node.test")
	cfg.Dial = n.wire.Dial
	return jip2net.Config{
		Node: cfg, Version: codec.V072, Package: codec.OneItem(rollup, common.Hash{}, common.Hash{}, 1_000_000_000, 1_000_000), Sign: words.Signer.Sign,
		Service: jip2.Service{
			ID: rollup, Key: service.MarkKey,
			Taken: func(_ jamq.PackageHash, value []byte) (bool, error) { return value != nil, nil },
		},
	}
}

// TestNetwork: a builder whose only way to JAM is the RPC of a node executes everything once and in
// order, also after restarts with packages on their way.
func TestNetwork(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n, log := startNode(t), new(journal.Memory)
		const lives, each = 4, 10
		for life := range lives {
			network, err := jip2net.Open(t.Context(), n.config())
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			b, err := builder.Open(ctx, builder.DefaultConfig(network.Spec()), log, builder.Rollup[words.Body](new(words.Rollup)), network)
			require.NoError(t, err)
			ran := make(chan error, 1)
			go func() { ran <- b.Run(ctx) }()
			for i := range each {
				word := fmt.Sprint(life, i)
				n.mu.Lock()
				n.oracle.Expect(word)
				n.mu.Unlock()
				require.NoError(t, b.Submit(ctx, []byte(word)))
				time.Sleep(10 * time.Second)
			}
			if life == lives-1 {
				require.NoError(t, b.Await(ctx, func(h canonical.Heads) bool { return h.Finalized == h.Pending }))
			}
			cancel()
			require.ErrorIs(t, <-ran, context.Canceled)
			network.Close()
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		verdict := n.oracle.Check()
		require.True(t, verdict.OK(), "%s", &verdict)
	})
}

// TestConfig: a configuration that cannot be used is refused, and a package is made only when the
// chain is followed.
func TestConfig(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startNode(t)
		for _, change := range []func(*jip2net.Config){
			func(c *jip2net.Config) { c.Package = nil }, func(c *jip2net.Config) { c.Service.Key = nil },
			func(c *jip2net.Config) { c.Service.Taken = nil }, func(c *jip2net.Config) { c.LostAfter = -1 },
		} {
			cfg := n.config()
			change(&cfg)
			_, err := jip2net.Open(t.Context(), cfg)
			require.ErrorIs(t, err, jip2net.ErrInvalidConfig)
		}
		network, err := jip2net.Open(t.Context(), n.config())
		require.NoError(t, err)
		defer network.Close()
		_, err = network.Pack(t.Context(), builder.Anchor{}, nil)
		require.ErrorIs(t, err, jip2net.ErrNotFollowing)
		require.ErrorIs(t, network.Send(t.Context(), builder.Package{}, 0, 1), jip2net.ErrNotFollowing)
	})
}

// TestLostAfter: a node that has lost its chain and begins another one ends the network after the
// configured number of slots.
func TestLostAfter(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		ends := func(lostAfter int) time.Duration {
			var node atomic.Pointer[node]
			node.Store(startNode(t))
			cfg := node.Load().config()
			cfg.LostAfter = lostAfter
			cfg.Node.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				return node.Load().wire.Dial(ctx, network, address)
			}
			network, err := jip2net.Open(t.Context(), cfg)
			require.NoError(t, err)
			defer network.Close()
			b, err := builder.Open(t.Context(), builder.DefaultConfig(network.Spec()), new(journal.Memory), builder.Rollup[words.Body](new(words.Rollup)), network)
			require.NoError(t, err)
			ran := make(chan error, 1)
			go func() { ran <- b.Run(t.Context()) }()
			time.Sleep(10 * time.Minute)
			first := node.Swap(startNode(t))
			first.server.Cut()
			began := time.Now()
			require.ErrorIs(t, <-ran, jip2.ErrHistoryLost)
			return time.Since(began)
		}
		short, long := ends(1), ends(40)
		require.Less(t, short, 10*jamq.Tiny().SlotDuration)
		require.Greater(t, long, 40*jamq.Tiny().SlotDuration)
	})
}

// TestHealth: the feed's condition is that of a feed that has not begun, then that of one that
// follows, and then that of one whose node is gone.
func TestHealth(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startNode(t)
		var gone atomic.Bool
		cfg := n.config()
		cfg.Node.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if gone.Load() {
				return nil, syscall.ECONNREFUSED
			}
			return n.wire.Dial(ctx, network, address)
		}
		network, err := jip2net.Open(t.Context(), cfg)
		require.NoError(t, err)
		defer network.Close()
		require.Zero(t, network.Health())
		b, err := builder.Open(t.Context(), builder.DefaultConfig(network.Spec()), new(journal.Memory), builder.Rollup[words.Body](new(words.Rollup)), network)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- b.Run(ctx) }()
		time.Sleep(time.Minute)
		h := network.Health()
		require.True(t, h.Following)
		require.Zero(t, h.Failures)
		require.Equal(t, 1, h.Nodes)
		require.Positive(t, h.Best)

		gone.Store(true)
		n.server.Cut()
		time.Sleep(time.Minute)
		h = network.Health()
		require.Positive(t, h.Failures)
		require.Zero(t, h.Nodes)
		cancel()
		require.ErrorIs(t, <-ran, context.Canceled)
	})
}

// TestServiceStoresNothing: a service that accepts packages and does not store which ones stops the
// builder, and the error names the mistake.
func TestServiceStoresNothing(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		cfg := startNode(t).config()
		cfg.Service.Key = func(jamq.PackageHash) []byte { return []byte("empty") }
		network, err := jip2net.Open(t.Context(), cfg)
		require.NoError(t, err)
		defer network.Close()
		b, err := builder.Open(t.Context(), builder.DefaultConfig(network.Spec()), new(journal.Memory), builder.Rollup[words.Body](new(words.Rollup)), network)
		require.NoError(t, err)
		require.NoError(t, b.Submit(t.Context(), []byte("one")))
		err = b.Run(t.Context())
		require.ErrorIs(t, err, builder.ErrEvidence)
		require.ErrorContains(t, err, "the service does not store what it accepts")
	})
}

// TestServiceIsNotTold: an empty log does not begin on a service in use if the node fails to answer
// for now. It begins if the node never answers, because it lacks the method.
func TestServiceIsNotTold(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startNode(t)
		network, err := jip2net.Open(t.Context(), n.config())
		require.NoError(t, err)
		defer network.Close()
		open := func() (*builder.Builder[words.Body], error) {
			return builder.Open(t.Context(), builder.DefaultConfig(network.Spec()), new(journal.Memory), builder.Rollup[words.Body](new(words.Rollup)), network)
		}
		b, err := open()
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- b.Run(ctx) }()
		n.mu.Lock()
		n.oracle.Expect("one")
		n.mu.Unlock()
		require.NoError(t, b.Submit(ctx, []byte("one")))
		require.NoError(t, b.Await(ctx, func(h canonical.Heads) bool { return h.Finalized.Number == 1 }))
		cancel()
		require.ErrorIs(t, <-ran, context.Canceled)
		_, err = open()
		require.ErrorIs(t, err, builder.ErrServiceInUse)
		for _, code := range []int{jip2.CodeBlockUnavailable, jip2.CodeOther, -32603} {
			n.fault.Store(&jip2server.Error{Code: code, Message: "try again"})
			_, err = open()
			require.Error(t, err, code)
		}
		n.fault.Store(&jip2server.Error{Code: -32601, Message: "method not found"})
		_, err = open()
		require.NoError(t, err)
	})
}
