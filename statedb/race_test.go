package statedb

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// Sixty-four goroutines commit to a few states, several of them to the same
// one, while the canonical root moves, retention works, and roots are discarded
// and pinned. Each view always sees its values. Finally nothing is pinned, and
// the disk agrees with the store.
func TestEverythingAtOnce(t *testing.T) {
	disk := newMemoryDisk()
	s := reopen(t, disk, 3)
	var mu sync.Mutex
	roots := []common.Hash{EmptyRoot}
	some := func(r *rand.Rand) common.Hash {
		mu.Lock()
		defer mu.Unlock()
		return roots[len(roots)-1-r.IntN(min(len(roots), 20))]
	}
	allowed := func(err error, kinds ...error) {
		if err != nil && !slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) {
			t.Error(err)
		}
	}
	step := func(r *rand.Rand) {
		v, err := s.View(s.Canonical())
		if err != nil {
			// Meanwhile another root became canonical, and this one was discarded.
			allowed(err, ErrUnknownRoot)
			return
		}
		if err := v.Pin(some(r)); err != nil {
			allowed(err, ErrUnknownRoot)
			return
		}
		root := v.ActiveRoot()
		a := common.Address{byte(r.IntN(3))}
		account, code := v.Account(a), []byte{0x60, byte(r.IntN(4))}
		if account.Exists {
			require.Len(t, v.CodeAt(a), account.CodeSize)
		}
		h, err := v.SetCode(a, code)
		require.NoError(t, err)
		require.NoError(t, v.SetAccount(a, Account{Nonce: uint64(r.IntN(4)), Balance: new(uint256.Int), CodeHash: h, CodeSize: len(code)}))
		c, second := v.Copy(), v.CopyForPhase2()
		allowed(s.Discard(some(r)), ErrUnknownRoot, ErrInUse)
		require.True(t, s.Has(root), "pinned")
		require.Equal(t, code, c.CodeAt(a))
		require.Equal(t, account, second.Account(a))
		require.Equal(t, root, rootOf(t, second))
		got := commit(t, v)
		require.Equal(t, got, commit(t, c))
		require.NoError(t, second.Unpin())
		mu.Lock()
		roots = append(roots, got)
		mu.Unlock()
		if r.IntN(2) == 0 {
			allowed(s.SetCanonical(some(r)), ErrUnknownRoot)
		}
		require.Equal(t, code, v.CodeAt(a), "an open view goes on")
		w, err := v.Witness()
		require.NoError(t, err)
		_, err = Verify(w, got, nil)
		require.NoError(t, err)
	}
	var group sync.WaitGroup
	for i := range uint64(64) {
		group.Go(func() {
			r := rand.New(rand.NewPCG(i, 1))
			for range 15 {
				step(r)
			}
		})
	}
	group.Wait()
	for root, p := range s.roots {
		require.False(t, p.inUse(), "%s", root)
		require.False(t, p.leaving, "%s", root)
	}
	require.Equal(t, summarize(t, s), summarize(t, reopen(t, disk.restarted(), 3)))
	require.Subset(t, slices.Collect(maps.Keys(s.roots)), s.line)
}
