package txpool

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// Included transactions leave, whether or not the pool drained them. Other
// transactions with the same nonce leave too.
func TestResetIncluded(t *testing.T) {
	left := make(map[common.Hash]Kind)
	w := newWorld(t, observed(func(e Event) {
		if e.Kind == Included || e.Kind == Dropped {
			left[e.Tx.Hash()] = e.Kind
		}
	}))
	w.add(tx(0, 0, 2), tx(0, 1, 2), tx(1, 0, 2), tx(1, 1, 2))
	w.nonce(0, 1)
	w.nonce(1, 1)
	w.reset(Head{Included: []Block{blockOf(tx(0, 0, 2), tx(1, 0, 9))}, Touched: []common.Address{addr(0), addr(1)}})
	w.stands(0, "-p")
	w.stands(1, "-p")
	require.Equal(t, map[common.Hash]Kind{tx(0, 0, 2).Hash(): Included, tx(1, 0, 2).Hash(): Dropped}, left)
}

// A locked transaction that a block includes leaves, and the others of the session are free.
func TestResetIncludesLocked(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(0, 1, 2))
	s := w.drain(Budget{})
	w.include(blockOf(tx(0, 0, 2)))
	require.Empty(t, s.Transactions())
	w.stands(0, "-p")
}

// TestI12Reinjection: reverted transactions come back by the same rules, nonces first.
func TestI12Reinjection(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxQueued = 1 })
	w.add(tx(0, 0, 2), tx(0, 1, 2), tx(1, 0, 2))
	block := w.commit(Budget{Count: 3})
	w.include(block)
	w.add(chain(0, 2, 3, 2)...)
	// The block is undone. Sender 1's is overtaken by another one in the new chain.
	w.nonce(0, 0)
	refused := w.reset(Head{Reverted: []Block{block}, Included: []Block{blockOf(tx(1, 0, 7))}})
	w.stands(0, "ppppp") // the gap was not held against those behind it
	require.Len(t, refused, 1)
	require.Equal(t, tx(1, 0, 2).Hash(), refused[0].Tx.Hash())
	require.ErrorIs(t, refused[0].Err, ErrNonceTooLow)
}

// If a later block fails, the nonces of earlier ones stay used.
func TestRevertTheLast(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(0, 1, 2), tx(0, 2, 2))
	w.commit(Budget{Count: 1})
	last := w.commit(Budget{Count: 1})
	w.stands(0, "--p")
	require.Empty(t, w.fails(last.Transactions...))
	w.stands(0, "-pp")
	w.refuse(tx(0, 0, 9), ErrNonceTooLow)
}

// A block uses lower nonces of its senders too: a transaction with one leaves.
func TestIncludedUsesEarlierNonces(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9), tx(0, 1, 9))
	w.breaks(0) // the pool cannot read the new nonce
	w.include(blockOf(tx(0, 1, 9)))
	require.Zero(t, w.Size())
	require.ErrorIs(t, w.departed(tx(0, 0, 9)).Reason, ErrNonceTooLow)
}

// A transaction that is reverted and included in one call moved to another block.
func TestResetMovesBetweenBlocks(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(0, 1, 2))
	block := w.commit(Budget{Count: 1})
	require.Empty(t, w.reset(Head{Reverted: []Block{block}, Included: []Block{block}}))
	w.stands(0, "-p")
}

// The nonces of a reverted block are free again, also if its transactions do not come back. If the
// sender uses one, the transaction that is held aside leaves as replaced.
func TestRevertFreesNonces(t *testing.T) {
	refused := false
	w := newWorld(t, unless(func(*types.Transaction) bool { return refused }))
	old := tx(0, 0, 2)
	w.add(old)
	w.commit(Budget{})
	refused = true
	displaced := w.fails(old)
	require.Len(t, displaced, 1)
	require.True(t, displaced[0].Held)
	require.ErrorIs(t, displaced[0].Err, errTest)
	w.has(StatusHeld, old)
	require.Equal(t, displaced, w.Held())
	refused = false
	w.add(tx(0, 0, 3))
	w.stands(0, "p")
	displaced = w.reset(Head{})
	require.Len(t, displaced, 1)
	require.ErrorIs(t, displaced[0].Err, ErrReplaced)
	d := w.departed(old)
	require.Equal(t, Replaced, d.Kind)
	require.Equal(t, tx(0, 0, 3).Hash(), d.By)
	require.Empty(t, w.Held())
}

// A locked transaction whose nonce the state shows leaves no gap.
func TestUsedNonceInASession(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(0, 1, 2))
	s := w.drain(Budget{Count: 1})
	w.nonce(0, 1)
	w.observes(0)
	w.stands(0, "lp")
	s.Cancel()
	w.stands(0, "-p")
}

// A locked transaction stays locked whatever the state shows.
func TestStateLeavesLocked(t *testing.T) {
	for name, change := range map[string]func(*Account){
		"nonce":   func(a *Account) { a.Nonce = 1 },
		"balance": func(a *Account) { a.Balance.Clear() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.add(tx(0, 0, 10))
			s := w.drain(Budget{})
			w.set(0, change)
			w.observes(0)
			require.Len(t, s.Transactions(), 1)
			w.check()
		})
	}
}

// If the bundle of a private transaction fails, the transaction is back and
// still private.
func TestPrivateStaysPrivate(t *testing.T) {
	w := newWorld(t)
	tx := tx(0, 0, 5)
	w.addPrivate(tx)
	w.commit(Budget{})
	require.Empty(t, w.fails(tx))
	w.has(StatusPending, tx)
	require.Empty(t, offered(w), "a private transaction is shown")
}

// A block that holds nil is the host's mistake: it costs nothing but that transaction.
func TestNilInBlocks(t *testing.T) {
	for _, head := range []Head{{Included: []Block{blockOf(nil)}}, {Reverted: []Block{blockOf(nil)}}} {
		w := newWorld(t)
		require.NotPanics(t, func() { w.reset(head) })
		w.add(tx(0, 0, 5))
	}
}

// TestHostPanics: a function of the host panics at any of its calls. The panic comes out of the
// call of the pool, which holds no lock then, and succeeds if it is made again.
func TestHostPanics(t *testing.T) {
	for name, hook := range map[string]func(c *Config, f func()){
		"Observe": func(c *Config, f func()) { c.Observe = func(Event) { f() } },
		"Sender": func(c *Config, f func()) {
			c.Sender = func(tx *types.Transaction) (common.Address, error) { f(); return types.Sender(signer, tx) }
		},
		"ExtraCost": func(c *Config, f func()) { c.ExtraCost = func(*types.Transaction) *uint256.Int { f(); return nil } },
		"Precheck":  func(c *Config, f func()) { c.Precheck = func(*types.Transaction) error { f(); return nil } },
		"Score":     func(c *Config, f func()) { c.Score = func(Candidate) int64 { f(); return 1 } },
		"Now":       func(c *Config, f func()) { now := c.Now; c.Now = func() time.Time { f(); return now() } },
		"State":     nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			for n := 1; ; n++ {
				left := 0
				f := func() {
					if left--; left == 0 {
						panic(name)
					}
				}
				w := newWorld(t, func(c *Config) {
					if hook != nil {
						hook(c, f)
					}
				})
				if hook == nil {
					w.onRead = f
				}
				left = n
				w.survive()
				if left > 0 {
					require.Greater(t, n, 1, "%s was never called", name)
					return // it has panicked at every call
				}
			}
		})
	}
}

// survive makes a block of three transactions, and undoes it. Each call that panics is made
// again.
func (w *world) survive() {
	w.t.Helper()
	txs := []*types.Transaction{tx(0, 0, 5), tx(0, 1, 5), tx(1, 0, 5)}
	again := func(call func()) {
		w.t.Helper()
		defer func() {
			if recover() != nil {
				w.check()
				call()
			}
		}()
		call()
	}
	for _, tx := range txs {
		again(func() {
			// It may have been stored before the panic.
			if err := w.Add(tx); !errors.Is(err, ErrAlreadyKnown) {
				require.NoError(w.t, err)
			}
		})
	}
	again(func() { require.Len(w.t, w.drain(Budget{}).Transactions(), 3) })
	block := blockOf(txs...)
	w.nonce(0, 2)
	w.nonce(1, 1)
	again(func() { require.Empty(w.t, w.Reset(Head{Included: []Block{block}})) })
	require.Zero(w.t, w.Size())
	w.nonce(0, 0)
	w.nonce(1, 0)
	again(func() { require.Empty(w.t, w.Reset(Head{Reverted: []Block{block}})) })
	require.Equal(w.t, 3, w.Stats().Pending)
	w.check()
}

// TestSenderFails: a transaction of a reverted block whose sender the host cannot name now is held
// aside, and the others of the block return.
func TestSenderFails(t *testing.T) {
	bad := tx(0, 0, 5)
	var fails bool
	w := newWorld(t, func(c *Config) {
		c.Sender = func(tx *types.Transaction) (common.Address, error) {
			if fails && tx.Hash() == bad.Hash() {
				return common.Address{}, errTest
			}
			return types.Sender(signer, tx)
		}
	})
	fails = true
	displaced := w.reset(Head{Reverted: []Block{blockOf(bad, tx(1, 0, 5))}})
	require.Equal(t, 1, w.Stats().Pending)
	require.Len(t, displaced, 1)
	require.True(t, displaced[0].Held)
	require.ErrorIs(t, displaced[0].Err, ErrInvalidSender)
	fails = false
	w.reset(Head{})
	require.Equal(t, 2, w.Stats().Pending, "the transaction that was held aside")
}
