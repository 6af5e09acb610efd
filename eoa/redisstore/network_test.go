package redisstore

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/internal/repeat"
)

// network is a proxy between clients and a Redis. It cuts connections before or after a
// request, and delivers requests long after their sender has given up, out of order.
type network struct {
	to string

	mu      sync.Mutex
	rng     *rand.Rand
	bad     float64
	carried int // requests so far
	late    []lateRequest
	open    []net.Conn
}

// lateRequest is delivered when the network has carried a number of requests.
type lateRequest struct {
	after   int
	request []byte
	server  net.Conn
}

func newNetwork(t *testing.T, to string, seed uint64) (n *network, addr string) {
	n = &network{to: to, rng: rand.New(rand.NewPCG(seed, 0))}
	addr = filepath.Join(directory(t), "proxy")
	l, err := net.Listen("unix", addr)
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { n.carry(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		n.mu.Lock()
		for _, c := range n.open {
			_ = c.Close()
		}
		n.mu.Unlock()
		all.Wait()
	})
	return n, addr
}

func (n *network) set(bad float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bad = bad
}

// The fates of a request.
const (
	carried = iota
	cutBefore
	cutAfter
	delayed
)

// draw returns the fate of a request, and delivers those that were late until now.
func (n *network) draw() (fate int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.carried++
	n.late = slices.DeleteFunc(n.late, func(l lateRequest) bool {
		if n.carried < l.after {
			return false
		}
		_, _ = l.server.Write(l.request)
		return true
	})
	if n.rng.Float64() >= n.bad {
		return carried
	}
	return 1 + n.rng.IntN(3)
}

// delay keeps a request for later.
func (n *network) delay(request []byte, server net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.late = append(n.late, lateRequest{n.carried + 1 + n.rng.IntN(30), bytes.Clone(request), server})
}

func (n *network) carry(client net.Conn) {
	server, err := net.Dial("unix", n.to)
	if err != nil {
		_ = client.Close()
		return
	}
	n.mu.Lock()
	n.open = append(n.open, client, server)
	n.mu.Unlock()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	defer func() { _ = client.Close() }()
	request := make([]byte, 1<<20)
	for {
		size, err := client.Read(request)
		if err != nil {
			_ = server.Close()
			return
		}
		switch n.draw() {
		case cutBefore:
			_ = server.Close()
			return
		case cutAfter:
			_ = client.Close() // the answer is lost
			_, _ = server.Write(request[:size])
			<-answered
			_ = server.Close()
			return
		case delayed:
			n.delay(request[:size], server)
			return
		default:
			if _, err := server.Write(request[:size]); err != nil {
				return
			}
		}
	}
}

// A network loses and delays calls to Redis, and a node loses answers and
// refuses sends for lack of funds. Every request lands exactly once.
func TestBadNetwork(t *testing.T) {
	first := repeat.First()
	for seed := first; seed < first+1; seed++ {
		direct := server(t)
		wires, addr := newNetwork(t, direct.Options().Addr, seed)
		options := *dial(addr).Options()
		options.MaxRetries, options.MinRetryBackoff, options.MaxRetryBackoff = 1, time.Millisecond, 2*time.Millisecond
		options.DialerRetries = 1
		client := redis.NewClient(&options)
		t.Cleanup(func() { _ = client.Close() })
		key, err := crypto.ToECDSA(common.LeftPadBytes([]byte{5}, 32))
		require.NoError(t, err)
		const chainID, requests = 99, 40
		a := eoa.Account{ChainID: chainID, Address: crypto.PubkeyToAddress(key.PublicKey)}
		chain, now := eoatest.New(chainID, seed, 3), &clock{time.Unix(1_800_000_000, 0)}
		chain.SetFaults(eoatest.Faults{DropResponse: 0.1, Refuse: 0.15, Return: 0.5, Reorg: 0.1, ReorgDepth: 2})
		cfg := eoa.DefaultConfig()
		cfg.Now, cfg.Batch, cfg.LeaseFor = now.Now, 5, 10*time.Second
		s, err := New(client, "test", simulated)
		require.NoError(t, err)
		e, err := eoa.New(cfg, a, s, chain, eoa.NewKeySigner(chainID, key))
		require.NoError(t, err)
		ctx, failed := context.Background(), 0
		truth, err := New(direct, "test", simulated)
		require.NoError(t, err)
		over := func() bool {
			records, err := truth.List(ctx, a, 0, 10_000)
			require.NoError(t, err)
			final := 0
			for i := range records {
				if records[i].State == eoa.Final && !records[i].Noop {
					final++
				}
			}
			return final == requests
		}
		wires.set(0.2)
		for i := 0; !over(); i++ {
			require.Less(t, i, 1000)
			if i == 120 {
				wires.set(0)
				chain.SetFaults(eoatest.Faults{})
			}
			if k := i % 60; k < requests && i < 180 {
				_, _ = e.Submit(ctx, eoa.Request{Key: fmt.Sprint(k), Data: []byte(fmt.Sprint(k)), Gas: 50_000})
			}
			if _, err := e.Step(ctx); err != nil {
				failed++
			}
			chain.Mine()
			now.now = now.now.Add(2 * time.Second)
		}
		t.Logf("%d steps failed", failed)
		require.Positive(t, failed)
		landed := map[string]int{}
		for _, tx := range chain.Transactions() {
			if len(tx.Data()) > 0 {
				landed[string(tx.Data())]++
			}
		}
		require.Len(t, landed, requests)
		for key, n := range landed {
			require.Equal(t, 1, n, "request %s, seed %d", key, seed)
		}
	}
}
