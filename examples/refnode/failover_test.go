//go:build unix

package main

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/jamq/jamq/evmrollup/devkeys"
	"github.com/jamq/jamq/internal/wait"
)

// pooled is the number of transactions that wait in the pool in the benchmarks of a cluster.
const pooled = 100_000

// fillPool sends transactions that wait, because the first nonce of their senders is missing.
func (c *cluster) fillPool() {
	c.t.Helper()
	ctx := wait.Context(c.t)
	url, senders := c.leader(ctx).url, accounts(c.t)[1:]
	var sending errgroup.Group
	for _, sender := range senders {
		sending.Go(func() error { return sendWaiting(ctx, url, sender, pooled/len(senders)+1) })
	}
	require.NoError(c.t, sending.Wait())
}

// sendWaiting sends transactions of one sender from nonce 1 on.
func sendWaiting(ctx context.Context, url string, sender devkeys.Account, count int) error {
	client, err := rpc.DialContext(ctx, url)
	if err != nil {
		return err
	}
	defer client.Close()
	signer := types.LatestSignerForChainID(chainID)
	for next := 1; next <= count; {
		var batch []rpc.BatchElem
		for ; next <= count && len(batch) < 500; next++ {
			raw, err := types.MustSignNewTx(sender.Key, signer, transfer(uint64(next), common.Address{0xf9})).MarshalBinary()
			if err != nil {
				return err
			}
			batch = append(batch, rpc.BatchElem{Method: "eth_sendRawTransaction", Args: []any{hexutil.Bytes(raw)}, Result: new(common.Hash)})
		}
		if err := client.BatchCallContext(ctx, batch); err != nil {
			return err
		}
		for _, call := range batch {
			if call.Error != nil {
				return call.Error
			}
		}
	}
	return nil
}

// BenchmarkFailOver kills the replica that leads, or ends it as an operator does, with 100,000
// transactions in the pool. It reports the time until another one takes the next transaction, the
// lease of a second not counted.
func BenchmarkFailOver(b *testing.B) {
	for _, way := range []struct {
		name  string
		end   func(*builder)
		lease time.Duration
	}{
		{"killed", (*builder).kill, time.Second},
		{"handed over", (*builder).end, 0},
	} {
		b.Run(way.name, func(b *testing.B) {
			c := startCluster(b, b.N+1, time.Second, "-pool", "200000", "-pool.sender", "20000", "-rpc.batch-request-limit", "1000")
			c.fillPool()
			ctx := wait.Context(b)
			signer, account := types.LatestSignerForChainID(chainID), accounts(b)[0]
			var took []time.Duration
			nonce := uint64(0)
			for range b.N {
				leader := c.leader(ctx)
				others := slices.DeleteFunc(slices.Clone(c.replicas), func(b *builder) bool { return b == leader })
				ended := make(chan struct{})
				began := time.Now()
				go func() { way.end(leader); close(ended) }()
				if way.lease > 0 {
					<-ended
				}
				tx := types.MustSignNewTx(account.Key, signer, transfer(nonce, common.Address{0xf9}))
				require.NoError(b, dial(b, others[0].url).SendTransaction(ctx, tx))
				took = append(took, time.Since(began)-way.lease)
				nonce++
				<-ended
				c.replicas = others
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "ms-p50")
			b.ReportMetric(float64(took[len(took)-1].Milliseconds()), "ms-worst")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkHandOver hands over while users send 500 transactions per second to the other two
// replicas, and do not wait for answers before they send more. It fails if a request fails, and
// reports how long the slowest one took. The leader has 100,000 other transactions in its pool.
func BenchmarkHandOver(b *testing.B) {
	const apart = 2 * time.Millisecond
	const after = 1000 // how many transactions are sent after the hand-over
	signer, account := types.LatestSignerForChainID(chainID), accounts(b)[0]
	var slowest, handedOver time.Duration
	for range b.N {
		c := startCluster(b, 3, time.Second, "-pool", "200000", "-pool.sender", "20000", "-rpc.batch-request-limit", "1000")
		c.fillPool()
		ctx := wait.Context(b)
		leader := c.leader(ctx)
		others := slices.DeleteFunc(slices.Clone(c.replicas), func(b *builder) bool { return b == leader })
		clients := []*ethclient.Client{dial(b, others[0].url), dial(b, others[1].url)}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			began := time.Now()
			leader.end()
			handedOver = max(handedOver, time.Since(began))
		}()
		var sending errgroup.Group
		var mu sync.Mutex
		tick := time.NewTicker(apart)
		defer tick.Stop()
		nonce := uint64(0)
		send := func() {
			<-tick.C
			tx := types.MustSignNewTx(account.Key, signer, transfer(nonce, common.Address{0xf9}))
			client := clients[nonce%2]
			sending.Go(func() error {
				began := time.Now()
				err := client.SendTransaction(ctx, tx)
				mu.Lock()
				defer mu.Unlock()
				slowest = max(slowest, time.Since(began))
				return err
			})
			nonce++
		}
		for over := false; !over; {
			select {
			case <-ended:
				over = true
			default:
				send()
			}
		}
		for range after {
			send()
		}
		require.NoError(b, sending.Wait())
		b.Logf("%d transactions", nonce)
	}
	b.ReportMetric(float64(handedOver.Milliseconds()), "ms-handover")
	b.ReportMetric(float64(slowest.Milliseconds()), "ms-slowest")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkDatabaseFailOver kills the machine of the database, with 100,000 transactions in the
// pool, and promotes the synchronous standby. It reports the time from the first commit of the new
// database until a replica takes the next transaction.
func BenchmarkDatabaseFailOver(b *testing.B) {
	args := []string{"-pool", "200000", "-pool.sender", "20000", "-rpc.batch-request-limit", "1000", "-cluster.synchronous"}
	c := startCluster(b, 3, time.Second, args...)
	c.fillPool()
	ctx := wait.Context(b)
	signer, account := types.LatestSignerForChainID(chainID), accounts(b)[0]
	var took []time.Duration
	for nonce := range uint64(b.N) {
		follower := c.replicas[slices.IndexFunc(c.replicas, func(r *builder) bool { return !c.leads(ctx, r) })]
		require.NoError(b, c.database.FailOver())
		require.NoError(b, c.database.Rebuild())
		require.NoError(b, c.database.AwaitStandby())
		began := time.Now()
		tx := types.MustSignNewTx(account.Key, signer, transfer(nonce, common.Address{0xf9}))
		require.NoError(b, dial(b, follower.url).SendTransaction(ctx, tx))
		took = append(took, time.Since(began))
		for _, r := range c.replicas {
			r.revive()
		}
		c.leader(ctx)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "ms-p50")
	b.ReportMetric(float64(took[len(took)-1].Milliseconds()), "ms-worst")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkFollowerReads reports how much later the subscribers of a follower see a block than
// those of the leader.
func BenchmarkFollowerReads(b *testing.B) {
	ctx := wait.Context(b)
	c := startCluster(b, 2, 250*time.Millisecond, "-pool.sender", "20000")
	leader := c.leader(ctx)
	other := c.replicas[slices.IndexFunc(c.replicas, func(b *builder) bool { return b != leader })]
	seen := make([]chan *types.Header, 2)
	for i, replica := range []*builder{leader, other} {
		seen[i] = make(chan *types.Header, 1000)
		subscription, err := dial(b, "ws://"+strings.TrimPrefix(replica.url, "http://")).SubscribeNewHead(ctx, seen[i])
		require.NoError(b, err)
		defer subscription.Unsubscribe()
	}
	type sight struct {
		replica int
		hash    common.Hash
		at      time.Time
	}
	sights := make(chan sight)
	for i := range seen {
		go func() {
			for header := range seen[i] {
				select {
				case sights <- sight{i, header.Hash(), time.Now()}:
				case <-ctx.Done():
				}
			}
		}()
	}
	client, account := dial(b, leader.url), accounts(b)[0]
	first := make(map[common.Hash]sight)
	var late []time.Duration
	for n := range uint64(b.N) {
		tx := types.MustSignNewTx(account.Key, types.LatestSignerForChainID(chainID), transfer(n, common.Address{0xf9}))
		require.NoError(b, client.SendTransaction(ctx, tx))
	}
	for len(late) < b.N {
		s := <-sights
		before, both := first[s.hash]
		switch {
		case !both:
			first[s.hash] = s
		case s.replica == 1:
			late = append(late, s.at.Sub(before.at))
		default: // the follower was first
			late = append(late, 0)
		}
	}
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)/2].Microseconds())/1000, "ms-p50")
	b.ReportMetric(float64(late[len(late)*99/100].Microseconds())/1000, "ms-p99")
	b.ReportMetric(0, "ns/op")
}
