package txpool

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// TestI7Delegated: an account whose balance others can spend has few
// transactions in the pool, and can always replace them.
func TestI7Delegated(t *testing.T) {
	w := newWorld()
	w.set(0, func(a *Account) { a.Delegated = true })
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 2))
	refuse(t, p, tx(0, 1, 2), ErrDelegatedLimit, "in-flight transaction limit reached for delegated accounts: address "+addr(0).Hex()+" has 1, limit 1")
	add(t, p, tx(0, 0, 4))
	p = newPool(t, w, func(c *Config) { c.MaxDelegated = 3 })
	add(t, p, tx(0, 0, 2), tx(0, 1, 2), tx(0, 2, 2))
	refuse(t, p, tx(0, 3, 2), ErrDelegatedLimit)
}

// An authority is throttled by an authorization that could apply, inside a transaction that can
// run: and by nothing less.
func TestI7Authorities(t *testing.T) {
	old := newWorld()
	old.nonce(1, 3)
	for name, c := range map[string]struct {
		carrier   *types.Transaction
		throttled bool
	}{
		"applies":             {setCode(0, 0, 2, delegate(1, 3)), true},
		"any chain":           {setCode(0, 0, 2, anyChain(1, 3)), true},
		"after its first":     {setCode(0, 0, 2, delegate(1, 4)), true},
		"used up":             {setCode(0, 0, 2, delegate(1, 2)), false},
		"far ahead":           {setCode(0, 0, 2, delegate(1, 9)), false},
		"of another chain":    {setCode(0, 0, 2, otherChain(1, 3)), false},
		"no signature":        {setCode(0, 0, 2, types.SetCodeAuthorization{Nonce: 3}), false},
		"behind a gap":        {setCode(0, 1, 2, delegate(1, 3)), false},
		"somebody else's key": {setCode(0, 0, 2, delegate(2, 3)), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, old, nil)
			add(t, p, c.carrier, tx(1, 3, 2))
			if c.throttled {
				refuse(t, p, tx(1, 4, 2), ErrDelegatedLimit)
				add(t, p, tx(1, 3, 3))
				require.NoError(t, p.Remove(c.carrier.Hash()))
			}
			add(t, p, tx(1, 4, 2), tx(1, 5, 2))
		})
	}
}

func anyChain(i int, nonce uint64) types.SetCodeAuthorization { return onChain(i, nonce, 0) }

func otherChain(i int, nonce uint64) types.SetCodeAuthorization { return onChain(i, nonce, 1) }

func onChain(i int, nonce, chain uint64) types.SetCodeAuthorization {
	auth, err := types.SignSetCode(keys[i], types.SetCodeAuthorization{ChainID: *uint256.NewInt(chain), Nonce: nonce})
	if err != nil {
		panic(err)
	}
	return auth
}

// An account with many transactions cannot be delegated by one of them, or by a stranger's.
func TestI7AuthorityReserved(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	add(t, p, tx(1, 0, 2), tx(1, 1, 2))
	refuse(t, p, setCode(0, 0, 2, delegate(1, 0)), ErrAuthorityReserved, "authority already reserved: address "+addr(1).Hex()+" has 2 transactions, limit 1")
	refuse(t, p, setCode(1, 2, 2, delegate(1, 3)), ErrAuthorityReserved)
	add(t, p, setCode(0, 0, 2, delegate(1, 9))) // it could not apply
	add(t, p, setCode(2, 0, 2, delegate(2, 1)))
	refuse(t, p, tx(2, 1, 2), ErrDelegatedLimit)
	add(t, p, setCode(2, 0, 4, delegate(2, 1)))
}

// The same holds for one that was behind a gap when the other transactions came.
func TestI7Promotion(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	carrier := setCode(0, 1, 2, delegate(1, 0))
	add(t, p, carrier, tx(0, 2, 2), tx(1, 0, 2), tx(1, 1, 2), tx(0, 0, 2))
	require.Equal(t, "p-q", statuses(p, 0, 3))
	require.Equal(t, "pp", statuses(p, 1, 2))
	require.ErrorIs(t, p.Add(carrier), ErrAuthorityReserved)
}

// A sweep costs the pool one transaction per delegated account.
func TestI7Sweep(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, tiny(16, 16))
	for i := range 8 {
		w.set(i, func(a *Account) { a.Delegated = true })
		for n := range uint64(4) {
			_ = p.Add(tx(i, n, 2))
		}
	}
	require.Equal(t, 8, p.Size())
	for i := range 8 {
		w.set(i, func(a *Account) { a.Balance = uint256.Int{} })
	}
	p.Reset(Head{Included: []Block{{}}, Touched: []common.Address{addr(0), addr(1)}})
	require.Equal(t, 6, p.Size())
	require.Empty(t, p.Drain(Budget{}).Transactions(), "the others are found out by the drain")
	require.Zero(t, p.Size())
}

// An account that fills a gap before many does not get around its limit by that.
func TestI7GapIsFilled(t *testing.T) {
	for _, carrierFirst := range []bool{true, false} {
		p := newPool(t, newWorld(), nil)
		carrier := setCode(2, 0, 20, delegate(1, 2))
		admitted := 0
		if carrierFirst {
			add(t, p, carrier)
		}
		for n := uint64(1); n < 16; n++ {
			if p.Add(tx(1, n, 20)) == nil {
				admitted++
			}
		}
		if carrierFirst {
			require.Equal(t, 1, admitted)
		} else {
			add(t, p, carrier)
		}
		require.NoError(t, p.Check())
		add(t, p, tx(1, 0, 20))
		pending, queued := p.ContentFrom(addr(1))
		require.Len(t, pending, 1)
		require.Empty(t, queued, "they could close up")
		require.NoError(t, p.Check())
	}
}

// Many carriers of one authorization cost no more than one each, and the many nonces that one key
// can sign for no more than the account's own chain.
func TestI7ManyCarriers(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { tiny(64, 64)(c) })
	for i := 2; i < 20; i++ {
		add(t, p, setCode(i, 0, 2, delegate(1, 0), delegate(1, 0), delegate(1, uint64(100+i))))
	}
	require.Equal(t, 18, p.core.authorizations[addr(1)][0])
	require.Len(t, p.core.authorizations[addr(1)], 19)
	add(t, p, tx(1, 0, 2))
	refuse(t, p, tx(1, 1, 2), ErrDelegatedLimit)
	for i := 2; i < 20; i++ {
		require.NoError(t, p.Remove(setCode(i, 0, 2, delegate(1, 0), delegate(1, 0), delegate(1, uint64(100+i))).Hash()))
		require.NoError(t, p.Check())
	}
	require.Empty(t, p.core.authorizations)
}

// TestI8AuthoritiesLast: the pool recovers no authorizations of a transaction
// that cannot pay or has a wrong nonce.
func TestI8AuthoritiesLast(t *testing.T) {
	w := newWorld()
	w.balance(0, 1)
	w.nonce(2, 5)
	p := newPool(t, w, nil)
	for _, carrier := range []*types.Transaction{setCode(0, 0, 2, delegate(1, 0)), setCode(2, 4, 2, delegate(1, 0)), setCode(3, 1000, 2, delegate(1, 0))} {
		one := []candidate{{tx: carrier}}
		p.examine(one, p.clock())
		require.Error(t, one[0].err)
		require.Nil(t, one[0].entry.authorities)
		_, err := p.core.decide(newAccount(one[0].from, w.get(one[0].from)), one[0].entry)
		require.EqualError(t, err, one[0].err.Error())
	}
}

// A commit lets a later transaction of a delegated sender have its turn, even
// if the places of those before it stay the same.
func TestDelegatedTurnAfterCommit(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, func(c *Config) { c.MaxDelegated = 3 })
	for nonce := range uint64(4) {
		add(t, p, tx(0, nonce, 5))
	}
	w.set(0, func(a *Account) { a.Delegated = true })
	p.Reset(Head{Touched: []common.Address{addr(0)}})
	last := tx(0, 3, 5).Hash()
	require.Equal(t, StatusParked, p.Status(last))
	require.NoError(t, p.Drain(Budget{Count: 1}).Commit())
	require.Equal(t, StatusPending, p.Status(last))
	require.NoError(t, p.Check())
}

// A transaction behind a gap does not take the place of the next one of a
// delegated sender, as geth sees it too: it refuses the gapped one, or drops it
// if it came before the delegation.
func TestI1DelegatedGap(t *testing.T) {
	gapped := []*types.Transaction{tx(1, 4, 2), tx(1, 5, 2)}
	third := func() *world {
		w := newWorld()
		w.nonce(1, 3)
		return w
	}
	delegated := func(w *world) { w.set(1, func(a *Account) { a.Delegated = true }) }
	for name, become := range map[string]func(w *world, p *Pool){
		"by the state": func(w *world, p *Pool) {
			delegated(w)
			p.Reset(Head{Included: []Block{{}}, Touched: []common.Address{addr(1)}})
		},
		"by another sender":    func(_ *world, p *Pool) { add(t, p, setCode(0, 0, 2, delegate(1, 3))) },
		"by the next, its own": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := third()
			p := newPool(t, w, nil)
			add(t, p, gapped...)
			next := tx(1, 3, 2)
			if become == nil {
				next = setCode(1, 3, 2, delegate(1, 4))
			} else {
				become(w, p)
			}
			add(t, p, next)
			require.Equal(t, "p", statuses(p, 1, 4)[3:])
			require.NoError(t, p.Check())
			refuse(t, p, tx(1, 4, 9), ErrDelegatedLimit)
			for _, old := range gapped {
				require.Nil(t, p.Get(old.Hash()))
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		w := third()
		delegated(w)
		p := newPool(t, w, nil)
		refuse(t, p, gapped[1], ErrDelegatedGap, "gapped-nonce tx from delegated accounts: address "+addr(1).Hex()+", tx: 5 next: 3")
		add(t, p, tx(1, 3, 2))
		refuse(t, p, gapped[1], ErrDelegatedLimit)
	})
	t.Run("within the limit", func(t *testing.T) {
		w := third()
		delegated(w)
		p := newPool(t, w, func(c *Config) { c.MaxDelegated = 3 })
		refuse(t, p, gapped[0], ErrDelegatedGap)
		add(t, p, tx(1, 3, 2))
		add(t, p, gapped...)
		refuse(t, p, tx(1, 6, 2), ErrDelegatedLimit)
	})
}
