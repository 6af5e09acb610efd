package jip2

import (
	"encoding/binary"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit/codec"
)

// nodeUnderTest is a simulated node at an address that it keeps across restarts.
type nodeUnderTest struct {
	t      *testing.T
	chain  *jip2server.Server
	wire   bubble.Wire
	server *http.Server
	faults sync.Mutex
	fault  map[string]jip2server.Fault
}

func startNode(t *testing.T, change func(*jip2server.Config)) *nodeUnderTest {
	t.Helper()
	n := &nodeUnderTest{t: t, fault: map[string]jip2server.Fault{}}
	cfg := jip2server.DefaultConfig(jamtest.DefaultConfig(jamq.Tiny(), 7))
	var err error
	cfg.Chain.Genesis, err = service.Genesis{Service: 9, Authorizer: new(codec.WorkPackage).Authorizer()}.Entries()
	require.NoError(t, err)
	cfg.Fault = func(method string) jip2server.Fault {
		n.faults.Lock()
		defer n.faults.Unlock()
		return n.fault[method]
	}
	if change != nil {
		change(&cfg)
	}
	n.chain, err = jip2server.New(cfg)
	require.NoError(t, err)
	n.up()
	t.Cleanup(n.down)
	return n
}

func (n *nodeUnderTest) up() {
	n.t.Helper()
	listener := n.wire.Listen()
	n.server = &http.Server{Handler: n.chain, ReadHeaderTimeout: time.Minute}
	go func(s *http.Server) { _ = s.Serve(listener) }(n.server)
}

// down is the end of the process: it listens no more, and all connections break.
func (n *nodeUnderTest) down() {
	_ = n.server.Close()
	n.chain.Cut()
}

// breaks sets what goes wrong with a method from now on.
func (n *nodeUnderTest) breaks(method string, f jip2server.Fault) {
	n.faults.Lock()
	defer n.faults.Unlock()
	n.fault[method] = f
}

func (n *nodeUnderTest) step(count int) (u jamtest.Update) {
	n.t.Helper()
	for range count {
		var err error
		u, err = n.chain.Step()
		require.NoError(n.t, err)
	}
	return u
}

func (n *nodeUnderTest) client(change func(*Config)) *Client {
	n.t.Helper()
	cfg := DefaultConfig("ws://node.test")
	cfg.Dial = n.wire.Dial
	cfg.BackoffBase, cfg.BackoffMax = time.Millisecond, 20*time.Millisecond
	if change != nil {
		change(&cfg)
	}
	c, err := Open(cfg)
	require.NoError(n.t, err)
	n.t.Cleanup(c.Close)
	return c
}

// TestMain fails the tests if a goroutine is left when all of them have ended.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// encode returns a package of the rollup's service 9 with a block, whose roots are zero.
func encode(t *testing.T, context jamq.RefineContext, block uint64, content string) ([]byte, jamq.PackageHash) {
	t.Helper()
	c, err := codec.New(codec.V072, jamq.Tiny())
	require.NoError(t, err)
	payload := append(service.EncodeHeader(proof.Commitment{Number: block}), content...)
	p := codec.WorkPackage{Context: context, Items: []codec.WorkItem{{Service: 9, Payload: payload}}}
	raw, err := c.Encode(&p)
	require.NoError(t, err)
	hash, err := c.PackageHash(&p)
	require.NoError(t, err)
	return raw, hash
}

// next returns the number of the block for which the service waits at the best JAM block.
func (n *nodeUnderTest) next() (block uint64) {
	n.t.Helper()
	n.chain.View(func(c *jamtest.Chain) {
		count, err := c.Value(9, c.Best().Hash, service.CountKey())
		require.NoError(n.t, err)
		if count != nil {
			block = binary.LittleEndian.Uint64(count)
		}
	})
	return block + 1
}

func (n *nodeUnderTest) context(offset int) (context jamq.RefineContext) {
	n.t.Helper()
	n.chain.View(func(c *jamtest.Chain) {
		var err error
		context, err = c.Context(offset)
		require.NoError(n.t, err)
	})
	return context
}

// until reads updates until one satisfies.
func until[T any](t *testing.T, s *Subscription[T], ok func(T) bool) T {
	t.Helper()
	for {
		if v := update(t, s); ok(v) {
			return v
		}
	}
}
