package service

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/hex"
	"errors"
	"io"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/submit/codec"
)

// builderKey is the key of the builder in the tests.
var builderKey = keyOf("builder")

func keyOf(name string) ed25519.PrivateKey {
	seed := label(name, 0)
	return ed25519.NewKeyFromSeed(seed[:])
}

func newCodec(t require.TestingT, version codec.Version) *codec.Codec {
	c, err := codec.New(version, jamq.Tiny())
	require.NoError(t, err)
	return c
}

// signed returns a package that a key has signed.
func signed(t require.TestingT, c *codec.Codec, key crypto.Signer, number uint64) *codec.WorkPackage {
	p := unsigned(number)
	sign(t, c, key, p)
	return p
}

// unsigned returns a package that has everything which a package can have.
func unsigned(number uint64) *codec.WorkPackage {
	return &codec.WorkPackage{
		AuthCodeHost: 7,
		Context: jamq.RefineContext{Anchor: jamq.HeaderHash(label("anchor", number)), LookupAnchorSlot: 5,
			Prerequisites: []jamq.PackageHash{{1}, {2}}},
		Items: []codec.WorkItem{{
			Service: 7, CodeHash: label("code", 0), RefineGas: 1_000_000, AccumulateGas: 100_000, ExportCount: 1,
			Payload: EncodeHeader(block(number)), Imports: []codec.Import{{Root: label("import", 0)}},
			Extrinsics: []codec.Extrinsic{{Hash: label("extrinsic", 0), Length: 9}},
		}},
	}
}

func sign(t require.TestingT, c *codec.Codec, key crypto.Signer, p *codec.WorkPackage) {
	s, err := NewSigner(c.Version(), key)
	require.NoError(t, err)
	require.NoError(t, s.Sign(c, p))
}

// authorizing returns the call of is-authorized for a package.
func authorizing(t require.TestingT, c *codec.Codec, p *codec.WorkPackage) invocation {
	raw, err := c.Encode(p)
	require.NoError(t, err)
	refine := codec.RefineContext(p.Context)
	context, err := c.Encode(&refine)
	require.NoError(t, err)
	return invocation{Gas: authorizerGas, Arguments: []byte{1, 0}, Writes: -1,
		Package: packageParts{7: raw, 8: append([]byte{}, p.AuthorizerConfig...), 9: append([]byte{}, p.Authorization...), 10: context}}
}

// authorized returns the outcome of the model.
func authorized(c *codec.Codec, p *codec.WorkPackage) outcome {
	if Authorize(c, p) != nil {
		return outcome{Status: "panic"}
	}
	return outcome{Status: "halt", Output: "0x"}
}

// authorizerScenarios returns the shared cases of the authorizer, each with the outcome of the
// model.
func authorizerScenarios(t *testing.T) (cases []sharedCase) {
	c := newCodec(t, codec.V072)
	add := func(name string, p *codec.WorkPackage) {
		cases = append(cases, sharedCase{Name: name, invocation: authorizing(t, c, p), Want: authorized(c, p)})
	}
	changed := func(name string, change func(p *codec.WorkPackage)) {
		p := signed(t, c, builderKey, 1)
		change(p)
		add(name, p)
	}
	add("a signed package", signed(t, c, builderKey, 1))
	empty := new(codec.WorkPackage)
	sign(t, c, builderKey, empty)
	add("a package with nothing in it", empty)
	for number := range uint64(3) {
		add("another key", signed(t, c, keyOf("another"+string(rune('0'+number))), number))
	}
	for i, change := range packageChanges {
		changed("a package that was changed "+string(rune('a'+i)), change)
	}
	changed("the signature of another key", func(p *codec.WorkPackage) { p.AuthorizerConfig = keyOf("another").Public().(ed25519.PublicKey) })
	changed("a token that is too long, and signed", func(p *codec.WorkPackage) { signLonger(t, c, p, 65) })
	changed("no token", func(p *codec.WorkPackage) { p.Authorization = nil })
	changed("a token that is too short", func(p *codec.WorkPackage) { p.Authorization = p.Authorization[:63] })
	changed("a token with an octet more", func(p *codec.WorkPackage) { p.Authorization = append(p.Authorization, 0) })
	changed("no key", func(p *codec.WorkPackage) { p.AuthorizerConfig = nil })
	changed("a key that is too long", func(p *codec.WorkPackage) {
		p.AuthorizerConfig = append(slices.Clone(p.AuthorizerConfig), 0)
		signLonger(t, c, p, 64)
	})
	changed("another R", func(p *codec.WorkPackage) { p.Authorization[0] ^= 1 })
	changed("R with another sign", func(p *codec.WorkPackage) { p.Authorization[31] ^= 0x80 })
	changed("another s", func(p *codec.WorkPackage) { p.Authorization[32] ^= 1 })
	changed("s and the order", func(p *codec.WorkPackage) { addOrder(p.Authorization[32:]) })
	changed("a key that is no point", func(p *codec.WorkPackage) { p.AuthorizerConfig = append([]byte{2}, make([]byte, 31)...) })
	for _, key := range smallKeys {
		addSmall(t, c, key, add)
	}
	return cases
}

// signLonger sets a token of some length whose first 64 bytes sign the package with zeros in their
// place.
func signLonger(t require.TestingT, c *codec.Codec, p *codec.WorkPackage, length int) {
	p.Authorization = make([]byte, length)
	hash, err := c.PackageHash(p)
	require.NoError(t, err)
	copy(p.Authorization, ed25519.Sign(builderKey, append([]byte(messagePrefix), hash[:]...)))
}

// packageChanges change one part of a package each.
var packageChanges = []func(p *codec.WorkPackage){
	func(p *codec.WorkPackage) { p.AuthCodeHost++ },
	func(p *codec.WorkPackage) { p.AuthCodeHash[0]++ },
	func(p *codec.WorkPackage) { p.Context.Anchor[31]++ },
	func(p *codec.WorkPackage) { p.Context.Prerequisites = p.Context.Prerequisites[1:] },
	func(p *codec.WorkPackage) { p.Context.LookupAnchorSlot++ },
	func(p *codec.WorkPackage) { p.Items[0].Service++ },
	func(p *codec.WorkPackage) { p.Items[0].AccumulateGas++ },
	func(p *codec.WorkPackage) { p.Items[0].Payload = append(slices.Clone(p.Items[0].Payload), 0) },
	func(p *codec.WorkPackage) { p.Items[0].Payload = p.Items[0].Payload[1:] },
	func(p *codec.WorkPackage) { p.Items[0].Extrinsics[0].Length++ },
	func(p *codec.WorkPackage) { p.Items = append(p.Items, p.Items[0]) },
}

// smallKeys are the encodings of the points of orders 1, 2, 4 and 8, and others of the same points
// that are not canonical.
var smallKeys = []string{
	"0100000000000000000000000000000000000000000000000000000000000000",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"0000000000000000000000000000000000000000000000000000000000000000",
	"0000000000000000000000000000000000000000000000000000000000000080",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
	"0100000000000000000000000000000000000000000000000000000000000080",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
}

// basePoint is R for s = 1 and a key of order 1.
const basePoint = "5866666666666666666666666666666666666666666666666666666666666666"

// addSmall adds packages under a key of small order. Without a private key, the signature of one in
// a few of them is right: that of one and another package are cases.
func addSmall(t require.TestingT, c *codec.Codec, key string, add func(string, *codec.WorkPackage)) {
	seen := map[bool]bool{}
	for number := uint64(0); number < 64 && len(seen) < 2; number++ {
		p := unsigned(number)
		p.AuthorizerConfig = unhex(key)
		p.Authorization = append(unhex(basePoint), append([]byte{1}, make([]byte, 31)...)...)
		passes := Authorize(c, p) == nil
		if !seen[passes] {
			seen[passes] = true
			add("a key of small order "+key[:2]+key[62:], p)
		}
	}
	require.True(t, seen[true])
	p := unsigned(0)
	p.AuthorizerConfig, p.Authorization = unhex(smallKeys[0]), append(unhex(key), make([]byte, 32)...)
	add("R of small order "+key[:2]+key[62:], p)
}

func unhex(text string) []byte {
	raw, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return raw
}

// addOrder adds the order of the base point to a number, little-endian.
func addOrder(s []byte) {
	order, _ := new(big.Int).SetString("27742317777372353535851937790883648493", 10)
	order.Add(order, new(big.Int).Lsh(big.NewInt(1), 252))
	slices.Reverse(s)
	new(big.Int).Add(order, new(big.Int).SetBytes(s)).FillBytes(s)
	slices.Reverse(s)
}

// TestAuthorizerCases runs the shared cases of the authorizer.
func TestAuthorizerCases(t *testing.T) {
	p := load(t, &authorizerProgram, codec.V072)
	made := authorizerScenarios(t)
	for i := range made {
		model := made[i].Want
		made[i].Want = made[i].run(p, codec.V072)
		requireSame(t, model, made[i].Want)
	}
	if *update {
		writeCases(t, authorizerCases, made)
		return
	}
	require.Equal(t, made, readCases(t, authorizerCases), "go test -update")
}

// The program lets those packages pass that the model lets pass. Versions draw different packages.
func TestAuthorizer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SampledFrom([]codec.Version{codec.V072, codec.V080}).Draw(t, "version")
		c := newCodec(t, v)
		p := drawPackage(t, c)
		requireSame(t, authorized(c, p), authorizing(t, c, p).run(load(t, &authorizerProgram, v), v))
	})
}

// drawPackage returns a signed package, mostly with a change of it, of the key or of the token.
func drawPackage(t *rapid.T, c *codec.Codec) *codec.WorkPackage {
	p := unsigned(rapid.Uint64().Draw(t, "number"))
	p.Context.Prerequisites = p.Context.Prerequisites[:rapid.IntRange(0, 2).Draw(t, "prerequisites")]
	p.Items = p.Items[:rapid.IntRange(0, 1).Draw(t, "items")]
	for i := range p.Items {
		p.Items[i].Payload = rapid.SliceOfN(rapid.Byte(), 0, 400).Draw(t, "payload")
	}
	sign(t, c, keyOf(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "signer")), p)
	p.Authorization = slices.Clone(p.Authorization)
	flip := func(name string, raw []byte) {
		bit := rapid.IntRange(0, 8*len(raw)-1).Draw(t, name)
		raw[bit/8] ^= 1 << (bit % 8)
	}
	switch rapid.IntRange(0, 8).Draw(t, "change") {
	case 0:
		flip("bit of the token", p.Authorization)
	case 1:
		p.AuthorizerConfig = slices.Clone(p.AuthorizerConfig)
		flip("bit of the key", p.AuthorizerConfig)
	case 2:
		flip("bit of the anchor", p.Context.Anchor[:])
	case 3:
		addOrder(p.Authorization[32:])
	case 4:
		p.AuthorizerConfig = unhex(rapid.SampledFrom(smallKeys).Draw(t, "small key"))
		p.Authorization = append(unhex(basePoint), append([]byte{1}, make([]byte, 31)...)...)
	case 5:
		copy(p.Authorization, rapid.SliceOfN(rapid.Byte(), 1, 32).Draw(t, "R"))
	case 6:
		p.Authorization = rapid.SliceOfN(rapid.Byte(), 0, 70).Draw(t, "token")
	}
	return p
}

// A package of the greatest size passes, with the gas that JAM grants an authorizer, and a larger
// one does not.
func TestGreatestPackage(t *testing.T) {
	c, program := newCodec(t, codec.V072), load(t, &authorizerProgram, codec.V072)
	p := signedOfSize(t, c, MaxSigned)
	require.NoError(t, Authorize(c, p))
	i := authorizing(t, c, p)
	got := i.run(program, codec.V072)
	requireSame(t, outcome{Status: "halt", Output: "0x"}, got)
	requireGas(t, "a package of 1 MiB", i, got)

	p = signedOfSize(t, c, MaxSigned+1)
	require.ErrorIs(t, Authorize(c, p), ErrUnauthorized)
	require.Equal(t, "panic", authorizing(t, c, p).run(program, codec.V072).Status)
	s, err := NewSigner(codec.V072, builderKey)
	require.NoError(t, err)
	require.ErrorIs(t, s.Sign(c, p), ErrUnauthorized)
	require.Empty(t, p.Authorization)
}

// signedOfSize returns a signed package of a size above 64 KiB, whatever the limit is.
func signedOfSize(t require.TestingT, c *codec.Codec, size int) *codec.WorkPackage {
	p := new(codec.WorkPackage)
	p.Items = []codec.WorkItem{{Payload: make([]byte, 1<<16)}}
	sign(t, c, builderKey, p)
	raw, err := c.Encode(p)
	require.NoError(t, err)
	p.Items[0].Payload = make([]byte, 1<<16+size-len(raw))
	signLonger(t, c, p, 64)
	raw, err = c.Encode(p)
	require.NoError(t, err)
	require.Len(t, raw, size)
	return p
}

// Keys that cannot sign for the authorizer are refused, before a package has their signature.
func TestWrongKeys(t *testing.T) {
	c := newCodec(t, codec.V072)
	other, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(t, err)
	_, err = NewSigner(codec.V072, other)
	require.ErrorIs(t, err, ErrSigner)
	for name, sign := range map[string]func(message []byte) ([]byte, error){
		"an error":            func([]byte) ([]byte, error) { return nil, errLocked },
		"a wrong signature":   func([]byte) ([]byte, error) { return make([]byte, 64), nil },
		"a signature too few": func([]byte) ([]byte, error) { return nil, nil },
	} {
		s, err := NewSigner(codec.V072, brokenKey{builderKey, sign})
		require.NoError(t, err)
		var p codec.WorkPackage
		require.ErrorIs(t, s.Sign(c, &p), ErrSigner, name)
		require.Empty(t, p.Authorization, name)
	}
	_, err = NewSigner(codec.V080+1, builderKey)
	require.ErrorIs(t, err, codec.ErrUnknownVersion)
	later, err := NewSigner(codec.V080, builderKey)
	require.NoError(t, err)
	require.ErrorIs(t, later.Sign(c, new(codec.WorkPackage)), ErrSigner)
}

var errLocked = errors.New("the device is locked")

// brokenKey is a key that signs in its own way.
type brokenKey struct {
	crypto.Signer
	sign func(message []byte) ([]byte, error)
}

func (k brokenKey) Sign(_ io.Reader, message []byte, _ crypto.SignerOpts) ([]byte, error) {
	return k.sign(message)
}

// The genesis that is made for a signer has the authorizer of the signed packages, and its code.
func TestSignedBy(t *testing.T) {
	for v := range hostCalls {
		s, err := NewSigner(v, builderKey)
		require.NoError(t, err)
		p := signed(t, newCodec(t, v), builderKey, 1)
		g, err := Genesis{Service: 7, Version: v, Block: block(0)}.SignedBy(s)
		require.NoError(t, err)
		require.Equal(t, p.Authorizer(), g.Authorizer)
		entries, err := g.Entries()
		require.NoError(t, err)
		require.Contains(t, entries, statetrie.PreimageKey(7, p.AuthCodeHash))
	}
}
