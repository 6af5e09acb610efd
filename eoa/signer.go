package eoa

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// keySigner is a Signer that holds its keys in memory.
type keySigner struct {
	rules types.Signer
	keys  map[common.Address]*ecdsa.PrivateKey
}

// NewKeySigner returns a signer for one chain that holds its keys in memory. Use
// package eoa/kms for keys in a key service. The signer is safe for concurrent use.
// Its errors wrap ErrSigner if it has no key for an account, or if chainID is 0.
func NewKeySigner(chainID uint64, keys ...*ecdsa.PrivateKey) Signer {
	s := &keySigner{keys: map[common.Address]*ecdsa.PrivateKey{}}
	if chainID > 0 {
		s.rules = types.LatestSignerForChainID(new(big.Int).SetUint64(chainID))
	}
	for _, key := range keys {
		s.keys[crypto.PubkeyToAddress(key.PublicKey)] = key
	}
	return s
}

// Sign implements Signer.
func (s *keySigner) Sign(_ context.Context, a common.Address, tx *types.Transaction) (*types.Transaction, error) {
	key, known := s.keys[a]
	if !known {
		return nil, fmt.Errorf("%w: no key for %v", ErrSigner, a)
	}
	if s.rules == nil {
		return nil, fmt.Errorf("%w: chain id 0, want at least 1", ErrSigner)
	}
	return types.SignTx(tx, s.rules, key)
}
