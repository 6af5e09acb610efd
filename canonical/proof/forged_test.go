package proof

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var forgeries = flag.Int("forgeries", 3000, "number of forged proofs that are tried")

// forger makes proofs that must not be accepted, from an honest one.
type forger struct {
	*rand.Rand
	world *world
	small []ValidatorKey // keys for which every host can sign

}

// TestForgedProofs: of many forged proofs none is accepted. Some lack honest votes, which are
// replaced by votes that need no secret, under keys of zeros and other keys of small order. The
// others are honest proofs with a changed byte.
func TestForgedProofs(t *testing.T) {
	w := newWorld(t)
	f := &forger{Rand: rand.New(rand.NewPCG(1, 2)), world: w, small: append(newCurve().smallKeys(), ValidatorKey{})}
	honest := w.receiptDocument(t)
	text, err := json.Marshal(honest)
	require.NoError(t, err)
	_, err = honest.Verify(w.trust)
	require.NoError(t, err)
	votes, bytes := 0, 0
	for range *forgeries {
		if f.IntN(2) == 0 {
			votes++
			document, trust := f.withoutVotes(honest)
			r, err := document.Verify(trust)
			require.Error(t, err)
			require.Nil(t, r.Transaction)
			continue
		}
		bytes++
		changed := slices.Clone(text)
		changed[f.IntN(len(changed))] ^= 1 << f.IntN(8)
		if document, err := Parse(changed); err == nil {
			r, err := document.Verify(w.trust)
			require.Error(t, err, "%s", changed)
			require.Nil(t, r.Transaction)
		}
	}
	t.Logf("%d forged sets of votes and %d changed bytes: none accepted", votes, bytes)
}

// withoutVotes returns the document with one vote too few from honest validators. The keys of the
// others are of small order, and each position has a forged vote or none.
func (f *forger) withoutVotes(honest *Document) (*Document, *Trust) {
	trust := *f.world.trust
	trust.Validators = slices.Clone(trust.Validators)
	document, finality := *honest, *honest.Finality
	document.Finality = &finality
	finality.Signatures = nil
	finality.Precommit.Round = f.Uint64() // free to choose
	votes := f.IntN(Quorum(worldValidators))
	for v, at := range f.Perm(worldValidators) {
		if v < votes {
			finality.Signatures = append(finality.Signatures, finality.Precommit.Sign(Draft{}, uint16(at), f.world.keys[at]))
			continue
		}
		trust.Validators[at] = f.smallKey(trust.Validators, at)
		if f.IntN(4) > 0 {
			finality.Signatures = append(finality.Signatures, Signature{Validator: uint16(at), Signature: f.vote()})
		}
	}
	slices.SortFunc(finality.Signatures, func(a, b Signature) int { return int(a.Validator) - int(b.Validator) })
	return &document, &trust
}

// smallKey returns a key of small order that no other validator has, or zeros.
func (f *forger) smallKey(taken []ValidatorKey, at int) ValidatorKey {
	for range 10 {
		if key := f.small[f.IntN(len(f.small))]; key.IsZero() || !slices.Contains(taken, key) {
			return key
		}
	}
	return taken[at] // the vote below is no signature of its owner
}

// vote returns a signature that needs no secret: R of small order and S zero, or anything.
func (f *forger) vote() []byte {
	signature := make([]byte, 64)
	if f.IntN(3) == 0 {
		for i := range signature {
			signature[i] = byte(f.Uint32())
		}
		return signature
	}
	key := f.small[f.IntN(len(f.small))]
	copy(signature, key[:])
	return signature
}
