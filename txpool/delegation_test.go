package txpool

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// TestI7Delegated: an account whose balance others can spend has few
// transactions in the pool, and can always replace them.
func TestI7Delegated(t *testing.T) {
	w := newWorld(t)
	w.set(0, func(a *Account) { a.Delegated = true })
	w.add(tx(0, 0, 2))
	w.refuse(tx(0, 1, 2), ErrDelegatedLimit, "in-flight transaction limit reached for delegated accounts: address "+addr(0).Hex()+" has 1, limit 1")
	w.add(tx(0, 0, 4))
	w.restart(func(c *Config) { c.MaxDelegated = 3 })
	w.add(tx(0, 1, 2), tx(0, 2, 2))
	w.refuse(tx(0, 3, 2), ErrDelegatedLimit)
}

// An authority is throttled by an authorization that could apply, inside a transaction that can
// run: and by nothing less.
func TestI7Authorities(t *testing.T) {
	for name, c := range map[string]struct {
		carrier   *types.Transaction
		throttled bool
	}{
		"applies":             {setCode(0, 0, 2, delegate(1, 3)), true},
		"any chain":           {setCode(0, 0, 2, delegateOn(1, 3, 0)), true},
		"after its first":     {setCode(0, 0, 2, delegate(1, 4)), true},
		"used up":             {setCode(0, 0, 2, delegate(1, 2)), false},
		"far ahead":           {setCode(0, 0, 2, delegate(1, 9)), false},
		"of another chain":    {setCode(0, 0, 2, delegateOn(1, 3, 1)), false},
		"no signature":        {setCode(0, 0, 2, types.SetCodeAuthorization{Nonce: 3}), false},
		"behind a gap":        {setCode(0, 1, 2, delegate(1, 3)), false},
		"somebody else's key": {setCode(0, 0, 2, delegate(2, 3)), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.nonce(1, 3)
			w.add(c.carrier, tx(1, 3, 2))
			if c.throttled {
				w.refuse(tx(1, 4, 2), ErrDelegatedLimit)
				w.add(tx(1, 3, 3))
				w.remove(c.carrier)
			}
			w.add(tx(1, 4, 2), tx(1, 5, 2))
		})
	}
}

// An account with many transactions cannot be delegated by one of them, or by a stranger's.
func TestI7AuthorityReserved(t *testing.T) {
	w := newWorld(t)
	w.add(tx(1, 0, 2), tx(1, 1, 2))
	w.refuse(setCode(0, 0, 2, delegate(1, 0)), ErrAuthorityReserved, "authority already reserved: address "+addr(1).Hex()+" has 2 transactions, limit 1")
	w.refuse(setCode(1, 2, 2, delegate(1, 3)), ErrAuthorityReserved)
	w.add(setCode(0, 0, 2, delegate(1, 9))) // it could not apply
	w.add(setCode(2, 0, 2, delegate(2, 1)))
	w.refuse(tx(2, 1, 2), ErrDelegatedLimit)
	w.add(setCode(2, 0, 4, delegate(2, 1)))
}

// The same holds for one that was behind a gap when the other transactions came.
func TestI7Promotion(t *testing.T) {
	w := newWorld(t)
	carrier := setCode(0, 1, 2, delegate(1, 0))
	w.add(carrier, tx(0, 2, 2), tx(1, 0, 2), tx(1, 1, 2), tx(0, 0, 2))
	w.stands(0, "p-q")
	w.stands(1, "pp")
	require.ErrorIs(t, w.Add(carrier), ErrAuthorityReserved)
}

// A sweep costs the pool one transaction per delegated account.
func TestI7Sweep(t *testing.T) {
	w := newWorld(t, tiny(16, 16))
	for i := range 8 {
		w.set(i, func(a *Account) { a.Delegated = true })
		for n := range uint64(4) {
			_ = w.Add(tx(i, n, 2))
		}
	}
	require.Equal(t, 8, w.Size())
	for i := range 8 {
		w.balance(i, 0)
	}
	w.reset(Head{Included: []Block{{}}, Touched: []common.Address{addr(0), addr(1)}})
	require.Equal(t, 6, w.Size())
	require.Empty(t, w.drain(Budget{}).Transactions(), "the others are found out by the drain")
	require.Zero(t, w.Size())
}

// An account that fills a gap before many does not get around its limit by that.
func TestI7GapIsFilled(t *testing.T) {
	for _, carrierFirst := range []bool{true, false} {
		w := newWorld(t)
		carrier := setCode(2, 0, 20, delegate(1, 2))
		if carrierFirst {
			w.add(carrier)
		}
		admitted := 0
		for _, tx := range chain(1, 1, 15, 20) {
			if w.Add(tx) == nil {
				admitted++
			}
		}
		if carrierFirst {
			require.Equal(t, 1, admitted)
		} else {
			w.add(carrier)
		}
		w.add(tx(1, 0, 20))
		pending, queued := w.ContentFrom(addr(1))
		require.Len(t, pending, 1)
		require.Empty(t, queued, "they could close up")
	}
}

// Many carriers of one authorization cost no more than one each, and the many nonces that one key
// can sign for no more than the account's own chain.
func TestI7ManyCarriers(t *testing.T) {
	w := newWorld(t, tiny(64, 64))
	for i := 2; i < 20; i++ {
		w.add(setCode(i, 0, 2, delegate(1, 0), delegate(1, 0), delegate(1, uint64(100+i))))
	}
	require.Equal(t, 18, w.core.authorizations[addr(1)][0])
	require.Len(t, w.core.authorizations[addr(1)], 19)
	w.add(tx(1, 0, 2))
	w.refuse(tx(1, 1, 2), ErrDelegatedLimit)
	for i := 2; i < 20; i++ {
		w.remove(setCode(i, 0, 2, delegate(1, 0), delegate(1, 0), delegate(1, uint64(100+i))))
	}
	require.Empty(t, w.core.authorizations)
}

// An authorization in a locked transaction throttles its authority until the state shows what it
// did.
func TestI7LockedAuthorization(t *testing.T) {
	w := newWorld(t)
	carrier := setCode(2, 0, 20, delegate(1, 0))
	w.add(carrier)
	w.drain(Budget{})
	w.add(tx(1, 0, 2))
	w.refuse(tx(1, 1, 2), ErrDelegatedLimit)
	w.include(blockOf(carrier))
	require.Empty(t, w.core.authorizations)
	w.add(tx(1, 1, 2)) // the authorization did not apply
}

// A commit lets a later transaction of a delegated sender have its turn, even
// if the places of those before it stay the same.
func TestDelegatedTurnAfterCommit(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxDelegated = 3 })
	w.add(chain(0, 0, 4, 5)...)
	w.set(0, func(a *Account) { a.Delegated = true })
	w.reset(Head{Touched: []common.Address{addr(0)}})
	w.stands(0, "pppk")
	w.commit(Budget{Count: 1})
	w.stands(0, "-ppp")
}

// A transaction behind a gap does not take the place of the next one of a
// delegated sender, as geth sees it too: it refuses the gapped one, or drops it
// if it came before the delegation.
func TestI1DelegatedGap(t *testing.T) {
	gapped := chain(1, 4, 2, 2)
	third := func(t *testing.T, delegated bool, change ...func(*Config)) *world {
		w := newWorld(t, change...)
		w.set(1, func(a *Account) { a.Nonce, a.Delegated = 3, delegated })
		return w
	}
	for name, become := range map[string]func(w *world){
		"by the state": func(w *world) {
			w.set(1, func(a *Account) { a.Delegated = true })
			w.reset(Head{Included: []Block{{}}, Touched: []common.Address{addr(1)}})
		},
		"by another sender":    func(w *world) { w.add(setCode(0, 0, 2, delegate(1, 3))) },
		"by the next, its own": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := third(t, false)
			w.add(gapped...)
			next := tx(1, 3, 2)
			if become == nil {
				next = setCode(1, 3, 2, delegate(1, 4))
			} else {
				become(w)
			}
			w.add(next)
			w.stands(1, "---p--")
			w.refuse(tx(1, 4, 9), ErrDelegatedLimit)
		})
	}
	t.Run("refused", func(t *testing.T) {
		w := third(t, true)
		w.refuse(gapped[1], ErrDelegatedGap, "gapped-nonce tx from delegated accounts: address "+addr(1).Hex()+", tx: 5 next: 3")
		w.add(tx(1, 3, 2))
		w.refuse(gapped[1], ErrDelegatedLimit)
	})
	t.Run("within the limit", func(t *testing.T) {
		w := third(t, true, func(c *Config) { c.MaxDelegated = 3 })
		w.refuse(gapped[0], ErrDelegatedGap)
		w.add(tx(1, 3, 2))
		w.add(gapped...)
		w.refuse(tx(1, 6, 2), ErrDelegatedLimit)
	})
}

// An authorization of a transaction that came back is not checked again when the
// transaction runs.
func TestReturnedAuthorizationRuns(t *testing.T) {
	w := newWorld(t)
	carrier := setCode(2, 0, 20, delegate(1, 0))
	w.returned(carrier)
	w.baseFee(30)
	w.stands(2, "k")
	w.add(capped(1, 0, 2, 40), capped(1, 1, 2, 40))
	w.baseFee(1)
	w.stands(2, "p")
}

// A drain reads each account. It sees that the account was delegated meanwhile.
func TestDrainSeesTheDelegation(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(0, 1, 2), tx(0, 2, 2))
	w.set(0, func(a *Account) { a.Delegated = true })
	require.Len(t, w.drain(Budget{}).Transactions(), 1)
	w.stands(0, "lkk")
}
