package ethchain

import (
	"context"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
)

// The block that used a nonce is found by few counts, or without them if the
// node has no old states. Its transactions show who used the nonce.
func TestUsersOfNonces(t *testing.T) {
	const n = 3000
	s := newSetup(t, 1)
	send := func(nonce uint64) common.Hash {
		tx := types.NewTx(&types.DynamicFeeTx{ChainID: big.NewInt(int64(s.account.ChainID)), Nonce: nonce, Gas: 21_000, To: &s.account.Address,
			GasFeeCap: big.NewInt(1000), GasTipCap: big.NewInt(10)})
		signed, err := s.node.signer.Sign(t.Context(), s.account.Address, tx)
		require.NoError(t, err)
		raw, err := signed.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, eoa.Accepted, s.node.chain.Send(context.Background(), [][]byte{raw})[0].Result)
		return signed.Hash()
	}
	var hashes [3]common.Hash
	for height := uint64(1); height <= n; height++ {
		switch height {
		case 700: // nonce 0
			hashes[0] = send(0)
		case 2000: // nonces 1 and 2
			s.node.chain.UseNonces(s.account.Address, 1)
			hashes[2] = send(2)
		}
		s.node.chain.Mine()
	}
	chain, err := New(s.client, Options{})
	require.NoError(t, err)
	for _, c := range []struct {
		name           string
		used           eoa.UsedNonce
		states, bodies uint64
		known          bool
	}{
		{"a transaction", eoa.UsedNonce{Nonce: 0, UpTo: n}, 0, 0, true},
		{"no transaction", eoa.UsedNonce{Nonce: 1, UpTo: n}, 0, 0, true},
		{"both in one block", eoa.UsedNonce{Nonce: 2, UpTo: n}, 0, 0, true},
		{"one block", eoa.UsedNonce{Nonce: 1, After: 1999, UpTo: 2000}, 0, 0, true},
		{"limits in the wrong order", eoa.UsedNonce{Nonce: 1, After: n, UpTo: n}, 0, 0, true},
		{"no states, few blocks", eoa.UsedNonce{Nonce: 1, After: 1900, UpTo: 2050}, n, 0, true},
		{"no states, a transaction in few blocks", eoa.UsedNonce{Nonce: 2, After: 1900, UpTo: 2050}, n, 0, true},
		{"only newer states", eoa.UsedNonce{Nonce: 2, After: 1800, UpTo: n}, 1990, 0, true},
		{"no states, many blocks", eoa.UsedNonce{Nonce: 1, After: 1000, UpTo: 2050}, n, 0, false},
		{"no blocks", eoa.UsedNonce{Nonce: 1, UpTo: n}, 0, n, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.node.states, s.node.bodies = c.states, c.bodies
			s.node.counts.Store(0)
			a, err := chain.Ask(t.Context(), eoa.Questions{Account: s.account.Address, Nonces: []eoa.UsedNonce{c.used}})
			require.NoError(t, err)
			user, known := a.Users[c.used.Nonce]
			require.Equal(t, c.known, known)
			if known {
				require.Equal(t, hashes[c.used.Nonce], user)
			}
			require.LessOrEqual(t, s.node.counts.Load(), int64(13))
		})
	}
}
