package kms

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/jamq/jamq/eoa"
)

// Key is a key whose secret part is kept in a key service or a security module.
type Key struct {
	// Public is the public key. Its curve must be go-ethereum's crypto.S256(), as
	// in the result of [ParsePublicKey].
	Public *ecdsa.PublicKey
	// Sign lets the service sign a digest of 32 bytes with ECDSA, without hashing
	// it again. It returns r and s, either as ASN.1 (ECDSA-Sig-Value of RFC 3279)
	// or as 32 bytes each, big-endian. Sign is called concurrently, at most
	// eoa.Config.Parallel times for an account, and must return when ctx ends.
	Sign func(ctx context.Context, digest []byte) ([]byte, error)
}

// Signer is an [eoa.Signer] for keys in a service. Create it with [New]. It is safe
// for concurrent use.
type Signer struct {
	rules     types.Signer
	keys      map[common.Address]Key
	addresses []common.Address
}

var _ eoa.Signer = (*Signer)(nil)

// New returns a signer for the chain with the given id. It returns an error if the
// id is 0, if a key lacks a part or is on another curve, or if two keys are the
// same.
func New(chainID uint64, keys ...Key) (*Signer, error) {
	if chainID == 0 {
		return nil, errors.New("kms: chain id 0, want at least 1")
	}
	s := &Signer{rules: types.LatestSignerForChainID(new(big.Int).SetUint64(chainID)), keys: map[common.Address]Key{}}
	for i, k := range keys {
		if k.Sign == nil || !valid(k.Public) {
			return nil, fmt.Errorf("kms: key %d of %d: want a point of the curve crypto.S256() and a function", i+1, len(keys))
		}
		a := crypto.PubkeyToAddress(*k.Public)
		if _, known := s.keys[a]; known {
			return nil, fmt.Errorf("kms: key %d of %d: two keys for %v, want one", i+1, len(keys), a)
		}
		s.keys[a] = k
		s.addresses = append(s.addresses, a)
	}
	return s, nil
}

// valid reports whether a key is a point on the curve.
func valid(k *ecdsa.PublicKey) bool {
	if k == nil || k.Curve != crypto.S256() || k.X == nil || k.Y == nil {
		return false
	}
	same, err := crypto.UnmarshalPubkey(crypto.FromECDSAPub(k)) // checks the curve
	return err == nil && same.Equal(k)
}

// Addresses returns the addresses of the keys, in the order of the keys.
func (s *Signer) Addresses() []common.Address { return append([]common.Address(nil), s.addresses...) }

// Sign implements [eoa.Signer]. The error wraps eoa.ErrSigner if there is no key
// for the account, or if the service's signature was not made with that key.
// Otherwise the error comes from Key.Sign, or from types.Transaction.WithSignature,
// for example for a transaction of another chain.
func (s *Signer) Sign(ctx context.Context, a common.Address, tx *types.Transaction) (*types.Transaction, error) {
	k, known := s.keys[a]
	if !known {
		return nil, fmt.Errorf("%w: no key for %v", eoa.ErrSigner, a)
	}
	digest := s.rules.Hash(tx)
	answer, err := k.Sign(ctx, digest.Bytes())
	if err != nil {
		return nil, fmt.Errorf("kms: %v: %w", a, err)
	}
	signature, err := recoverable(k.Public, digest, answer)
	if err != nil {
		return nil, fmt.Errorf("%w: %v: %w", eoa.ErrSigner, a, err)
	}
	return tx.WithSignature(s.rules, signature)
}

const wordSize = 32

var errForeign = errors.New("the signature is not of this key and digest")

// recoverable converts a service's signature to the form that Ethereum accepts.
func recoverable(public *ecdsa.PublicKey, digest common.Hash, answer []byte) ([]byte, error) {
	order := crypto.S256().Params().N
	want := crypto.FromECDSAPub(public)
	all := readings(answer)
	if len(all) == 0 {
		return nil, fmt.Errorf("signature %x, want ASN.1 or %d bytes", answer, 2*wordSize)
	}
	for _, p := range all {
		if p.R.Sign() <= 0 || p.S.Sign() <= 0 || p.R.Cmp(order) >= 0 || p.S.Cmp(order) >= 0 {
			continue
		}
		// Only the lower of the two possible values of s is valid (EIP-2).
		if high := new(big.Int).Rsh(order, 1); p.S.Cmp(high) > 0 {
			p.S = new(big.Int).Sub(order, p.S)
		}
		out := make([]byte, crypto.SignatureLength)
		p.R.FillBytes(out[:wordSize])
		p.S.FillBytes(out[wordSize : 2*wordSize])
		// The right recovery id is the one that recovers the public key.
		for id := range byte(2) {
			out[crypto.RecoveryIDOffset] = id
			if have, err := crypto.Ecrecover(digest.Bytes(), out); err == nil && bytes.Equal(have, want) {
				return out, nil
			}
		}
	}
	return nil, errForeign
}

// pair is a signature as it is encoded in ASN.1.
type pair struct{ R, S *big.Int }

// readings returns the signatures that the bytes from a service can mean.
func readings(b []byte) (out []pair) {
	var p pair
	if rest, err := asn1.Unmarshal(b, &p); err == nil && len(rest) == 0 {
		out = append(out, p)
	}
	// These may be the two numbers without ASN.1. A short signature in ASN.1 can also
	// have 64 bytes, so return both readings; the caller tries which of them is valid.
	if len(b) == 2*wordSize {
		out = append(out, pair{new(big.Int).SetBytes(b[:wordSize]), new(big.Int).SetBytes(b[wordSize:])})
	}
	return out
}
