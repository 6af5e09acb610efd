package ethchain

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
)

// recorded is a client that remembers its calls. If lacks is set, the node
// answers no question about a height.
type recorded struct {
	Client
	lacks bool

	mu    sync.Mutex
	calls []string
}

func (c *recorded) BatchCallContext(ctx context.Context, calls []rpc.BatchElem) error {
	err := c.Client.BatchCallContext(ctx, calls)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range calls {
		c.calls = append(c.calls, calls[i].Method)
		last := len(calls[i].Args) - 1
		if last < 0 {
			continue
		}
		if _, height := calls[i].Args[last].(hexutil.Uint64); height && c.lacks {
			calls[i].Error = coded{-32000, "header not found"}
		}
	}
	return err
}

// count returns how often a method whose name contains text was called.
func (c *recorded) count(text string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, method := range c.calls {
		if strings.Contains(method, text) {
			n++
		}
	}
	return n
}

// Looks of many accounts share the blocks and prices, also concurrent ones. They
// are equal to separate looks.
func TestSharedHead(t *testing.T) {
	for _, o := range []Options{{}, {FinalityDepth: 3}, {Preconfirmed: true}} {
		s := newSetup(t, 1)
		for range 12 {
			s.node.chain.Mine()
		}
		alone, err := New(s.client, o)
		require.NoError(t, err)
		client := &recorded{Client: s.client}
		o.HeadAge = time.Hour
		chain, err := New(client, o)
		require.NoError(t, err)
		var looks [20]eoa.Look
		var errs [20]error
		var all sync.WaitGroup
		for i := range looks {
			all.Go(func() { looks[i], errs[i] = chain.LookBlobs(context.Background(), common.Address{byte(i)}) })
		}
		all.Wait()
		for i := range looks {
			require.NoError(t, errs[i])
			want, err := alone.LookBlobs(context.Background(), common.Address{byte(i)})
			require.NoError(t, err)
			require.Equal(t, want, looks[i])
		}
		require.Equal(t, 1, client.count("maxPriority"))
		require.Equal(t, 1, client.count("blobBaseFee"))
		require.LessOrEqual(t, client.count("getBlock"), 2)
		require.Equal(t, 20, client.count("getBalance"))

		s.node.chain.Mine()
		young, err := New(client, Options{HeadAge: time.Nanosecond})
		require.NoError(t, err)
		for range 2 {
			s.node.chain.Mine()
			look, err := young.Look(context.Background(), common.Address{1})
			require.NoError(t, err)
			require.Equal(t, s.node.height(rpc.LatestBlockNumber), look.Number, "an old head is not used")
		}
	}
}

// A node of a gateway lacks the shared block. The look then asks for tags, as
// without sharing.
func TestSharedHeadThatANodeLacks(t *testing.T) {
	s := newSetup(t, 1)
	client := &recorded{Client: s.client, lacks: true}
	chain, err := New(client, Options{HeadAge: time.Hour})
	require.NoError(t, err)
	look, err := chain.Look(context.Background(), s.account.Address)
	require.NoError(t, err)
	require.NotZero(t, look.BaseFee)
	require.Positive(t, slices.Index(client.calls, "eth_getBalance"))
}

// An executor works with a shared head.
func TestThroughASharedHead(t *testing.T) {
	s := newSetup(t, 1)
	s.land(t, Options{HeadAge: time.Nanosecond}, s.node.signer, 20)
	_, err := New(s.client, Options{HeadAge: -1})
	require.Error(t, err)
}
