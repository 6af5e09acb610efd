package main

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
)

// go-ethereum takes one transaction of a delegated account at a time, and of one
// that will be delegated by a transaction in the pool. Each transfer needs about one
// block, however the account becomes delegated.
func TestDelegatedAccount(t *testing.T) {
	const transfers = 20
	owner, err := crypto.ToECDSA(crypto.Keccak256([]byte("owner")))
	require.NoError(t, err)
	other, err := crypto.ToECDSA(crypto.Keccak256([]byte("stranger")))
	require.NoError(t, err)
	gwei := big.NewInt(10_000_000_000)
	submit := func(s *stepped) {
		for i := range transfers {
			s.submit(transfer(fmt.Sprint(i)))
		}
	}
	delegate := func(s *stepped, nonce uint64) types.TxData {
		id, err := s.client.ChainID(t.Context())
		require.NoError(t, err)
		return &types.SetCodeTx{ChainID: uint256.MustFromBig(id), Gas: 200_000, GasFeeCap: uint256.MustFromBig(gwei), GasTipCap: uint256.MustFromBig(gwei),
			To: common.Address{8}, AuthList: []types.SetCodeAuthorization{s.authorize(common.Address{9}, nonce)}}
	}
	for name, begin := range map[string]func(s *stepped){
		"delegated before": func(s *stepped) {
			s.sendAs(other, delegate(s, 0))
			submit(s)
		},
		"by a transaction before": func(s *stepped) {
			s.submit(eoa.Request{Key: "own", Kind: eoa.SetCode, To: &common.Address{8}, Authorizations: []types.SetCodeAuthorization{s.authorize(common.Address{9}, 1)}})
			submit(s)
		},
		"by another account, while transfers are in flight that no node has": func(s *stepped) {
			s.node.on = true
			submit(s)
			s.step()
			s.sendAs(other, delegate(s, 0))
			s.node.on = false
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStepped(t, owner, other)
			begin(s)
			blocks := 0
			for ; s.received() < transfers; blocks++ {
				require.Less(t, blocks, 300)
				s.step()
			}
			require.Less(t, blocks, 2*transfers)
		})
	}
}
