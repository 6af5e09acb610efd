package jip2

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/service"
)

// The feed against every profile: it follows a node that suffices for a builder, with packages from
// submission to accumulation and without a new connection, and names at the start what others lack.
func TestFeedAgainstProfiles(t *testing.T) {
	for _, p := range jip2server.Profiles() {
		t.Run(p.Name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				deviate := func(cfg *jip2server.Config) {
					cfg.Deviations = p.Deviations
					cfg.Chain.FinalityLag, cfg.Chain.ReportLatency = 3, [2]jamq.Slot{1, 3}
				}
				if len(p.Lacks) > 0 {
					n := startNode(t, deviate)
					n.step(4)
					_, err := OpenFeed(t.Context(), n.client(nil), FeedConfig{Service: marks})
					require.ErrorIs(t, err, ErrUnsupported)
					for _, method := range p.Lacks {
						require.ErrorContains(t, err, method)
					}
					return
				}
				f := follow(t, deviate)
				f.step(4)
				f.catchUp()
				for range 25 {
					pkg := f.send(1, 0, f.sink.view.Best().Hash.String())
					for range 4 {
						f.step(1)
						f.catchUp()
						f.check(false)
					}
					f.step(6)
					f.catchUp()
					require.False(t, f.status(pkg).Accumulated.IsZero())
				}
				require.Equal(t, 1, f.chain.Connections())
				require.Equal(t, 1, f.chain.Calls("parameters"), "no second connection")
			})
		})
	}
}

// The client against every profile: updates of heads arrive, a subscription ends, and the
// connection stays.
func TestClientAgainstProfiles(t *testing.T) {
	for _, p := range jip2server.Profiles() {
		t.Run(p.Name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				n := startNode(t, func(cfg *jip2server.Config) { cfg.Deviations = p.Deviations })
				c := n.client(nil)
				n.step(3)
				best, err := c.SubscribeBestBlock(t.Context())
				require.NoError(t, err)
				final, err := c.SubscribeFinalizedBlock(t.Context())
				require.NoError(t, err)
				for range 100 {
					u := n.step(1)
					until(t, best, func(d BlockDescriptor) bool { return d.Slot == u.Slot })
				}
				until(t, final, func(d BlockDescriptor) bool { return d.Slot > 90 })
				value, err := c.SubscribeServiceValue(t.Context(), 9, service.CountKey(), false)
				require.NoError(t, err)
				if u := nextUpdate(t, value); p.Deviations.Notify.ValuesOnly {
					require.ErrorIs(t, u.Err, ErrMalformed, "a value without its block")
				} else {
					require.NoError(t, u.Err)
					require.EqualValues(t, 103, u.Value.Slot)
				}
				best.Close()
				final.Close()
				_, err = c.BestBlock(t.Context())
				require.NoError(t, err)
				require.Equal(t, 1, n.chain.Calls("unsubscribeFinalizedBlock"))
				require.Equal(t, 1, n.chain.Connections())
			})
		})
	}
}
