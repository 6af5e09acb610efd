package jamnps_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/words"
	"github.com/jamq/jamq/journal"
	"github.com/jamq/jamq/submit/codec"
	"github.com/jamq/jamq/submit/jamnps"
	"github.com/jamq/jamq/submit/jamnps/jamnpsnet"
)

const service jamq.ServiceID = 9

func newNetwork(t *testing.T, nodes *jamnps.Three) *jamnpsnet.Network {
	network, err := jamnpsnet.New(nodes.Client(), jamnpsnet.Config{
		Service: service, Package: codec.OneItem(service, common.Hash{1}, common.Hash{2}, 1000, 100),
	})
	require.NoError(t, err)
	return network
}

// TestBuilderOverTheNetwork: a builder whose only way to JAM is a network of three nodes. One node
// refuses packages now and then, one goes away and comes back, connections are cut, and the builder
// is restarted. On the chain, every block is accumulated once and in order.
func TestBuilderOverTheNetwork(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		const blocks, patience = 20, 3000
		nodes, log := jamnps.NewThree(t, service, false), new(journal.Memory)
		network := newNetwork(t, nodes)
		start := func() (b *builder.Builder[words.Body], stop func()) {
			rollup := new(words.Saving)
			rollup.Most = 1
			b, err := builder.Open(t.Context(), builder.DefaultConfig(network.Spec()), log, builder.Rollup[words.Body](rollup), builder.Network(network))
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- b.Run(ctx) }()
			return b, func() { cancel(); require.ErrorIs(t, <-ended, context.Canceled) }
		}
		b, stop := start()
		defer func() { stop() }()
		var want []string
		for i := range blocks {
			want = append(want, fmt.Sprint("word ", i))
			require.NoError(t, b.Submit(t.Context(), fmt.Append(nil, "word ", i)))
		}
		var done []string
		for tick := 0; len(done) < blocks; tick++ {
			time.Sleep(jamq.Tiny().SlotDuration)
			done = nil
			for _, payload := range nodes.Grow() {
				for _, word := range words.Executed([]byte(payload)) {
					done = append(done, string(word))
				}
			}
			nodes.Disturb(tick)
			if tick%40 == 25 {
				stop()
				_, stop = start()
			}
			require.Less(t, tick, patience, "%d of %d", len(done), blocks)
		}
		require.Equal(t, want, done)
		require.Positive(t, network.Health().Nodes)
	})
}

// TestLostLogOverTheNetwork: a builder with an empty log recognizes a service that was accumulated
// before.
func TestLostLogOverTheNetwork(t *testing.T) {
	for _, used := range []bool{false, true} {
		bubble.Run(t, func(t *testing.T) {
			network := newNetwork(t, jamnps.NewThree(t, service, used))
			_, err := builder.Open(t.Context(), builder.DefaultConfig(network.Spec()), new(journal.Memory), builder.Rollup[words.Body](new(words.Saving)), builder.Network(network))
			if used {
				require.ErrorIs(t, err, builder.ErrServiceInUse)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

// TestNetworkConfig: a network without packages is refused, and makes none before it is followed.
func TestNetworkConfig(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		nodes := jamnps.NewThree(t, service, false)
		_, err := jamnpsnet.New(nodes.Client(), jamnpsnet.Config{})
		require.ErrorIs(t, err, jamnpsnet.ErrInvalidConfig)
		network := newNetwork(t, nodes)
		_, err = network.Pack(t.Context(), builder.Anchor{}, nil)
		require.ErrorIs(t, err, jamnpsnet.ErrNotFollowing)
		require.Zero(t, network.Health())
	})
}
