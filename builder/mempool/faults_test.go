package mempool_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/jamq/jamq/builder/buildertest"
	"github.com/jamq/jamq/builder/mempool"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/repeat"
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

// newHooked returns a rollup whose pool calls functions of a faulty host.
func newHooked(t *testing.T, read func(common.Address), observe func(txpool.Event)) *payments {
	s := &state{nonces: make(map[common.Address]uint64)}
	cfg := txpool.DefaultConfig(chainID)
	cfg.Observe = observe
	pool, err := mempool.New(cfg, hooked{s, read}, nil)
	require.NoError(t, err)
	return &payments{pool, s}
}

// TestHostPanics: a panic of the host's state or observer costs that call. In Apply and Undo it
// comes when the state has changed already, so that neither can be repeated.
func TestHostPanics(t *testing.T) {
	for name, every := range map[string][2]int64{"state": {31, 0}, "observer": {0, 13}, "both": {17, 7}} {
		t.Run(name, func(t *testing.T) {
			c := rules(t, nil)
			c.Operation = func(i int) []byte { return pay(fmt.Sprint("user ", i), 0) }
			c.New = func() builder.Rollup[batch] {
				var reads, events atomic.Int64
				panics := func(n *atomic.Int64, every int64) {
					if every > 0 && n.Add(1)%every == 0 {
						panic("by chance")
					}
				}
				return newHooked(t, func(common.Address) { panics(&reads, every[0]) }, func(txpool.Event) { panics(&events, every[1]) })
			}
			_, problem := buildertest.Find(t, c, 20)
			require.NoError(t, problem)
		})
	}
}

// TestHooksPanic: a panic of a function in txpool.Config costs that call, also while a block is
// applied or undone.
func TestHooksPanic(t *testing.T) {
	for name, hook := range map[string]func(*txpool.Config, func()){
		"Sender": func(c *txpool.Config, panics func()) {
			c.Sender = func(tx *types.Transaction) (common.Address, error) { panics(); return types.Sender(signer, tx) }
		},
		"ExtraCost": func(c *txpool.Config, panics func()) {
			c.ExtraCost = func(*types.Transaction) *uint256.Int { panics(); return nil }
		},
		"DASize": func(c *txpool.Config, panics func()) {
			c.DASize = func(tx *types.Transaction) uint64 { panics(); return tx.Size() }
		},
		"Precheck": func(c *txpool.Config, panics func()) {
			c.Precheck = func(*types.Transaction) error { panics(); return nil }
		},
		"Score": func(c *txpool.Config, panics func()) { c.Score = func(txpool.Candidate) int64 { panics(); return 1 } },
		"Now":   func(c *txpool.Config, panics func()) { c.Now = func() time.Time { panics(); return time.Now() } },
	} {
		t.Run(name, func(t *testing.T) {
			c := rules(t, nil)
			c.Operation = func(i int) []byte { return pay(fmt.Sprint("user ", i), 0) }
			c.New = func() builder.Rollup[batch] {
				var calls atomic.Int64
				return newWith(t, func(cfg *txpool.Config) {
					hook(cfg, func() {
						if calls.Add(1)%17 == 0 {
							panic("by chance")
						}
					})
				})
			}
			_, problem := buildertest.Find(t, c, uint64(repeat.Times(6, 40)))
			require.NoError(t, problem)
		})
	}
}

// newWith returns a rollup whose pool has a changed configuration.
func newWith(t *testing.T, change func(*txpool.Config)) *payments {
	s := &state{nonces: make(map[common.Address]uint64)}
	cfg := txpool.DefaultConfig(chainID)
	change(&cfg)
	pool, err := mempool.New(cfg, s, nil)
	require.NoError(t, err)
	return &payments{pool, s}
}

// applied returns a rollup with one applied block, which has a transaction of alice.
func applied(t *testing.T, change func(*txpool.Config)) (*payments, builder.Block[batch]) {
	r := newWith(t, change)
	require.NoError(t, r.Recovered(t.Context(), func() error { return nil }))
	require.NoError(t, r.Admit(t.Context(), pay("alice", 0)))
	txs, root, err := r.Propose(t.Context(), 1)
	require.NoError(t, err)
	b := builder.Block[batch]{Number: 1, PreRoot: r.Root(), Root: root, Body: txs}
	require.NoError(t, r.Apply(t.Context(), b))
	return r, b
}

// TestSenderFailsInUndo: a host that cannot name the senders of an undone block makes Undo fail
// before anything has changed. The next call succeeds, and the transaction is back.
func TestSenderFailsInUndo(t *testing.T) {
	var fails atomic.Int64
	r, b := applied(t, func(c *txpool.Config) {
		c.Sender = func(tx *types.Transaction) (common.Address, error) {
			switch fails.Add(-1) {
			case 2, 1:
				panic("the key server is away")
			case 0:
				return common.Address{}, errors.New("the key server is away")
			}
			return types.Sender(signer, tx)
		}
	})
	for _, n := range []int64{3, 1} { // two panics, and an error
		fails.Store(n)
		require.ErrorContains(t, r.Undo(t.Context(), b), "the key server is away")
		require.Equal(t, b.Root, r.Root(), "nothing has changed")
	}
	require.NoError(t, r.Undo(t.Context(), b))
	require.Equal(t, b.PreRoot, r.Root())
	require.Equal(t, 1, r.Stats().Pending)
	require.NoError(t, r.Check())
}

// TestScorePanics: a transaction whose score is unknown goes last, and the proposal has the others.
func TestScorePanics(t *testing.T) {
	var panics atomic.Bool
	r := newWith(t, func(c *txpool.Config) {
		c.Score = func(txpool.Candidate) int64 {
			if panics.CompareAndSwap(true, false) {
				panic("by chance")
			}
			return 1
		}
	})
	require.NoError(t, r.Recovered(t.Context(), func() error { return nil }))
	require.NoError(t, r.Admit(t.Context(), pay("alice", 0)))
	require.NoError(t, r.Admit(t.Context(), pay("bob", 0)))
	panics.Store(true)
	txs, _, err := r.Propose(t.Context(), 1)
	require.NoError(t, err)
	require.False(t, panics.Load())
	require.Len(t, txs, 2)
}

// handler is a slog.Handler that panics at some messages.
type handler struct {
	slog.Handler
	panics atomic.Bool
}

func (h *handler) Enabled(context.Context, slog.Level) bool { return true }

func (h *handler) Handle(context.Context, slog.Record) error {
	if h.panics.CompareAndSwap(true, false) {
		panic("the log is full")
	}
	return nil
}

// TestUndoIsRepeated: if Undo panics when the state is restored already, its repetition does not
// restore the state a second time, and the transaction is back.
func TestUndoIsRepeated(t *testing.T) {
	h := new(handler)
	r, b := applied(t, func(c *txpool.Config) { c.Logger = slog.New(h) })
	h.panics.Store(true)
	require.Panics(t, func() { _ = r.Undo(t.Context(), b) })
	require.Equal(t, b.PreRoot, r.Root())
	require.NoError(t, r.Undo(t.Context(), b))
	account, err := r.Account(senderOf(t, b.Body[0]))
	require.NoError(t, err)
	require.Zero(t, account.Nonce, "the state is restored once")
	require.Equal(t, 1, r.Stats().Pending)
	require.NoError(t, r.Check())

	// A later block is undone as usual.
	txs, root, err := r.Propose(t.Context(), 1)
	require.NoError(t, err)
	b = builder.Block[batch]{Number: 1, PreRoot: r.Root(), Root: root, Body: txs}
	require.NoError(t, r.Apply(t.Context(), b))
	require.NoError(t, r.Undo(t.Context(), b))
	require.Equal(t, b.PreRoot, r.Root())
}

func senderOf(t *testing.T, tx *types.Transaction) common.Address {
	from, err := types.Sender(signer, tx)
	require.NoError(t, err)
	return from
}

// TestHungAddition: an addition whose read of the state hangs holds up neither a block that is
// undone nor other additions.
func TestHungAddition(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		hang := make(chan struct{})
		var hangs atomic.Pointer[common.Address]
		r := newHooked(t, func(address common.Address) {
			if who := hangs.Load(); who != nil && *who == address {
				<-hang
			}
		}, nil)
		require.NoError(t, r.Recovered(t.Context(), func() error { return nil }))
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
