package kms

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/eoa"
)

const chainID = 7

var order = crypto.S256().Params().N

func newTx(nonce uint64) *types.Transaction {
	return types.NewTx(&types.DynamicFeeTx{ChainID: big.NewInt(chainID), Nonce: nonce, GasFeeCap: big.NewInt(2), GasTipCap: big.NewInt(1), Gas: 21_000, To: &common.Address{1}, Value: new(big.Int)})
}

// plain returns r and s of a signature as 32 bytes each.
func plain(r, s *big.Int) []byte {
	return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
}

func der(r, s *big.Int) []byte {
	b, err := asn1.Marshal(pair{r, s})
	if err != nil {
		panic(err)
	}
	return b
}

// service signs with a key, as services do: without a recovery id, with a low or a high
// s, in one of two encodings.
func service(key *ecdsa.PrivateKey, high bool, encode func(r, s *big.Int) []byte) Key {
	return Key{Public: &key.PublicKey, Sign: func(_ context.Context, digest []byte) ([]byte, error) {
		signature, err := crypto.Sign(digest, key)
		if err != nil {
			return nil, err
		}
		r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:64])
		if high {
			s.Sub(order, s)
		}
		return encode(r, s), nil
	}}
}

// Each transaction has the signature that the key would give it in memory.
func TestSign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key, err := crypto.ToECDSA(crypto.Keccak256(rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "key")))
		require.NoError(t, err)
		encode := rapid.SampledFrom([]func(r, s *big.Int) []byte{plain, der}).Draw(t, "encoding")
		s, err := New(chainID, service(key, rapid.Bool().Draw(t, "high"), encode))
		require.NoError(t, err)
		tx, a := newTx(rapid.Uint64().Draw(t, "nonce")), crypto.PubkeyToAddress(key.PublicKey)
		require.Equal(t, []common.Address{a}, s.Addresses())
		have, err := s.Sign(context.Background(), a, tx)
		require.NoError(t, err)
		want, err := eoa.NewKeySigner(chainID, key).Sign(context.Background(), a, tx)
		require.NoError(t, err)
		require.Equal(t, want.Hash(), have.Hash())
	})
}

// A service that fails, or whose answer is no signature of the key, is an error.
func TestSignErrors(t *testing.T) {
	key, other := crypto.ToECDSAUnsafe([]byte{1}), crypto.ToECDSAUnsafe([]byte{2})
	failed := errors.New("failed")
	answer := func(b []byte, err error) Key {
		return Key{Public: &key.PublicKey, Sign: func(context.Context, []byte) ([]byte, error) { return b, err }}
	}
	wrong := service(other, false, plain)
	wrong.Public = &key.PublicKey
	for name, c := range map[string]struct {
		key  Key
		want error
	}{
		"failure":        {answer(nil, failed), failed},
		"empty":          {answer(nil, nil), eoa.ErrSigner},
		"63 bytes":       {answer(make([]byte, 63), nil), eoa.ErrSigner},
		"zeros":          {answer(make([]byte, 64), nil), eoa.ErrSigner},
		"order":          {answer(plain(order, big.NewInt(1)), nil), eoa.ErrSigner},
		"negative":       {answer(der(big.NewInt(-1), big.NewInt(1)), nil), eoa.ErrSigner},
		"very long":      {answer(der(new(big.Int).Lsh(order, 100), big.NewInt(1)), nil), eoa.ErrSigner},
		"behind":         {answer(append(der(big.NewInt(1), big.NewInt(1)), 0), nil), eoa.ErrSigner},
		"another key":    {wrong, eoa.ErrSigner},
		"another digest": {answer(plain(big.NewInt(1), big.NewInt(1)), nil), eoa.ErrSigner},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(chainID, c.key)
			require.NoError(t, err)
			_, err = s.Sign(context.Background(), s.Addresses()[0], newTx(0))
			require.ErrorIs(t, err, c.want)
		})
	}
	s, err := New(chainID, service(key, false, plain))
	require.NoError(t, err)
	_, err = s.Sign(context.Background(), common.Address{}, newTx(0))
	require.ErrorIs(t, err, eoa.ErrSigner)
}

func TestNew(t *testing.T) {
	key := service(crypto.ToECDSAUnsafe([]byte{1}), false, plain)
	foreign, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	for name, keys := range map[string][]Key{
		"no key":        {{Sign: key.Sign}},
		"no function":   {key, {Public: key.Public}},
		"twice":         {key, key},
		"another curve": {{Public: &foreign.PublicKey, Sign: key.Sign}},
		"no point":      {{Public: &ecdsa.PublicKey{Curve: crypto.S256()}, Sign: key.Sign}},
		"off the curve": {{Public: &ecdsa.PublicKey{Curve: crypto.S256(), X: big.NewInt(1), Y: big.NewInt(1)}, Sign: key.Sign}},
	} {
		_, err := New(chainID, keys...)
		require.Error(t, err, name)
	}
	_, err = New(0, key)
	require.ErrorContains(t, err, "chain id")
}

// spki returns SubjectPublicKeyInfo.
func spki(curve asn1.ObjectIdentifier, point []byte) []byte {
	info := keyInfo{Point: asn1.BitString{Bytes: point, BitLength: 8 * len(point)}}
	info.Algorithm.ID, info.Algorithm.Curve = ecPublicKey, curve
	b, err := asn1.Marshal(info)
	if err != nil {
		panic(err)
	}
	return b
}

// All forms of a key are the same key. The second one begins, as a point, like an OCTET
// STRING that is two bytes shorter.
func TestParsePublicKey(t *testing.T) {
	for _, secret := range []byte{9, 96} {
		testParse(t, &crypto.ToECDSAUnsafe([]byte{secret}).PublicKey)
	}
}

func testParse(t *testing.T, key *ecdsa.PublicKey) {
	t.Helper()
	point := crypto.FromECDSAPub(key)
	octets, err := asn1.Marshal(point)
	require.NoError(t, err)
	for name, b := range map[string][]byte{
		"DER":          spki(secp256k1, point),
		"PEM":          pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki(secp256k1, point)}),
		"uncompressed": point,
		"compressed":   crypto.CompressPubkey(key),
		"PKCS#11":      octets,
	} {
		have, err := ParsePublicKey(b)
		require.NoError(t, err, name)
		require.True(t, key.Equal(have), name)
	}
	foreign, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	p256, err := x509.MarshalPKIXPublicKey(&foreign.PublicKey)
	require.NoError(t, err)
	off := append([]byte(nil), point...)
	off[64] ^= 1
	for name, b := range map[string][]byte{
		"empty": nil, "64 bytes": point[1:], "off the curve": off, "P-256": p256,
		"secp256k1 off the curve": spki(secp256k1, off), "no point": spki(secp256k1, nil), "empty octets": {4, 0},
	} {
		_, err := ParsePublicKey(b)
		require.Error(t, err, name)
	}
}

// Whatever a service answers, it is parsed or refused.
func FuzzAnswers(f *testing.F) {
	key := &crypto.ToECDSAUnsafe([]byte{9}).PublicKey
	f.Add(der(big.NewInt(3), big.NewInt(5)))
	f.Add(spki(secp256k1, crypto.FromECDSAPub(key)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if parsed, err := ParsePublicKey(b); err == nil {
			require.True(t, parsed.IsOnCurve(parsed.X, parsed.Y))
		}
		if out, err := recoverable(key, common.Hash{1}, b); err == nil {
			require.True(t, crypto.VerifySignature(crypto.FromECDSAPub(key), common.Hash{1}.Bytes(), out[:64]))
		}
	})
}
