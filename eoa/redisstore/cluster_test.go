package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/storetest"
	"github.com/jamq/jamq/internal/wait"
)

// clusterNode starts a node of a cluster, which needs two ports: one for clients, and the
// bus 10,000 above. A node that finds one of them in use ends, and another pair is tried.
func clusterNode(t *testing.T) (node *redis.Client, port string) {
	t.Helper()
	const lowest, ports = 20_000, 30_000
	var err error
	for range 100 {
		port = strconv.Itoa(lowest + rand.IntN(ports))
		node, err = launch(t, "--bind", "127.0.0.1", "--port", port, "--cluster-enabled", "yes", "--cluster-node-timeout", "600000")
		if err == nil {
			return node, port
		}
	}
	t.Fatal(err)
	return nil, ""
}

// cluster starts three masters on loopback ports that share the slots, and
// returns a client for them.
func cluster(t *testing.T) *redis.ClusterClient {
	const masters, slots = 3, 16384
	ctx := context.Background()
	var nodes []*redis.Client
	var addrs, ports []string
	for i := range masters {
		n, port := clusterNode(t)
		from, to := slots*i/masters, slots*(i+1)/masters-1
		require.NoError(t, n.ClusterAddSlotsRange(ctx, from, to).Err())
		require.NoError(t, n.Do(ctx, "cluster", "set-config-epoch", i+1).Err())
		nodes, ports, addrs = append(nodes, n), append(ports, port), append(addrs, "127.0.0.1:"+port)
	}
	for _, port := range ports[1:] {
		require.NoError(t, nodes[0].ClusterMeet(ctx, "127.0.0.1", port).Err())
	}
	for _, n := range nodes {
		wait.Until(t, func() bool {
			info, err := n.ClusterInfo(ctx).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprint("cluster_known_nodes:", masters))
		}, "a cluster of %d", masters)
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, DialTimeout: 10 * time.Minute, ReadTimeout: 10 * time.Minute, WriteTimeout: 10 * time.Minute})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// The suite on a Redis Cluster. All keys of an account are in one slot, and accounts are spread.
func TestCluster(t *testing.T) {
	client := cluster(t)
	storetest.Run(t, func() eoa.Store {
		s, err := New(client, "test", simulated)
		require.NoError(t, err)
		return s
	})
	ctx := context.Background()
	timed, err := New(client, "test", Options{})
	require.NoError(t, err)
	_, err = timed.Acquire(ctx, eoa.Account{ChainID: 1}, "worker", time.Now(), time.Minute)
	require.NoError(t, err, "the account's server has a clock")
	slots, used := map[string]int64{}, map[int64]bool{}
	for _, key := range keysOf(t, client) {
		slot, err := client.ClusterKeySlot(ctx, key).Result()
		require.NoError(t, err)
		from, to := strings.Index(key, "{"), strings.Index(key, "}")
		if from < 0 {
			require.Equal(t, "test:due", key)
			continue
		}
		account := key[from:to]
		if other, seen := slots[account]; seen {
			require.Equal(t, other, slot, key)
		}
		slots[account], used[slot] = slot, true
	}
	require.Greater(t, len(used), 10)
}

// keysOf returns all keys of a cluster.
func keysOf(t *testing.T, client *redis.ClusterClient) (keys []string) {
	all := make(chan []string, 100)
	require.NoError(t, client.ForEachMaster(context.Background(), func(ctx context.Context, n *redis.Client) error {
		some, err := n.Keys(ctx, "*").Result()
		all <- some
		return err
	}))
	close(all)
	for some := range all {
		keys = append(keys, some...)
	}
	return keys
}
