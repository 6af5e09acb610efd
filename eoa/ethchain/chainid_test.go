package ethchain

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
)

// recorded is a client that remembers its calls.
type recorded struct {
	Client

	mu    sync.Mutex
	calls []string
}

func (c *recorded) BatchCallContext(ctx context.Context, calls []rpc.BatchElem) error {
	err := c.Client.BatchCallContext(ctx, calls)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range calls {
		c.calls = append(c.calls, calls[i].Method)
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

// A chain on another id than the node's answers nothing.
func TestOtherChainID(t *testing.T) {
	ctx := context.Background()
	s := newSetup(t, 1)
	wrong, err := New(s.client, Options{ChainID: testChain + 1})
	require.NoError(t, err)
	_, err = wrong.Look(ctx, s.account.Address)
	require.ErrorIs(t, err, ErrNode)
	require.ErrorContains(t, err, "the node is on chain 4359, want 4360")
	_, err = wrong.Ask(ctx, eoa.Questions{Heights: []uint64{1}})
	require.ErrorIs(t, err, ErrNode)
	require.ErrorIs(t, wrong.Estimate(ctx, s.account.Address, []*eoa.Request{{}})[0].Err, ErrNode)
	require.Equal(t, eoa.Unknown, wrong.Send(ctx, [][]byte{{2}})[0].Result)

	right, err := New(s.client, Options{ChainID: testChain})
	require.NoError(t, err)
	_, err = right.Look(ctx, s.account.Address)
	require.NoError(t, err)
}

// A chain asks for the id again after a failed call.
func TestChainIDIsAskedAgain(t *testing.T) {
	s := newSetup(t, 1)
	client := &recorded{Client: s.client}
	chain, err := New(client, Options{ChainID: testChain})
	require.NoError(t, err)
	for range 3 {
		_, err = chain.Look(context.Background(), s.account.Address)
		require.NoError(t, err)
	}
	require.Equal(t, 1, client.count("eth_chainId"))
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = chain.Look(ended, s.account.Address)
	require.Error(t, err)
	_, err = chain.Look(context.Background(), s.account.Address)
	require.NoError(t, err)
	require.Equal(t, 2, client.count("eth_chainId"))
}

// An executor works through a faulty network while the id is checked.
func TestExecutorWithChainID(t *testing.T) {
	s := newSetup(t, 3)
	s.land(t, Options{ChainID: testChain}, s.node.signer, 10)
}
