//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/evmrollup/guard"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/evmrollup/rpcapi"
	"github.com/jamq/jamq/examples/refnode/internal/front"
	"github.com/jamq/jamq/examples/refnode/live"
	"github.com/jamq/jamq/internal/postgres"
	"github.com/jamq/jamq/internal/wait"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit/jip2"
)

// cluster is several replicas of the node with a log in PostgreSQL, on the chain of a JAM node.
type cluster struct {
	t        testing.TB
	database *postgres.Pair
	jam      *jamNode
	secret   []byte
	key      string // file with secret in hex
	args     []string
	replicas []*builder
}

// clusterSlot is the length of a slot in the tests of a cluster.
const clusterSlot = 60 * time.Millisecond

// startCluster starts replicas on a JAM chain with slots of a length.
func startCluster(t testing.TB, size int, slot time.Duration, args ...string) *cluster {
	t.Helper()
	db, err := postgres.StartPair(true)
	if db != nil {
		t.Cleanup(db.Remove)
	}
	postgres.Require(t, err)
	c := &cluster{t: t, database: db, jam: startJAMNode(t, "-slot", slot.String(), "-loss", "0.1", "-skip", "0.1", "-fork", "0.1"), secret: make([]byte, 32)}
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte(hex.EncodeToString(c.secret)), 0o600))
	c.key = key
	c.args = append([]string{"-jam", c.jam.url, "-bundle", "1", "-cluster", db.URL(), "-v", "-authrpc.jwtsecret", key}, args...)
	for range size {
		c.join()
	}
	return c
}

// join starts one more replica with an empty data directory.
func (c *cluster) join(args ...string) *builder {
	c.t.Helper()
	f := front.New(c.t)
	b := startBehind(c.t, f, slices.Concat(c.args, []string{"-cluster.address", "http://" + f.Addr()}, args)...)
	c.replicas = append(c.replicas, b)
	return b
}

// leader returns the replica that leads.
func (c *cluster) leader(ctx context.Context) (leader *builder) {
	c.t.Helper()
	wait.Until(c.t, func() bool {
		for _, b := range c.replicas {
			var all rpcapi.Replicas
			if c.call(ctx, b, &all, "admin_replicas") != nil {
				continue
			}
			for _, b := range c.replicas {
				if b.url == all.Leader && c.leads(ctx, b) {
					leader = b
					return true
				}
			}
		}
		return false
	}, "a leader")
	return leader
}

// leads reports whether a replica leads now: others refuse a call that a replica passes on.
func (c *cluster) leads(ctx context.Context, b *builder) bool {
	client, err := rpc.DialOptions(ctx, b.url, rpc.WithHeader("User-Agent", "jamq-replica"))
	require.NoError(c.t, err)
	defer client.Close()
	var status map[string]string
	return client.CallContext(ctx, &status, "txpool_status") == nil
}

// call calls a method of the administrators of a replica.
func (c *cluster) call(ctx context.Context, b *builder, result any, method string, args ...any) error {
	client, err := rpc.DialOptions(ctx, b.url, rpc.WithHTTPAuth(guard.Auth(c.secret)))
	require.NoError(c.t, err)
	defer client.Close()
	return client.CallContext(ctx, result, method, args...)
}

// TestK7HandOverFailsNoRequest: the leader hands over to a replica that it names. No transaction
// that a user sends to the other replicas meanwhile is refused, nor a question about the pool, and
// the old leader's process ends well. A replica that does not lead refuses to hand over.
func TestK7HandOverFailsNoRequest(t *testing.T) {
	t.Parallel()
	const transactions = 30
	ctx := wait.Context(t)
	c := startCluster(t, 3, clusterSlot)
	leader := c.leader(ctx)
	others := slices.DeleteFunc(slices.Clone(c.replicas), func(b *builder) bool { return b == leader })
	var sent atomic.Int64
	var sending sync.WaitGroup
	var last [2]common.Hash
	for i, b := range others {
		client, account := dial(t, b.url), accounts(t)[i]
		sending.Go(func() {
			for nonce := range uint64(transactions) {
				tx := types.MustSignNewTx(account.Key, types.LatestSignerForChainID(chainID), transfer(nonce, common.Address{0xf7}))
				if err := client.SendTransaction(ctx, tx); err != nil {
					t.Errorf("transaction %d: %v", nonce, err)
					return
				}
				last[i] = tx.Hash()
				sent.Add(1)
			}
		})
	}
	var asked atomic.Int64
	asking, enough := context.WithCancel(ctx)
	for _, b := range others {
		client := dial(t, b.url).Client()
		sending.Go(func() {
			for asking.Err() == nil {
				var answer json.RawMessage
				for _, err := range []error{
					client.CallContext(ctx, &answer, "eth_getTransactionCount", accounts(t)[0].Address, "pending"),
					client.CallContext(ctx, &answer, "eth_getTransactionByHash", common.Hash{1}),
					client.CallContext(ctx, &answer, "jam_getTransactionStatus", common.Hash{1}),
					client.CallContext(ctx, &answer, "txpool_status"),
				} {
					if err != nil {
						t.Error(err)
						return
					}
				}
				asked.Add(1)
			}
		})
	}
	wait.Until(t, func() bool { return sent.Load() > 10 && asked.Load() > 10 }, "some transactions are sent")
	var ok bool
	require.ErrorContains(t, c.call(ctx, others[0], &ok, "admin_handOver"), leader.url)
	var answer, told bytes.Buffer
	require.Zero(t, run(ctx, []string{"-authrpc.jwtsecret", c.key, "-admin", leader.url, "admin_handOver", others[1].url}, &answer, &told), told.String())
	require.Equal(t, "true\n", answer.String())
	require.NoError(t, leader.wait())
	before := asked.Load()
	wait.Until(t, func() bool { return asked.Load() > before+10 || t.Failed() }, "some questions are answered")
	enough()
	sending.Wait()
	require.Equal(t, others[1], c.leader(ctx))
	for _, tx := range last {
		waitFor(t, dial(t, others[0].url), tx, rpc.LatestBlockNumber)
	}
}

// TestLeaderWithoutJAM: a leader that no longer gets JAM blocks hands over to a replica that does.
func TestLeaderWithoutJAM(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	c := startCluster(t, 0, clusterSlot)
	var ways []*front.Front // of each replica to the JAM node
	for range 2 {
		way := front.New(t)
		way.LeadTo(c.jam.front.Addr())
		ways = append(ways, way)
		c.join("-jam", "ws://"+way.Addr())
	}
	client := dial(t, c.replicas[1].url)
	before := send(t, client, accounts(t)[5], transfer(0, common.Address{0xf8}))
	waitFor(t, client, before.Hash(), rpc.LatestBlockNumber)
	require.Equal(t, c.replicas[0], c.leader(ctx))
	ways[0].Cut()
	require.NoError(t, c.replicas[0].wait())
	after := send(t, client, accounts(t)[5], transfer(1, common.Address{0xf8}))
	waitFor(t, client, after.Hash(), rpc.LatestBlockNumber)
	require.Equal(t, c.replicas[1], c.leader(ctx))
}

// TestKillAReplica: the page shows the replicas, and with -lab its users kill the one that leads.
func TestKillAReplica(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	c := startCluster(t, 2, clusterSlot, "-lab")
	leader := c.leader(ctx)
	other := c.replicas[slices.IndexFunc(c.replicas, func(b *builder) bool { return b != leader })]
	wait.Until(t, func() bool {
		shown := c.shown(ctx, other)
		return shown != nil && shown.Kill && len(shown.Replicas) == 2 && shown.Replicas[0].Address == leader.url && shown.Replicas[1].Self
	}, "the page shows both")
	for address, want := range map[string]int{"http://127.0.0.1:1": http.StatusBadRequest, leader.url: http.StatusNoContent} {
		body := strings.NewReader(fmt.Sprintf(`{"value":%q}`, address))
		answer, err := http.Post(other.url+"/lab/replica", "application/json", body)
		require.NoError(t, err)
		_ = answer.Body.Close()
		require.Equal(t, want, answer.StatusCode, address)
	}
	require.ErrorContains(t, leader.wait(), "killed")
	require.Equal(t, other, c.leader(ctx))
	wait.Until(t, func() bool { return c.shown(ctx, other).Replicas[0].Self }, "the page shows that it leads")
}

// shown returns the replicas that the page of one shows.
func (c *cluster) shown(ctx context.Context, b *builder) *live.Cluster {
	c.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+"/live", nil)
	require.NoError(c.t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(c.t, err)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var state live.State
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			require.NoError(c.t, json.Unmarshal([]byte(data), &state))
			return state.Cluster
		}
	}
	require.NoError(c.t, lines.Err())
	return nil
}

// accepted returns the number of the last block that the rollup's service has accepted on the final
// JAM chain. The JAM node tells it, and no replica.
func (c *cluster) accepted(ctx context.Context) uint64 {
	c.t.Helper()
	client, err := jip2.Open(jip2.DefaultConfig(c.jam.url))
	require.NoError(c.t, err)
	defer client.Close()
	head, err := client.FinalizedBlock(ctx)
	require.NoError(c.t, err)
	count, err := client.ServiceValue(ctx, jamq.HeaderHash(head.HeaderHash), node.DefaultService, service.CountKey())
	require.NoError(c.t, err)
	return binary.LittleEndian.Uint64(count)
}

// TestReplicas: of three replicas one is killed, ended or stopped again and again under load, most
// often the one that leads, and their database and JAM node fail too. Users send their transactions
// to any replica. Each transaction that one has taken is in a final block, JAM has accepted as many
// blocks as are final and no other, and all replicas have the same blocks.
func TestReplicas(t *testing.T) {
	t.Parallel()
	const perFault = 12
	faults := uint64(2 + *kills)
	transactions := perFault * (faults + 1)
	ctx := wait.Context(t)
	c := startCluster(t, 3, clusterSlot)
	var clients []*ethclient.Client
	for _, b := range c.replicas {
		clients = append(clients, dial(t, b.url))
	}
	s := &stream{t: t, account: accounts(t)[4], to: common.Address{0xf6}}
	var sending sync.WaitGroup
	sending.Go(func() { s.sendAll(ctx, transactions, clients...) })
	// until waits until a number of transactions was sent. A replica that has ended by itself is
	// started again: a leader ends when another one leads, and when its database was replaced.
	until := func(sent uint64) {
		wait.Until(t, func() bool {
			for _, b := range c.replicas {
				b.revive()
			}
			return s.sent.Load() >= sent
		}, "%d transactions were sent", sent)
	}
	goOn := func() { until(min(s.sent.Load()+3, transactions)) }
	all := []struct {
		name   string
		happen func(*builder)
	}{
		{"killed", func(b *builder) { b.kill(); b.start() }},
		{"ended", func(b *builder) { b.end(); b.start() }},
		{"stopped", func(b *builder) {
			led := c.leads(ctx, b)
			b.signal(syscall.SIGSTOP)
			goOn()
			b.signal(syscall.SIGCONT)
			if led { // it ends, because another one leads
				_ = b.wait()
			}
		}},
		{"stopped and killed", func(b *builder) { b.signal(syscall.SIGSTOP); goOn(); b.kill(); b.start() }},
		{"database cut off", func(*builder) { require.NoError(t, c.database.Primary.Cut()) }},
		{"database killed", func(*builder) {
			require.NoError(t, c.database.Primary.Kill())
			require.NoError(t, c.database.Primary.Start())
			require.NoError(t, c.database.AwaitStandby())
		}},
		{"database lost", func(*builder) {
			require.NoError(t, c.database.FailOver())
			require.NoError(t, c.database.Rebuild())
			require.NoError(t, c.database.AwaitStandby())
		}},
		{"standby away", func(*builder) {
			require.NoError(t, c.database.Standby.Kill())
			require.NoError(t, c.database.Standby.Start())
			require.NoError(t, c.database.AwaitStandby())
		}},
		{"JAM node killed", func(*builder) { c.jam.kill(); c.jam.start() }},
	}
	random := rand.New(rand.NewPCG(*killsSeed, faults))
	for fault := range faults {
		until(perFault*fault + random.Uint64N(perFault) + 1)
		b := c.leader(ctx)
		if random.IntN(4) == 0 {
			b = c.replicas[random.IntN(len(c.replicas))]
		}
		kind := fault
		if fault > 2 {
			kind = random.Uint64N(uint64(len(all)))
		}
		t.Logf("fault %d: %s, replica %s", fault, all[kind].name, b.url)
		all[kind].happen(b)
	}
	until(transactions)
	sending.Wait()
	// One joins with an empty directory. The log begins with a checkpoint, whose blocks it copies.
	late := c.join()
	require.Contains(t, late.out.String(), "the blocks and states are those of another replica")
	clients = append(clients, dial(t, late.url))
	final := clients[0]
	require.EqualValues(t, 7*transactions, c.replicas[0].finish(s.last).balance)
	newest, err := final.HeaderByNumber(ctx, big.NewInt(int64(rpc.FinalizedBlockNumber)))
	require.NoError(t, err)
	require.Equal(t, newest.Number.Uint64(), c.accepted(ctx))
	for i, hash := range s.hashes {
		receipt, err := clients[i%len(clients)].TransactionReceipt(ctx, hash)
		require.NoError(t, err, "transaction %d", i)
		require.Equal(t, types.ReceiptStatusSuccessful, receipt.Status, "transaction %d", i)
		require.LessOrEqual(t, receipt.BlockNumber.Uint64(), newest.Number.Uint64(), "transaction %d", i)
	}
	for _, client := range clients[1:] {
		waitFor(t, client, s.last, rpc.FinalizedBlockNumber)
		for number := range newest.Number.Int64() {
			want, err := final.HeaderByNumber(ctx, big.NewInt(number+1))
			require.NoError(t, err)
			have, err := client.HeaderByNumber(ctx, big.NewInt(number+1))
			require.NoError(t, err)
			require.Equal(t, want.Hash(), have.Hash(), "block %d", number+1)
		}
	}
}
