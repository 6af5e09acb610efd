package mempool_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/mempool"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/txpool"
)

// hooked is a state with a function that is called before each read.
type hooked struct {
	*state
	before func(common.Address)
}

func (h hooked) Account(address common.Address) (txpool.Account, error) {
	h.before(address)
	return h.state.Account(address)
}

// newOpened returns a rollup whose pool has a changed configuration and state.
func newOpened(t *testing.T, change func(*txpool.Config, *hooked)) *payments {
	s := &hooked{&state{nonces: make(map[common.Address]uint64)}, func(common.Address) {}}
	cfg := txpool.DefaultConfig(chainID)
	if change != nil {
		change(&cfg, s)
	}
	pool, err := mempool.New(cfg, s, nil)
	require.NoError(t, err)
	return &payments{pool, s.state}
}

// hooks are the functions of a host that the pool calls. Each calls f first.
var hooks = map[string]func(c *txpool.Config, s *hooked, f func()){
	"State":   func(_ *txpool.Config, s *hooked, f func()) { s.before = func(common.Address) { f() } },
	"Observe": func(c *txpool.Config, _ *hooked, f func()) { c.Observe = func(txpool.Event) { f() } },
	"Sender": func(c *txpool.Config, _ *hooked, f func()) {
		c.Sender = func(tx *types.Transaction) (common.Address, error) { f(); return types.Sender(signer, tx) }
	},
	"ExtraCost": func(c *txpool.Config, _ *hooked, f func()) {
		c.ExtraCost = func(*types.Transaction) *uint256.Int { f(); return nil }
	},
	"Precheck": func(c *txpool.Config, _ *hooked, f func()) {
		c.Precheck = func(*types.Transaction) error { f(); return nil }
	},
	"Score":  func(c *txpool.Config, _ *hooked, f func()) { c.Score = func(txpool.Candidate) int64 { f(); return 1 } },
	"Now":    func(c *txpool.Config, _ *hooked, f func()) { c.Now = func() time.Time { f(); return time.Now() } },
	"Logger": func(c *txpool.Config, _ *hooked, f func()) { c.Logger = slog.New(handler{f}) },
}

// handler is a slog.Handler that calls a function for each message.
type handler struct{ f func() }

func (handler) Enabled(context.Context, slog.Level) bool    { return true }
func (h handler) Handle(context.Context, slog.Record) error { h.f(); return nil }
func (h handler) WithAttrs([]slog.Attr) slog.Handler        { return h }
func (h handler) WithGroup(string) slog.Handler             { return h }

// TestHostPanics: a function of the host panics at any of its calls, in an addition, a proposal, an
// applied or an undone block. The call can be repeated, or the pool takes no more: then a restart
// follows the log. Either way no accepted transaction is lost, and the state has no block twice.
func TestHostPanics(t *testing.T) {
	for name, hook := range hooks {
		bubble.Run(t, func(t *testing.T) {
			for n := 1; ; n++ {
				m, left := newMachine(t), 0
				m.open = func(c *txpool.Config, s *hooked) {
					hook(c, s, func() {
						if left--; left == 0 {
							panic("the host is broken")
						}
					})
				}
				m.restart()
				left = n
				m.survive()
				if left > 0 {
					require.Greater(t, n, 1, "%s was never called", name)
					return // it has panicked at every call
				}
			}
		})
	}
}

// survive adds three transactions, puts two into a block, and undoes it. It repeats each call that
// panics, as a builder does, and restarts when the pool takes no more.
func (m *machine) survive() {
	m.t.Helper()
	var b builder.Block[batch]
	for _, user := range []string{"alice", "bob", "carol"} {
		m.again(func() error {
			err := m.add(user, 0)
			if errors.Is(err, txpool.ErrAlreadyKnown) {
				return nil // it was accepted before the panic
			}
			return err
		})
	}
	m.again(func() (err error) {
		b.Body, b.Root, err = m.Propose(m.t.Context(), 1)
		return err
	})
	b.Number, b.PreRoot = 1, m.Root()
	m.follow(func(r *payments) error { return r.Apply(m.t.Context(), b) })
	require.Equal(m.t, b.Root, m.Root())
	m.follow(func(r *payments) error { return r.Undo(m.t.Context(), b) })
	require.Equal(m.t, b.PreRoot, m.Root())
	require.Equal(m.t, 3, m.Size())
	require.NoError(m.t, m.Check())
	m.restart()
	require.Equal(m.t, 3, m.Size())
}

// again makes a call, and makes it again after a panic.
func (m *machine) again(call func() error) {
	m.t.Helper()
	if !m.panics(func() { require.NoError(m.t, call()) }) {
		return
	}
	require.NoError(m.t, m.Check())
	require.NoError(m.t, call())
}

// follow appends a change of the state to the log and makes it. After a panic the pool takes no
// more, and a new process follows the log.
func (m *machine) follow(change func(*payments) error) {
	m.t.Helper()
	m.log = append(m.log, change)
	if !m.panics(func() { require.NoError(m.t, change(m.payments)) }) {
		return
	}
	require.ErrorIs(m.t, m.add("dave", 0), mempool.ErrPanic)
	require.ErrorIs(m.t, m.Undone(1, txpool.Block{}, nil), mempool.ErrPanic, "the state is not restored twice")
	m.restart()
}

// panics calls f, and reports whether the host has panicked.
func (m *machine) panics(f func()) (panicked bool) {
	defer func() {
		if r := recover(); r != nil {
			panicked = true
		}
	}()
	f()
	return false
}

// applied returns a rollup with one applied block, which has a transaction of alice.
func applied(t *testing.T, change func(*txpool.Config, *hooked)) (*payments, builder.Block[batch]) {
	r := newOpened(t, change)
	require.NoError(t, r.Recovered(t.Context(), func(...[]byte) error { return nil }))
	require.NoError(t, r.Admit(t.Context(), pay("alice", 0)))
	txs, root, err := r.Propose(t.Context(), 1)
	require.NoError(t, err)
	b := builder.Block[batch]{Number: 1, PreRoot: r.Root(), Root: root, Body: txs}
	require.NoError(t, r.Apply(t.Context(), b))
	return r, b
}

// TestSenderFailsInUndo: a transaction of an undone block whose sender the host cannot name now is
// held aside, and waits again when the host can.
func TestSenderFailsInUndo(t *testing.T) {
	var fails atomic.Bool
	r, b := applied(t, func(c *txpool.Config, _ *hooked) {
		c.Sender = func(tx *types.Transaction) (common.Address, error) {
			if fails.Load() {
				return common.Address{}, errors.New("the key server is away")
			}
			return types.Sender(signer, tx)
		}
	})
	fails.Store(true)
	require.NoError(t, r.Undo(t.Context(), b))
	require.Equal(t, b.PreRoot, r.Root())
	require.Len(t, r.Held(), 1)
	fails.Store(false)
	r.CleanupExpired()
	require.Equal(t, 1, r.Stats().Pending)
	require.NoError(t, r.Check())
}

// TestHungAddition: an addition whose read of the state hangs holds up neither a block that is
// undone nor other additions.
func TestHungAddition(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		hang := make(chan struct{})
		var hangs atomic.Pointer[common.Address]
		r := newOpened(t, func(_ *txpool.Config, s *hooked) {
			s.before = func(address common.Address) {
				if who := hangs.Load(); who != nil && *who == address {
					<-hang
				}
			}
		})
		require.NoError(t, r.Recovered(t.Context(), func(...[]byte) error { return nil }))
		require.NoError(t, r.Admit(t.Context(), pay("alice", 0)))
		txs, root, err := r.Propose(t.Context(), 1)
		require.NoError(t, err)
		b := builder.Block[batch]{Number: 1, PreRoot: r.Root(), Root: root, Body: txs}
		require.NoError(t, r.Apply(t.Context(), b))

		var tx types.Transaction
		require.NoError(t, tx.UnmarshalBinary(pay("hung", 0)))
		from, err := types.Sender(signer, &tx)
		require.NoError(t, err)
		hangs.Store(&from)
		ended := make(chan error, 1)
		go func() { ended <- r.Add(&tx) }()
		synctest.Wait()
		require.NoError(t, r.Undo(t.Context(), b))
		require.Equal(t, 1, r.Stats().Pending, "the transaction of the block is back")
		require.NoError(t, r.Admit(t.Context(), pay("bob", 0)))
		close(hang)
		require.NoError(t, <-ended)
		require.Equal(t, 3, r.Stats().Pending)
		require.NoError(t, r.Check())
	})
}
