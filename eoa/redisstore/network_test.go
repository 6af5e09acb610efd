package redisstore

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
)

// network is a proxy between clients and a Redis. It cuts connections before or
// after a request, loses answers, and delivers requests long after their sender
// has given up, out of order.
type network struct {
	to string

	mu   sync.Mutex
	rng  *rand.Rand
	bad  float64
	open []net.Conn
}

func newNetwork(t *testing.T, to string, seed uint64) (n *network, addr string) {
	n = &network{to: to, rng: rand.New(rand.NewPCG(seed, 0))}
	l, err := net.Listen("tcp", "127.0.0.1:0")
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
	return n, l.Addr().String()
}

func (n *network) set(bad float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bad = bad
}

// draw returns what happens to a request: 0 for nothing, 1 cut before, 2 cut after, 3 late.
func (n *network) draw() (what int, wait time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rng.Float64() >= n.bad {
		return 0, 0
	}
	return 1 + n.rng.IntN(3), time.Duration(n.rng.IntN(300)) * time.Millisecond
}

func (n *network) carry(client net.Conn) {
	server, err := net.Dial("tcp", n.to)
	if err != nil {
		_ = client.Close()
		return
	}
	n.mu.Lock()
	n.open = append(n.open, client, server)
	n.mu.Unlock()
	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	defer func() { _ = server.Close() }()
	defer func() { _ = client.Close() }()
	request := make([]byte, 1<<20)
	for {
		size, err := client.Read(request)
		if err != nil {
			return
		}
		switch what, wait := n.draw(); what {
		case 1:
			return
		case 2:
			_ = client.Close() // the answer is lost
			_, _ = server.Write(request[:size])
			time.Sleep(50 * time.Millisecond)
			return
		case 3:
			time.Sleep(wait)
			fallthrough
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
	first, _ := strconv.ParseUint(os.Getenv("JAMQ_SEED"), 10, 64)
	for seed := first; seed < first+1; seed++ {
		direct := server(t)
		wires, addr := newNetwork(t, direct.Options().Addr, seed)
		client := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: 60 * time.Millisecond, WriteTimeout: 60 * time.Millisecond, MaxRetries: 1,
			MinRetryBackoff: time.Millisecond, MaxRetryBackoff: 2 * time.Millisecond, DialerRetries: 1})
		t.Cleanup(func() { _ = client.Close() })
		key, err := crypto.ToECDSA(common.LeftPadBytes([]byte{5}, 32))
		require.NoError(t, err)
		const chainID, requests = 99, 40
		a := eoa.Account{ChainID: chainID, Address: crypto.PubkeyToAddress(key.PublicKey)}
		chain, now := eoatest.New(chainID, seed, 3), &clock{time.Unix(1_800_000_000, 0)}
		chain.SetFaults(eoatest.Faults{DropResponse: 0.1, Refuse: 0.15, Return: 0.5, Reorg: 0.1, ReorgDepth: 2})
		cfg := eoa.DefaultConfig()
		cfg.Clock, cfg.Batch, cfg.LeaseFor = now, 5, 10*time.Second
		s, err := New(client, "test")
		require.NoError(t, err)
		e, err := eoa.New(cfg, a, s, chain, eoa.NewKeySigner(chainID, key))
		require.NoError(t, err)
		ctx, failed := context.Background(), 0
		truth, err := New(direct, "test")
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
		wires.set(0.08)
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
