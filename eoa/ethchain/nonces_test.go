package ethchain

import (
	"context"
	"maps"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
)

// send gives a transaction with the nonce to the node's pool.
func (s *setup) send(t *testing.T, nonce uint64) common.Hash {
	tx := types.NewTx(&types.DynamicFeeTx{ChainID: big.NewInt(int64(s.account.ChainID)), Nonce: nonce, Gas: 21_000, To: &s.account.Address,
		GasFeeCap: big.NewInt(1000), GasTipCap: big.NewInt(10)})
	signed, err := s.node.signer.Sign(t.Context(), s.account.Address, tx)
	require.NoError(t, err)
	raw, err := signed.MarshalBinary()
	require.NoError(t, err)
	require.Equal(t, eoa.Accepted, s.node.chain.Send(context.Background(), [][]byte{raw})[0].Result)
	return signed.Hash()
}

// The block that used a nonce is found by few counts, or without them if the
// node has no old states. Its transactions show who used the nonce.
func TestUsersOfNonces(t *testing.T) {
	const n = 3000
	s := newSetup(t, 1)
	var hashes [3]common.Hash
	for height := uint64(1); height <= n; height++ {
		switch height {
		case 700: // nonce 0
			hashes[0] = s.send(t, 0)
		case 2000: // nonces 1 and 2
			s.node.chain.UseNonces(s.account.Address, 1)
			hashes[2] = s.send(t, 2)
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

// The searches for many nonces share their round trips, so that an Ask ends in
// time also if a whole window of nonces was lost.
func TestUsersOfManyNonces(t *testing.T) {
	const lost, n = 64, 3000
	for _, c := range []struct {
		name         string
		after, every uint64 // heights: of the first nonce, and from one to the next
		batch, trips int
	}{
		{"all in one block", 1100, 0, 100, 1 + 12 + 1},
		{"each in another block", 1100, 5, 100, 1 + 12 + 8},
		{"small batches", 1100, 5, 16, 1 + 12*4 + 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSetup(t, 1)
			s.node.chain.SetPerBlock(1000)
			hashes := map[uint64]common.Hash{}
			for height := uint64(1); height <= n; height++ {
				for nonce := uint64(len(hashes)); nonce < lost && height == c.after+nonce*c.every; nonce++ {
					hashes[nonce] = s.send(t, nonce)
				}
				s.node.chain.Mine()
			}
			require.Len(t, hashes, lost)
			client := &narrow{Client: s.client, most: c.batch}
			chain, err := New(client, Options{MaxBatch: c.batch})
			require.NoError(t, err)
			q := eoa.Questions{Account: s.account.Address}
			for nonce := range uint64(lost) {
				q.Nonces = append(q.Nonces, eoa.UsedNonce{Nonce: nonce, UpTo: n})
			}
			a, err := chain.Ask(t.Context(), q)
			require.NoError(t, err)
			require.Equal(t, hashes, a.Users)
			require.LessOrEqual(t, len(client.sizes), c.trips)
		})
	}
}

// Without old states, more blocks must be read than one Ask may read. It answers
// the nonces that it has found, so that the following ones find the rest.
func TestUsersAreFoundInSeveralAsks(t *testing.T) {
	const lost, every = 16, 40
	s := newSetup(t, 1)
	hashes := map[uint64]common.Hash{}
	q := eoa.Questions{Account: s.account.Address}
	for nonce := range uint64(lost) {
		for range every - 1 {
			s.node.chain.Mine()
		}
		hashes[nonce] = s.send(t, nonce)
		s.node.chain.Mine()
		q.Nonces = append(q.Nonces, eoa.UsedNonce{Nonce: nonce, After: nonce * every, UpTo: (nonce + 1) * every})
	}
	s.node.states = lost * every
	chain, err := New(s.client, Options{})
	require.NoError(t, err)
	found := map[uint64]common.Hash{}
	for range 3 {
		a, err := chain.Ask(t.Context(), q)
		require.NoError(t, err)
		maps.Copy(found, a.Users)
		q.Nonces = slices.DeleteFunc(q.Nonces, func(u eoa.UsedNonce) bool { _, known := found[u.Nonce]; return known })
	}
	require.Equal(t, hashes, found)
}
