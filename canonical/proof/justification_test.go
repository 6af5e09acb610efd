package proof

import (
	"crypto/ed25519"
	"encoding/hex"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit/codec"
)

// voters are a set of seven validators, whose quorum is five, on a chain of five headers.
type voters struct {
	c       *codec.Codec
	keys    []ed25519.PrivateKey
	trust   *Trust
	headers []codec.Header
	targets []Target
}

func newVoters(t *testing.T) *voters {
	t.Helper()
	c, err := codec.New(codec.V080, jamq.Tiny())
	require.NoError(t, err)
	v := &voters{c: c, trust: &Trust{Set: 3, Format: Grandpa{}}}
	for i := range byte(7) {
		key := ed25519.NewKeyFromSeed(common.Hash{i + 1}.Bytes())
		v.keys = append(v.keys, key)
		v.trust.Validators = append(v.trust.Validators, ValidatorKey(key.Public().(ed25519.PublicKey)))
	}
	for slot := range jamq.Slot(5) {
		h := codec.Header{Slot: slot + 10}
		if slot > 0 {
			h.Parent = v.targets[slot-1].Header
		}
		hash, err := c.HeaderHash(&h)
		require.NoError(t, err)
		v.headers, v.targets = append(v.headers, h), append(v.targets, Target{hash, h.Slot, common.Hash{byte(slot), 7}})
	}
	return v
}

func (v *voters) vote(validator int, target Target) SignedPrecommit {
	message := Grandpa{}.Message(Precommit{Target: target, Round: 4, Set: 3})
	return SignedPrecommit{target, [64]byte(ed25519.Sign(v.keys[validator], message)), v.trust.Validators[validator]}
}

// justify returns the justification of block 1, by the votes of the first validators for
// blocks.
func (v *voters) justify(blocks ...int) *Justification {
	j := &Justification{Round: 4, Set: 3, Target: v.targets[1]}
	for i, block := range blocks {
		j.Precommits = append(j.Precommits, v.vote(i, v.targets[block]))
	}
	return j
}

// The bytes that validators sign, and the encoding, written by hand from the text of the draft.
func TestGrandpaFormat(t *testing.T) {
	v := newVoters(t)
	target := Target{Header: jamq.HeaderHash{1, 2}, Slot: 0x01020304, StateRoot: common.Hash{3, 4}}
	raw := hex.EncodeToString(target.Header[:]) + hex.EncodeToString(target.StateRoot[:]) + "04030201"
	p := Precommit{Target: target, Round: 5, Set: 6}
	require.Equal(t, hex.EncodeToString([]byte("jam_grandpa_vote"))+"01"+raw+"0500000000000000"+"06000000", hex.EncodeToString(Grandpa{}.Message(p)))
	p.Set += 1 << 32
	require.NotEqual(t, Grandpa{}.Message(p), Grandpa{}.Message(Precommit{Target: target, Round: 5, Set: 6}))

	j := &Justification{Round: 5, Set: 6, Target: target, Precommits: []SignedPrecommit{{target, [64]byte{9}, ValidatorKey{8}}}, Ancestry: v.headers[:1]}
	have, err := j.Encode(v.c)
	require.NoError(t, err)
	header, err := v.c.Encode(&v.headers[0])
	require.NoError(t, err)
	signature, key := [64]byte{9}, ValidatorKey{8}
	want := "0500000000000000" + "06000000" + raw + "01" + raw + hex.EncodeToString(signature[:]) + hex.EncodeToString(key[:]) + "01" + hex.EncodeToString(header)
	require.Equal(t, want, hex.EncodeToString(have))
	back, err := ParseJustification(v.c, have)
	require.NoError(t, err)
	require.Equal(t, j, back)
	for n := range have {
		_, err := ParseJustification(v.c, have[:n])
		require.ErrorIs(t, err, ErrMalformed)
	}
	_, err = ParseJustification(v.c, append(have, 0))
	require.ErrorIs(t, err, ErrMalformed)
	_, err = ParseJustification(v.c, make([]byte, MaxDocument+1))
	require.ErrorIs(t, err, ErrMalformed)
}

// A justification is verified by the votes for the block and for its descendants. Whatever else it
// has is an error, and none of it makes the block final.
func TestJustification(t *testing.T) {
	v := newVoters(t)
	other := v.targets[1]
	other.StateRoot = common.Hash{66}
	for name, x := range map[string]struct {
		change func(j *Justification, trust *Trust)
		blocks []int
		final  error // of Verify
		state  bool  // the votes show the state root too
	}{
		"all for the block":           {nil, []int{1, 1, 1, 1, 1, 1, 1}, nil, true},
		"just enough":                 {nil, []int{1, 1, 1, 1, 1}, nil, true},
		"too few":                     {nil, []int{1, 1, 1, 1}, ErrFinality, false},
		"some for descendants":        {nil, []int{1, 2, 3, 3, 4}, nil, false},
		"enough of all for the block": {nil, []int{1, 2, 1, 1, 1, 1, 4}, nil, true},
		"a vote for the block before": {nil, []int{1, 1, 1, 1, 1, 0}, ErrFinality, false},
		"no headers":                  {func(j *Justification, _ *Trust) { j.Ancestry = nil }, []int{1, 2, 1, 1, 1, 1}, ErrFinality, false},
		"a header is missing":         {func(j *Justification, _ *Trust) { j.Ancestry = j.Ancestry[1:] }, []int{1, 4, 1, 1, 1, 1}, ErrFinality, false},
		"another state root":          {func(j *Justification, _ *Trust) { j.Precommits[0] = v.vote(0, other) }, []int{1, 1, 1, 1, 1, 1}, ErrFinality, false},
		"a signature of another":      {func(j *Justification, _ *Trust) { j.Precommits[0].Signature = j.Precommits[1].Signature }, []int{1, 1, 1, 1, 1, 1}, ErrFinality, false},
		"another round":               {func(j *Justification, _ *Trust) { j.Round++ }, []int{1, 1, 1, 1, 1}, ErrFinality, false},
		"another set":                 {func(j *Justification, _ *Trust) { j.Set++ }, []int{1, 1, 1, 1, 1}, ErrFinality, false},
		"another trusted set":         {func(_ *Justification, trust *Trust) { trust.Set++ }, []int{1, 1, 1, 1, 1}, ErrFinality, false},
		"another format":              {func(_ *Justification, trust *Trust) { trust.Format = nil }, []int{1, 1, 1, 1, 1}, ErrFinality, false},
		"no trust":                    {func(_ *Justification, trust *Trust) { trust.Validators = nil }, []int{1, 1, 1, 1, 1}, ErrTrust, false},
		"a key outside of the set":    {func(j *Justification, _ *Trust) { j.Precommits[0].Key = ValidatorKey{1} }, []int{1, 1, 1, 1, 1, 1}, ErrFinality, false},
		"a key that must not vote": {func(j *Justification, trust *Trust) {
			trust.Validators[0], j.Precommits[0].Key = ValidatorKey{}, ValidatorKey{}
		}, []int{1, 1, 1, 1, 1, 1}, ErrKey, false},
		"a validator votes twice":      {func(j *Justification, _ *Trust) { j.Precommits = append(j.Precommits, v.vote(0, v.targets[2])) }, []int{1, 1, 1, 1, 1}, nil, true},
		"two votes are no two voters":  {func(j *Justification, _ *Trust) { j.Precommits = append(j.Precommits, v.vote(0, v.targets[2])) }, []int{1, 1, 1, 1}, ErrFinality, false},
		"the second vote is the exact": {func(j *Justification, _ *Trust) { j.Precommits = append(j.Precommits, v.vote(0, v.targets[1])) }, []int{2, 1, 1, 1, 1}, nil, true},
		"more votes than two of each": {func(j *Justification, _ *Trust) {
			for range 3 {
				j.Precommits = append(j.Precommits, j.Precommits[:5]...)
			}
		}, []int{1, 1, 1, 1, 1}, ErrFinality, false},
	} {
		t.Run(name, func(t *testing.T) {
			j, trust := v.justify(x.blocks...), *v.trust
			trust.Validators = append([]ValidatorKey(nil), trust.Validators...)
			j.Ancestry = v.headers[2:]
			if x.change != nil {
				x.change(j, &trust)
			}
			require.ErrorIs(t, j.Verify(v.c, &trust, v.targets[1].Header), x.final)
			require.ErrorIs(t, v.justify(1, 1, 1, 1, 1, 1).Verify(v.c, v.trust, v.targets[2].Header), ErrFinality)
			f, err := j.Finality(v.c, &trust)
			if !x.state {
				require.Error(t, err)
				require.Nil(t, f)
				return
			}
			require.NoError(t, err)
			target, err := f.Verify(&trust)
			require.NoError(t, err)
			require.Equal(t, v.targets[1], target)
		})
	}
}

// Each bit of a justification with just enough votes matters.
func TestEveryBitOfAJustificationMatters(t *testing.T) {
	v := newVoters(t)
	j := v.justify(1, 1, 3, 1, 1)
	j.Ancestry = v.headers[2:4]
	raw, err := j.Encode(v.c)
	require.NoError(t, err)
	back, err := ParseJustification(v.c, raw)
	require.NoError(t, err)
	require.NoError(t, back.Verify(v.c, v.trust, v.targets[1].Header))
	for bit := range 8 * len(raw) {
		raw[bit/8] ^= 1 << (bit % 8)
		if changed, err := ParseJustification(v.c, raw); err == nil && changed.Verify(v.c, v.trust, v.targets[1].Header) == nil {
			t.Fatalf("bit %d can be changed", bit)
		}
		raw[bit/8] ^= 1 << (bit % 8)
	}
}
