package jamnps

import (
	"context"
	"crypto/ed25519"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/internal/bubble"
)

// A host that verifies justifications trusts no peer for finality: a block that all peers call
// final becomes final only with the votes of the validators, also if peers return wrong ones.
func TestCheckFinal(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		trust := &proof.Trust{Set: 2, Format: proof.Grandpa{}}
		var keys []ed25519.PrivateKey
		for i := range byte(6) {
			keys = append(keys, ed25519.NewKeyFromSeed(common.Hash{i + 1}.Bytes()))
			trust.Validators = append(trust.Validators, proof.ValidatorKey(keys[i].Public().(ed25519.PublicKey)))
		}
		justify := func(b *worldBlock, voters int) []byte {
			target := proof.Target{Header: b.hash, Slot: b.header.Slot, StateRoot: b.root()}
			j := proof.Justification{Round: 9, Set: 2, Target: target}
			for i := range voters {
				s := proof.Precommit{Target: target, Round: 9, Set: 2}.Sign(proof.Grandpa{}, uint16(i), keys[i])
				j.Precommits = append(j.Precommits, proof.SignedPrecommit{Target: target, Signature: [64]byte(s.Signature), Key: trust.Validators[i]})
			}
			raw, err := j.Encode(w.codec)
			require.NoError(t, err)
			return raw
		}
		serve := func(g *guarantor, b *worldBlock, raw []byte) {
			g.set(func() {
				if g.justifications == nil {
					g.justifications = map[jamq.HeaderHash][]byte{}
				}
				g.justifications[b.hash] = raw
			})
		}
		liar, honest := startGuarantor(t, w, 1), startGuarantor(t, w, 2)
		c := openClient(t, w, nil, liar, honest)
		check := func(ctx context.Context, block jamq.HeaderHash) error {
			_, err := c.Justification(ctx, block, func(raw []byte) error {
				j, err := proof.ParseJustification(w.codec, raw)
				if err != nil {
					return err
				}
				return j.Verify(w.codec, trust, block)
			})
			return err
		}
		f, sink := openFeed(t, c, FeedConfig{FinalPeers: 1, CheckFinal: check})
		head := w.genesis
		for range 6 {
			head = w.grow(head, 1)
		}
		first := w.finalize(3)
		head = w.grow(head, 1)
		serve(liar, first, []byte("no justification"))
		serve(honest, first, justify(first, 5))
		until(t, f, sink, head, first)

		second := w.finalize(1)
		head = w.grow(head, 1)
		serve(liar, second, justify(second, 4)) // one vote too few
		until(t, f, sink, head, first)
		err := f.catchUp(t.Context(), sink)
		require.ErrorIs(t, err, proof.ErrFinality)
		require.ErrorIs(t, err, ErrRefused, "the other peer has none")
		require.ErrorContains(t, err, "is called final by [127.0.0.1:1 127.0.0.1:2], and that is not proved")
		require.Equal(t, first.hash, sink.view.Finalized().Hash)

		serve(liar, second, justify(first, 6)) // of another block
		require.ErrorIs(t, f.catchUp(t.Context(), sink), proof.ErrFinality)
		require.Equal(t, first.hash, sink.view.Finalized().Hash)
		serve(honest, second, justify(second, 6))
		until(t, f, sink, head, second)
		_, err = c.Justification(t.Context(), head.hash, nil)
		require.ErrorIs(t, err, ErrRefused)
	})
}
