package ethchain

import (
	"context"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// tipClient answers the methods about prices itself. A method without an answer is
// one that the node does not have.
type tipClient struct {
	*recorded
	code                     int // of the error for a missing method
	suggested, price         *hexutil.Big
	rewards                  [][]*hexutil.Big
	ratios                   []float64
	history                  bool
	percentiles, blocks, tag any // arguments of the last eth_feeHistory
}

func (c *tipClient) BatchCallContext(ctx context.Context, calls []rpc.BatchElem) error {
	if err := c.recorded.BatchCallContext(ctx, calls); err != nil {
		return err
	}
	for i := range calls {
		call := &calls[i]
		var value *hexutil.Big
		switch call.Method {
		case "eth_maxPriorityFeePerGas":
			value = c.suggested
		case "eth_gasPrice":
			value = c.price
		case "eth_feeHistory":
			c.blocks, c.tag, c.percentiles = call.Args[0], call.Args[1], call.Args[2]
			if call.Error = nil; c.history {
				*call.Result.(*feeHistory) = feeHistory{Rewards: c.rewards, Ratios: c.ratios}
			} else {
				call.Error = coded{c.code, "no such method"}
			}
			continue
		default:
			continue
		}
		if call.Error = nil; value == nil {
			call.Error = coded{c.code, "no such method"}
		} else {
			*call.Result.(*hexutil.Big) = *value
		}
	}
	return nil
}

func wei(n uint64) *hexutil.Big { return (*hexutil.Big)(uint256.NewInt(n).ToBig()) }

// The tip comes from the first source that the options want and the node has, in each look.
func TestTip(t *testing.T) {
	s := newSetup(t, 1)
	fee := s.node.look(common.Address{}).BaseFee
	base := fee.Uint64()
	rewards := [][]*hexutil.Big{{wei(9)}, {wei(0)}, {wei(5)}, {wei(7)}, nil}
	ratios := []float64{0.5, 0, 0.1, 1, 0.5}
	half := Options{TipPercentile: 60}
	for name, c := range map[string]struct {
		client *tipClient
		o      Options
		want   uint64
		calls  int // about prices, in two looks
		fails  bool
	}{
		"node's suggestion":        {client: &tipClient{suggested: wei(3), price: wei(base + 8)}, want: 3, calls: 2},
		"fixed":                    {client: &tipClient{suggested: wei(3)}, o: Options{Tip: uint256.NewInt(4), TipPercentile: 60}, want: 4},
		"no suggestion":            {client: &tipClient{code: -32601, price: wei(base + 8)}, want: 8, calls: 1 + 2 + 2},
		"suggestion not supported": {client: &tipClient{code: -32004, price: wei(base + 8)}, want: 8, calls: 1 + 2 + 2},
		"price below the base fee": {client: &tipClient{code: -32601, price: wei(base - 1)}, want: 0, calls: 1 + 2 + 2},
		"no prices":                {client: &tipClient{code: -32601}, fails: true},
		"failure":                  {client: &tipClient{code: -32000, price: wei(base)}, fails: true},
		"percentile":               {client: &tipClient{history: true, rewards: rewards, ratios: ratios, suggested: wei(3)}, o: half, want: 7, calls: 4},
		"percentile alone":         {client: &tipClient{history: true, rewards: rewards, ratios: ratios, code: -32000}, o: half, want: 7, calls: 4},
		"empty blocks":             {client: &tipClient{history: true, rewards: rewards[1:2], ratios: ratios[1:2], suggested: wei(3)}, o: half, want: 3, calls: 4},
		"history without tips":     {client: &tipClient{history: true, ratios: ratios, suggested: wei(3)}, o: half, want: 3, calls: 4},
		"no history":               {client: &tipClient{code: -32601, suggested: wei(3)}, o: half, want: 3, calls: 4},
		"history fails":            {client: &tipClient{code: -32000, suggested: wei(3)}, o: half, want: 3, calls: 4},
		"no history, no suggestion": {
			client: &tipClient{code: -32601, price: wei(base + 2)}, o: Options{TipPercentile: 0.5}, want: 2, calls: 2 + 3 + 3,
		},
	} {
		for _, age := range []time.Duration{0, time.Nanosecond} {
			t.Run(name, func(t *testing.T) {
				c.o.HeadAge = age
				client := c.client
				client.recorded = &recorded{Client: s.client}
				chain, err := New(client, c.o)
				require.NoError(t, err)
				for range 2 {
					look, err := chain.Look(context.Background(), common.Address{1})
					if c.fails {
						require.Error(t, err)
						continue
					}
					require.NoError(t, err)
					require.Equal(t, uint256.NewInt(c.want), &look.Tip)
					require.Equal(t, base, look.BaseFee.Uint64())
				}
				if !c.fails {
					prices := client.count("maxPriority") + client.count("gasPrice") + client.count("feeHistory")
					require.Equal(t, c.calls, prices)
				}
				if c.client.history && c.o.Tip == nil {
					require.EqualValues(t, 20, client.blocks)
					require.Equal(t, "latest", client.tag)
					require.Equal(t, []float64{c.o.TipPercentile}, client.percentiles)
				}
			})
		}
	}
	for _, bad := range []float64{-1, 100.5} {
		_, err := New(s.client, Options{TipPercentile: bad})
		require.ErrorContains(t, err, "TipPercentile")
	}
}

// A node that lacks its methods for a moment, as the others of a gateway do, changes nothing
// for good.
func TestTipComesBack(t *testing.T) {
	s := newSetup(t, 1)
	fee := s.node.look(common.Address{}).BaseFee
	client := &tipClient{recorded: &recorded{Client: s.client}, code: -32601}
	chain, err := New(client, Options{})
	require.NoError(t, err)
	tip := func() uint64 {
		look, err := chain.Look(context.Background(), common.Address{1})
		require.NoError(t, err)
		return look.Tip.Uint64()
	}
	_, err = chain.Look(context.Background(), common.Address{1})
	require.Error(t, err)
	client.price = wei(fee.Uint64() + 9)
	require.EqualValues(t, 9, tip())
	client.suggested = wei(3)
	require.EqualValues(t, 3, tip())
	client.price = nil
	require.EqualValues(t, 3, tip())
}
