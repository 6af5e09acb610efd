package proof

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/smallorder"
)

// curve is Ed25519 in affine coordinates, -x^2 + y^2 = 1 + d x^2 y^2 modulo p.
// It is slow and it is written from the equation, not from a library.
type curve struct{ p, d, order *big.Int }

type affine struct{ x, y *big.Int }

func newCurve() *curve {
	c := &curve{p: new(big.Int).Lsh(big.NewInt(1), 255), order: new(big.Int).Lsh(big.NewInt(1), 252)}
	c.p.Sub(c.p, big.NewInt(19))
	rest, _ := new(big.Int).SetString("27742317777372353535851937790883648493", 10)
	c.order.Add(c.order, rest)
	c.d = c.mul(big.NewInt(-121665), c.inverse(big.NewInt(121666)))
	return c
}

func (c *curve) mul(factors ...*big.Int) *big.Int {
	out := big.NewInt(1)
	for _, f := range factors {
		out.Mod(out.Mul(out, f), c.p)
	}
	return out
}

func (c *curve) inverse(n *big.Int) *big.Int { return new(big.Int).ModInverse(n, c.p) }

func (c *curve) add(a, b affine) affine {
	one := big.NewInt(1)
	product := c.mul(c.d, a.x, a.y, b.x, b.y)
	x := c.mul(new(big.Int).Add(c.mul(a.x, b.y), c.mul(b.x, a.y)), c.inverse(new(big.Int).Add(one, product)))
	y := c.mul(new(big.Int).Add(c.mul(a.y, b.y), c.mul(a.x, b.x)), c.inverse(new(big.Int).Sub(one, product)))
	return affine{x, y}
}

func (c *curve) multiply(n *big.Int, a affine) affine {
	out := affine{big.NewInt(0), big.NewInt(1)}
	for i := n.BitLen() - 1; i >= 0; i-- {
		if out = c.add(out, out); n.Bit(i) == 1 {
			out = c.add(out, a)
		}
	}
	return out
}

// at returns a point with the given y, or false if there is none.
func (c *curve) at(y *big.Int) (affine, bool) {
	one, square := big.NewInt(1), c.mul(y, y)
	below := new(big.Int).Add(one, c.mul(c.d, square))
	x := new(big.Int).ModSqrt(c.mul(new(big.Int).Sub(square, one), c.inverse(below)), c.p)
	return affine{x, y}, x != nil
}

// torsion returns the eight points whose order divides 8: the multiples of the
// first point of order 8 that the group order times some point gives.
func (c *curve) torsion() []affine {
	for y := int64(2); ; y++ {
		a, ok := c.at(big.NewInt(y))
		if !ok {
			continue
		}
		t := c.multiply(c.order, a)
		if c.multiply(big.NewInt(4), t).y.Cmp(big.NewInt(1)) == 0 {
			continue // the order is 4 at most
		}
		points := make([]affine, 8)
		for i := range points {
			points[i] = c.multiply(big.NewInt(int64(i)), t)
		}
		return points
	}
}

// encodings returns all 32 bytes that decode to a point: y or y+p, if it has 255
// bits, with the sign of x, or with both signs if x is 0. The first is the
// canonical one.
func (c *curve) encodings(a affine) (all []ValidatorKey) {
	for _, y := range []*big.Int{a.y, new(big.Int).Add(a.y, c.p)} {
		if y.BitLen() > 255 {
			continue
		}
		var k ValidatorKey
		y.FillBytes(k[:])
		slices.Reverse(k[:])
		k[31] |= byte(a.x.Bit(0)) << 7
		all = append(all, k)
		if a.x.Sign() == 0 {
			k[31] |= smallorder.SignBit
			all = append(all, k)
		}
	}
	return all
}

func (c *curve) smallKeys() (all []ValidatorKey) {
	for _, a := range c.torsion() {
		all = append(all, c.encodings(a)...)
	}
	return all
}

// The list in the code equals the solutions of the equation of the curve.
func TestSmallOrder(t *testing.T) {
	derived := make(map[ValidatorKey]bool)
	keys := newCurve().smallKeys()
	require.Len(t, keys, 14)
	for _, k := range keys {
		require.ErrorIs(t, k.Validate(), ErrKey, "%x", k)
		k[31] &^= smallorder.SignBit
		derived[k] = true
	}
	listed := make(map[ValidatorKey]bool)
	for _, k := range smallorder.EncodedYs() {
		listed[k] = true
	}
	require.Equal(t, derived, listed)
	require.Len(t, smallorder.EncodedYs(), len(listed))

	for _, k := range newWorld(t).trust.Validators {
		require.NoError(t, k.Validate())
	}
	for y := 2; y < 19; y++ {
		require.NoError(t, ValidatorKey{byte(y)}.Validate(), "a small y is not a small order")
	}
}

// forge returns a vote under a key of small order, which needs no secret: S is 0
// and R the negative of the hash times the key. The hash depends on R, so that
// each R is right by chance. The round is free to choose until one is.
func forge(t *testing.T, p Precommit, key ValidatorKey) (Precommit, []byte) {
	t.Helper()
	c := newCurve()
	points := c.torsion()
	for range 100 {
		for _, a := range points {
			r := c.encodings(a)[0]
			signature := append(r[:], make([]byte, 32)...)
			if ed25519.Verify(key[:], Draft{}.Message(p), signature) {
				return p, signature
			}
		}
		p.Round++
	}
	t.Fatalf("no forgery under %x in 100 rounds: the test is wrong", key)
	return p, nil
}

// Four of six validators are honest and too few. No key that needs no secret adds the fifth vote.
func TestForgedVotes(t *testing.T) {
	honest := newWorld(t)
	for _, key := range newCurve().smallKeys() {
		t.Run(fmt.Sprintf("%x", key[:]), func(t *testing.T) {
			w := newWorld(t)
			w.trust.Validators[5] = key
			p, forged := forge(t, Precommit{Target: w.target, Round: 12, Set: 3}, key)
			f := w.vote(p, 0, 1, 2, 3)
			f.Signatures = append(f.Signatures, Signature{Validator: 5, Signature: forged})
			_, err := f.Verify(w.trust)
			require.ErrorIs(t, err, ErrFinality)
			require.ErrorIs(t, err, ErrKey)
			require.ErrorContains(t, err, "validator 5")

			d := w.storageDocument(t)
			d.Finality = f
			r, err := d.Verify(w.trust)
			require.ErrorIs(t, err, ErrKey)
			require.Nil(t, r.Transaction)

			target, err := honest.vote(p, 0, 1, 2, 3, 4).Verify(w.trust)
			require.NoError(t, err, "the key makes the other votes no worse")
			require.Equal(t, w.target, target)
		})
	}
}

// Any number of keys of zeros gives no vote.
func TestForgedVotesOfPunished(t *testing.T) {
	for n := 1; n <= worldValidators; n++ {
		w := newWorld(t)
		p, forged := forge(t, Precommit{Target: w.target, Round: 12, Set: 3}, ValidatorKey{})
		var votes []int
		for v := range worldValidators {
			if v < n {
				w.punish(v)
			}
			votes = append(votes, v)
		}
		require.NoError(t, w.trust.Validate())
		f := w.vote(p, votes...)
		for v := range n {
			f.Signatures[v].Signature = forged
		}
		_, err := f.Verify(w.trust)
		require.ErrorIs(t, err, ErrFinality, "%d of %d are punished", n, worldValidators)
		require.ErrorIs(t, err, ErrKey)
	}
}

// Two of seven validators are punished. The five others are more than two thirds of seven.
func TestPunishedValidators(t *testing.T) {
	w := newWorldOf(t, 7)
	w.punish(1, 4)
	raw, err := json.Marshal(w.trust)
	require.NoError(t, err)
	trust, err := ParseTrust(raw)
	require.NoError(t, err)
	require.Equal(t, w.trust, trust)

	p := Precommit{Target: w.target, Round: 12, Set: 3}
	target, err := w.vote(p, 0, 2, 3, 5, 6).Verify(trust)
	require.NoError(t, err)
	require.Equal(t, w.target, target)
	_, err = w.vote(p, 0, 2, 3, 5).Verify(trust)
	require.ErrorIs(t, err, ErrFinality)
	require.NoError(t, w.beefy(t, 0, 2, 3, 5, 6).Verify(trust))
	require.ErrorIs(t, w.beefy(t, 0, 2, 3, 5).Verify(trust), ErrFinality)

	for _, d := range []*Document{w.storageDocument(t), w.outputsDocument(t), w.logDocument(t)} {
		if d.Finality != nil {
			d.Finality = w.vote(p, 0, 2, 3, 5, 6)
		} else {
			d.Beefy = w.beefy(t, 0, 2, 3, 5, 6)
		}
		r, err := d.Verify(trust)
		require.NoError(t, err)
		require.Equal(t, w.txs[5].Hash(), r.Transaction.Hash())
	}

	t.Run("the old secret is worth nothing", func(t *testing.T) {
		_, err := w.vote(p, 0, 1, 2, 3, 5, 6).Verify(trust)
		require.ErrorIs(t, err, ErrKey)
		require.ErrorIs(t, w.beefy(t, 0, 1, 2, 3, 5, 6).Verify(trust), ErrKey)
	})
}

// Two validators have one key of small order, or one BLS key at infinity. Such a key has no vote,
// and the other five are more than two thirds of seven.
func TestRepeatedKeysWithoutAVote(t *testing.T) {
	p := Precommit{Round: 12, Set: 3}
	for _, key := range newCurve().smallKeys() {
		w := newWorldOf(t, 7)
		p.Target = w.target
		w.trust.Validators[1], w.trust.Validators[4] = key, key
		_, err := w.vote(p, 0, 2, 3, 5, 6).Verify(w.trust)
		require.NoError(t, err, "%x", key)
		_, err = w.vote(p, 0, 1, 2, 3, 5, 6).Verify(w.trust)
		require.ErrorIs(t, err, ErrKey)
	}
	w := newWorldOf(t, 7)
	infinity := BLSKey{0xc0}
	w.trust.BLS[1], w.trust.BLS[4] = infinity, infinity
	require.NoError(t, w.beefy(t, 0, 2, 3, 5, 6).Verify(w.trust))
	require.ErrorIs(t, w.beefy(t, 0, 1, 2, 3, 5, 6).Verify(w.trust), ErrKey)
	w.trust.BLS[4] = w.trust.BLS[0]
	require.ErrorIs(t, w.beefy(t, 0, 2, 3, 5, 6).Verify(w.trust), ErrTrust)
}

// Four votes are more than two thirds of five, and not of six. The punished sixth counts.
func TestPunishedValidatorsCount(t *testing.T) {
	p := Precommit{Round: 12, Set: 3}
	for validators := 1; validators <= 10; validators++ {
		for punished := 0; punished <= validators; punished++ {
			w := newWorldOf(t, validators)
			p.Target = w.target
			var votes []int
			for v := range validators {
				if v < punished {
					w.punish(v)
				} else {
					votes = append(votes, v)
				}
			}
			_, err := w.vote(p, votes...).Verify(w.trust)
			if 3*len(votes) > 2*validators {
				require.NoError(t, err, "%d of %d vote", len(votes), validators)
			} else {
				require.ErrorIs(t, err, ErrFinality, "%d of %d vote", len(votes), validators)
			}
		}
	}
}

// A BLS key that is zero, no point, infinite, or outside the subgroup gives no
// vote, whatever the signature.
func TestForgedPeakVotes(t *testing.T) {
	infinity := func(size int) []byte { return append([]byte{0xc0}, make([]byte, size-1)...) }
	keys := map[string]BLSKey{
		"zeros":              {},
		"infinity":           BLSKey(infinity(len(BLSKey{}))),
		"infinity, negative": BLSKey(append([]byte{0xe0}, make([]byte, len(BLSKey{})-1)...)),
		"uncompressed flag":  BLSKey(append([]byte{0x40}, make([]byte, len(BLSKey{})-1)...)),
	}
	for x := range 20 {
		key := BLSKey{0: 0x80, len(BLSKey{}) - 1: byte(x)}
		keys[fmt.Sprintf("x is %d", x)] = key // if it is on the curve, it is not in the subgroup
	}
	w := newWorld(t)
	foreign, err := w.secrets[0].SignPeak(w.log.SuperPeak(), 5)
	require.NoError(t, err)
	for name, key := range keys {
		require.ErrorIs(t, key.Validate(), ErrKey, name)
		w.trust.BLS[5] = key
		for _, signature := range [][]byte{infinity(48), make([]byte, 48), foreign.Signature, nil} {
			b := w.beefy(t, 0, 1, 2, 3, 5)
			b.Signatures[4].Signature = signature
			err := b.Verify(w.trust)
			require.ErrorIs(t, err, ErrFinality, name)
			require.ErrorIs(t, err, ErrKey, name)
		}
		require.NoError(t, w.beefy(t, 0, 1, 2, 3, 4).Verify(w.trust), "%s: the key makes the other votes no worse", name)
	}
	for _, secret := range w.secrets {
		require.NoError(t, secret.Public().Validate())
	}
}
