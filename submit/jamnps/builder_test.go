package jamnps

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/words"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/journal"
)

// network is the way to JAM of a builder that has nothing but the network protocol.
type network struct {
	t    *testing.T
	w    *world
	feed *Feed
}

func (n *network) Root(context.Context) (jamq.Block, error) { return n.feed.Root(), nil }

func (n *network) Pack(ctx context.Context, at builder.Anchor, payload []byte) (builder.Package, error) {
	refine, err := n.feed.Context(ctx, at.Hash, at.Prerequisites)
	if err != nil {
		return builder.Package{}, err
	}
	raw, hash := encodePackage(n.t, n.w, refine, string(payload), 0)
	return builder.Package{Hash: hash, Context: refine, Data: raw}, nil
}

func (n *network) Send(ctx context.Context, pkg builder.Package, core jamq.CoreIndex, attempt int) error {
	return n.feed.client.SubmitPackage(ctx, Submission{Core: core, Attempt: attempt, Package: pkg.Data})
}

func (n *network) Follow(ctx context.Context, _ submit.Recovery, to submit.ChainSink) error {
	return n.feed.Follow(ctx, to)
}

// TestBuilderOverTheNetwork runs a whole builder on a network of three nodes. One node
// refuses packages now and then, one goes away and comes back, and connections are
// cut. On the chain, every block must be accumulated once and in order.
func TestBuilderOverTheNetwork(t *testing.T) {
	bubble.Run(t, playNetwork)
}

func playNetwork(t *testing.T) {
	const blocks, patience = 20, 3000
	w := newWorld(t)
	peers := []*guarantor{startGuarantor(t, w, 1), startGuarantor(t, w, 2), startGuarantor(t, w, 3)}
	feed, err := OpenFeed(t.Context(), openClient(t, w, nil, peers...), FeedConfig{})
	require.NoError(t, err)
	rollup := new(words.Saving)
	rollup.Most = 1
	b, err := builder.Open(t.Context(), builder.DefaultConfig(jamq.Tiny()), new(journal.Memory), builder.Rollup[words.Body](rollup), builder.Network(&network{t, w, feed}))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- b.Run(ctx) }()
	defer func() {
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	}()

	var want []string
	for i := range blocks {
		want = append(want, fmt.Sprintf("[%q]", fmt.Sprint("word ", i)))
		require.NoError(t, b.Submit(ctx, fmt.Append(nil, "word ", i)))
	}
	clock := jamq.NewSlotClock(jamq.Tiny())
	for tick := 0; len(w.finalize(2).done) < blocks; tick++ {
		time.Sleep(jamq.Tiny().SlotDuration)
		w.grow(w.best, clock.SlotAt(time.Now())-w.best.header.Slot)
		switch tick % 12 {
		case 2:
			peers[0].cut()
		case 4:
			peers[1].set(func() { peers[1].refuse[133] = !peers[1].refuse[133] })
		case 6:
			peers[2].down()
		case 9:
			peers[2].up()
		}
		require.Less(t, tick, patience, "%d of %d", len(w.finalized.done), blocks)
	}
	require.Equal(t, want, w.finalized.done)
}
