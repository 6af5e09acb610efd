package proof

import (
	"crypto/ed25519"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/submit/codec"
)

// epoch has the keys of a validator set, and the state after a block of its epoch.
type epoch struct {
	world *world // its keys sign
	state *statetrie.Trie
}

// set returns the validators of a world as the state has them.
func (w *world) set() (validators []codec.Validator) {
	for i, key := range w.trust.Validators {
		v := codec.Validator{Ed25519: key, Metadata: [128]byte{byte(i)}}
		copy(v.BLS[48:], w.trust.BLS[i][:])
		validators = append(validators, v)
	}
	return validators
}

// epochs returns consecutive epochs with the sets 3, 4 and so on, and the trust in the first. The
// keys at the punished positions are zero in all sets but the first.
func epochs(t testing.TB, n int, punished ...int) []epoch {
	out := make([]epoch, n)
	for i := range out {
		w := newWorld(t)
		w.trust.Set += uint64(i)
		for v := range w.keys {
			seed := make([]byte, 32)
			binary.LittleEndian.PutUint32(seed, uint32(1000*i+v+1))
			w.keys[v] = ed25519.NewKeyFromSeed(seed)
			secret, err := NewBLSSecret(seed)
			require.NoError(t, err)
			w.secrets[v] = secret
			w.trust.Validators[v], w.trust.BLS[v] = ValidatorKey(w.keys[v].Public().(ed25519.PublicKey)), secret.Public()
		}
		if i > 0 {
			w.punish(punished...)
		}
		out[i].world = w
	}
	for i := range out {
		e, next := &out[i], out[min(i+1, n-1)].world.set()
		e.state = e.world.state.
			Set(statetrie.ChapterKey(statetrie.ChapterValidators), codec.EncodeValidators(e.world.set())).
			Set(statetrie.ChapterKey(statetrie.ChapterSafrole), append(codec.EncodeValidators(next), make([]byte, 144+1+32*12+1)...))
	}
	return out
}

// handoff returns the handoff from the epoch, with the votes of some validators.
func (e *epoch) handoff(voters ...int) *Handoff {
	chapter := func(chapter uint8) ChapterProof {
		key := statetrie.ChapterKey(chapter)
		value, _ := e.state.Get(key)
		return ChapterProof{Nodes: e.state.Prove(key), Value: value}
	}
	target := Target{Header: [32]byte{1}, Slot: 5, StateRoot: e.state.Root()}
	return &Handoff{
		Version: Version, Finality: *e.world.vote(Precommit{Target: target, Round: 1, Set: e.world.trust.Set}, voters...),
		Active: chapter(statetrie.ChapterValidators), Pending: chapter(statetrie.ChapterSafrole),
	}
}

// A trust crosses two changes of validators, and then verifies what the third set signed, by both
// kinds of signatures.
func TestHandoffs(t *testing.T) {
	all := epochs(t, 3)
	trust := all[0].world.trust
	for i := range 2 {
		raw, err := json.Marshal(all[i].handoff(0, 1, 2, 4, 5))
		require.NoError(t, err)
		h, err := ParseHandoff(raw)
		require.NoError(t, err)
		trust, err = h.Verify(trust)
		require.NoError(t, err)
		require.Equal(t, all[i+1].world.trust, trust, "the keys, the number, the service and the prefix")
		text, err := json.Marshal(trust)
		require.NoError(t, err)
		trust, err = ParseTrust(text)
		require.NoError(t, err, "it is a trust file")
	}
	last := all[2].world
	_, err := last.logDocument(t).Verify(trust)
	require.NoError(t, err)
	d := last.storageDocument(t)
	d.Finality = last.vote(Precommit{Target: last.target, Round: 1, Set: 5}, 0, 1, 2, 3, 4)
	_, err = d.Verify(trust)
	require.NoError(t, err)
	_, err = d.Verify(all[0].world.trust)
	require.ErrorIs(t, err, ErrFinality, "the old trust does not know these validators")

	without := *all[0].world.trust
	without.BLS = nil
	next, err := all[0].handoff(0, 1, 2, 3, 4, 5).Verify(&without)
	require.NoError(t, err)
	require.Empty(t, next.BLS, "a trust without BLS keys gets none")
	require.Equal(t, all[1].world.trust.Validators, next.Validators)
}

// From Gray Paper 0.8.0 on, a set has its number of validators in front, and the next set may have
// another size. A trust of one version does not accept the encoding of the other.
func TestHandoffToASetOfAnotherSize(t *testing.T) {
	all := epochs(t, 2)
	e, trust := &all[0], all[0].world.trust
	active := e.world.set()
	next := append(all[1].world.set(), codec.Validator{Ed25519: [32]byte{1}}, codec.Validator{Ed25519: [32]byte{2}}, codec.Validator{Ed25519: [32]byte{3}})
	counted := func(n int, set []codec.Validator) []byte {
		return append(codec.AppendNatural(nil, uint64(n)), codec.EncodeValidators(set)...)
	}
	handoff := func(version codec.Version, active, pending []byte) (*Trust, error) {
		trust.GrayPaper = version
		changed := *e
		changed.state = e.state.Set(statetrie.ChapterKey(statetrie.ChapterValidators), active).Set(statetrie.ChapterKey(statetrie.ChapterSafrole), pending)
		return changed.handoff(0, 1, 2, 3, 4).Verify(trust)
	}
	after := make([]byte, 144+1+32*12+1)
	for _, set := range [][]codec.Validator{next, next[:6], next[:3]} {
		got, err := handoff(codec.V080, counted(6, active), append(counted(len(set), set), after...))
		require.NoError(t, err)
		require.Len(t, got.Validators, len(set))
		require.Len(t, got.BLS, len(set))
		for i, v := range set {
			require.Equal(t, ValidatorKey(v.Ed25519), got.Validators[i])
		}
		require.Equal(t, trust.Set+1, got.Set)
		text, err := json.Marshal(got)
		require.NoError(t, err)
		got, err = ParseTrust(text)
		require.NoError(t, err)
		require.Equal(t, codec.V080, got.GrayPaper)
	}
	plain := codec.EncodeValidators(active)
	for name, x := range map[string]struct {
		version         codec.Version
		active, pending []byte
		want            error
	}{
		"0.8.0 without counts":     {codec.V080, plain, append(codec.EncodeValidators(next), after...), ErrHandoff},
		"0.7.2 with counts":        {codec.V072, counted(6, active), append(counted(9, next), after...), ErrHandoff},
		"too large a count":        {codec.V080, counted(7, active), append(counted(9, next), after...), ErrHandoff},
		"too small a count":        {codec.V080, counted(5, active), append(counted(9, next), after...), ErrHandoff},
		"more than there are next": {codec.V080, counted(6, active), counted(10, next), ErrHandoff},
		"a huge number of next":    {codec.V080, counted(6, active), counted(math.MaxInt, next), ErrHandoff},
		"0.8.0 with more bytes":    {codec.V080, append(counted(6, active), 0), append(counted(9, next), after...), ErrHandoff},
		"0.7.2 with more bytes":    {codec.V072, append(codec.EncodeValidators(active), 0), append(codec.EncodeValidators(next), after...), ErrHandoff},
		"no next validators":       {codec.V080, counted(6, active), counted(0, nil), ErrTrust},
		"no bytes":                 {codec.V080, counted(6, active), []byte{}, ErrHandoff},
	} {
		got, err := handoff(x.version, x.active, x.pending)
		require.ErrorIs(t, err, x.want, name)
		require.Nil(t, got, name)
	}
}

// A trust does not cross a gap, and no set that cannot vote.
func TestNoHandoff(t *testing.T) {
	all := epochs(t, 3, 1, 4)
	first := all[0].world.trust
	_, err := all[1].handoff(0, 2, 3, 5).Verify(first)
	require.ErrorIs(t, err, ErrFinality, "the handoff before is missing")
	second, err := all[0].handoff(0, 1, 2, 3, 4).Verify(first)
	require.NoError(t, err)
	require.True(t, second.Validators[1].IsZero() && second.BLS[4].IsZero(), "punished validators stay in the set")
	_, err = all[1].handoff(0, 2, 3, 5).Verify(second)
	require.ErrorIs(t, err, ErrFinality, "a third of the set is punished: the others are too few")
	_, err = all[1].handoff(0, 1, 2, 3, 5).Verify(second)
	require.ErrorIs(t, err, ErrKey, "a punished validator does not vote")

	// One of six is punished: the others suffice.
	all = epochs(t, 3, 1)
	trust := all[0].world.trust
	for i := range 2 {
		trust, err = all[i].handoff(0, 2, 3, 4, 5).Verify(trust)
		require.NoError(t, err)
	}
	require.Equal(t, all[2].world.trust, trust)
}

func TestForgedHandoff(t *testing.T) {
	all := epochs(t, 3)
	honest, other := &all[0], &all[1]
	trust := honest.world.trust
	// sign replaces the state of the block, as dishonest validators could.
	sign := func(chapter uint8, value []byte) *Handoff {
		e := *honest
		e.state = e.state.Set(statetrie.ChapterKey(chapter), value)
		return e.handoff(0, 1, 2, 3, 4)
	}
	active, pending := honest.handoff().Active.Value, honest.handoff().Pending.Value
	twice := slices.Clone(pending)
	copy(twice[codec.ValidatorSize:2*codec.ValidatorSize], twice[:codec.ValidatorSize])
	for name, c := range map[string]struct {
		h    *Handoff
		want error
	}{
		"two thirds":             {honest.handoff(0, 1, 2, 3), ErrFinality},
		"strangers":              {other.handoff(0, 1, 2, 3, 4, 5), ErrFinality},
		"another version":        {&Handoff{Version: 2}, ErrMalformed},
		"another epoch":          {sign(statetrie.ChapterValidators, other.handoff().Active.Value), ErrHandoff},
		"another key":            {sign(statetrie.ChapterValidators, flip(active, 40)), ErrHandoff},
		"another BLS key":        {sign(statetrie.ChapterValidators, flip(active, 64+48+3)), ErrHandoff},
		"a set of another size":  {sign(statetrie.ChapterValidators, active[codec.ValidatorSize:]), ErrHandoff},
		"a set with a count":     {sign(statetrie.ChapterValidators, append([]byte{6}, active...)), ErrHandoff},
		"too small a chapter":    {sign(statetrie.ChapterSafrole, pending[:6*codec.ValidatorSize-1]), ErrHandoff},
		"one key for two":        {sign(statetrie.ChapterSafrole, twice), ErrTrust},
		"chapters interchanged":  {swapped(honest.handoff(0, 1, 2, 3, 4)), ErrState},
		"the next state's sets":  {mixed(honest.handoff(0, 1, 2, 3, 4), other.handoff()), ErrState},
		"a truncated proof":      {truncated(honest.handoff(0, 1, 2, 3, 4)), ErrState},
		"a changed pending set":  {changed(honest.handoff(0, 1, 2, 3, 4)), ErrState},
		"a proof without a vote": {honest.handoff(), ErrFinality},
	} {
		next, err := c.h.Verify(trust)
		require.ErrorIs(t, err, c.want, name)
		require.Nil(t, next, name)
	}
	_, err := honest.handoff(0, 1, 2, 3, 4).Verify(nil)
	require.ErrorIs(t, err, ErrTrust)
	honest.world.trust.Set = math.MaxUint64
	_, err = honest.handoff(0, 1, 2, 3, 4).Verify(trust)
	require.ErrorIs(t, err, ErrHandoff, "there is no next number")
}

func flip(value []byte, at int) []byte {
	out := slices.Clone(value)
	out[at] ^= 1
	return out
}

func swapped(h *Handoff) *Handoff {
	h.Active, h.Pending = h.Pending, h.Active
	return h
}

func mixed(h, other *Handoff) *Handoff {
	h.Pending = other.Pending
	return h
}

func truncated(h *Handoff) *Handoff {
	h.Active.Nodes = h.Active.Nodes[1:]
	return h
}

func changed(h *Handoff) *Handoff {
	h.Pending.Value = flip(h.Pending.Value, 40)
	return h
}

// Of an honest handoff with one changed byte nothing is accepted.
func TestMutatedHandoffs(t *testing.T) {
	e := epochs(t, 2)[0]
	honest, err := json.Marshal(e.handoff(0, 1, 2, 3, 4))
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(5, 6))
	for range *forgeries {
		mutant := slices.Clone(honest)
		at := random.IntN(len(mutant))
		mutant[at] ^= 1 << random.IntN(8)
		if h, err := ParseHandoff(mutant); err == nil {
			_, err = h.Verify(e.world.trust)
			require.Error(t, err, "byte %d", at)
		}
	}
}

func TestParseHandoffIsStrict(t *testing.T) {
	e := epochs(t, 2)[0]
	raw, err := json.Marshal(e.handoff(0, 1, 2, 3, 4))
	require.NoError(t, err)
	text := string(raw)
	for _, bad := range []string{
		``, `null`, `{}`, strings.Replace(text, `"version":1`, `"version":2`, 1), strings.Replace(text, `"active"`, `"Active"`, 1),
		strings.Replace(text, `"version":1,`, `"version":1,"more":0,`, 1), text + "0", text + strings.Repeat(" ", MaxDocument),
	} {
		h, err := ParseHandoff([]byte(bad))
		require.ErrorIs(t, err, ErrMalformed)
		require.Nil(t, h)
	}
}

// FuzzParseHandoff: whatever comes in, a trust changes to the next set of the chain or not at all.
func FuzzParseHandoff(f *testing.F) {
	all := epochs(f, 2)
	raw, err := json.Marshal(all[0].handoff(0, 1, 2, 3, 4))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, err := ParseHandoff(raw)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		if next, err := h.Verify(all[0].world.trust); err == nil {
			require.Equal(t, all[1].world.trust, next)
		}
	})
}

// The BLS key of a validator is one secret in two groups, G1 first. This is the key of the seed of
// zeros on public test networks.
func TestBLSKeyLayout(t *testing.T) {
	raw := hexutil.MustDecode("0xb27150a1f1cd24bccc792ba7ba4220a1e8c36636e35a969d1d14b4c89bce7d1d463474fb186114a89dd70e88506fefc9830756c27a7845bec1cb6ee31e07211afd0dde34f0dc5d89231993cd323973faa23d84d521fd574e840b8617c75d1a1d0102aa3c71999137001a77464ced6bb2885c460be760c709009e26395716a52c8c52e6e23906a455b4264e7d0c75466e")
	trust := &Trust{Validators: make([]ValidatorKey, 1), BLS: make([]BLSKey, 1)}
	next, rest, err := trust.withKeys(codec.EncodeValidators([]codec.Validator{{Ed25519: common.Hash{1}, BLS: [144]byte(raw)}}))
	require.NoError(t, err)
	require.Empty(t, rest)
	require.NoError(t, next.BLS[0].Validate())
	key, err := next.BLS[0].point()
	require.NoError(t, err)
	var other bls.G1Affine
	_, err = other.SetBytes(raw[:48])
	require.NoError(t, err)
	_, _, g1, g2 := bls.Generators()
	g2.Neg(&g2)
	same, err := bls.PairingCheck([]bls.G1Affine{other, g1}, []bls.G2Affine{g2, key})
	require.NoError(t, err)
	require.True(t, same)
	require.Equal(t, raw[48:], next.BLS[0][:])
}

// A handoff of a full set fits into a document.
func TestLargestHandoff(t *testing.T) {
	const validators, slots = 1023, 600
	signature := Signature{Validator: validators, Signature: make([]byte, 64)}
	chapter := func(size int) ChapterProof {
		return ChapterProof{Nodes: make([]statetrie.Node, 20), Value: make([]byte, size)}
	}
	raw, err := json.Marshal(&Handoff{
		Version: Version, Finality: Finality{Signatures: slices.Repeat([]Signature{signature}, validators)},
		Active:  chapter(validators * codec.ValidatorSize),
		Pending: chapter(validators*codec.ValidatorSize + 144 + 1 + 2*slots*33 + 2),
	})
	require.NoError(t, err)
	require.Less(t, len(raw), MaxDocument/2)
}
