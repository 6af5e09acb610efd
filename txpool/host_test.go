package txpool_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/txpool"
)

type tape struct {
	mu      sync.Mutex
	records [][]byte
	fail    bool
	keep    int // maximum number of records of a failing write that it keeps
	calls   int
	bytes   int
}

func (m *tape) Append(records ...[]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	m.bytes = 0
	for _, r := range records {
		m.bytes += len(r)
	}
	failing := m.fail
	if failing {
		records = records[:min(m.keep, len(records))]
	}
	for _, r := range records {
		m.records = append(m.records, bytes.Clone(r))
	}
	if failing {
		return errors.New("no disk")
	}
	return nil
}

func (m *tape) replay(f func([]byte) error) error {
	for _, r := range m.records {
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

// host is a chain, a clock, and a journal.
type host struct {
	t     testing.TB
	mu    sync.Mutex
	chain map[common.Address]txpool.Account
	now   time.Time
	tape  *tape
	cfg   txpool.Config
	pool  *txpool.Pool
}

func newHost(t testing.TB, change func(*txpool.Config)) *host {
	h := &host{t: t, chain: map[common.Address]txpool.Account{}, now: time.Unix(1_800_000_000, 0), tape: &tape{}}
	cfg := txpool.DefaultConfig(chainID)
	cfg.FloorWindow, cfg.SurgeSlope = 0, 0
	cfg.Now = func() time.Time { return h.now }
	cfg.Journal = h.tape
	if change != nil {
		change(&cfg)
	}
	h.cfg = cfg
	p, err := txpool.New(cfg, h)
	require.NoError(t, err)
	h.pool = p
	return h
}

func (h *host) Account(a common.Address) (txpool.Account, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x, ok := h.chain[a]; ok {
		return x, nil
	}
	return txpool.Account{Balance: *uint256.NewInt(1e18)}, nil
}

func (h *host) nonce(i int, n uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.chain[address(i)] = txpool.Account{Nonce: n, Balance: *uint256.NewInt(1e18)}
}

// restart kills the pool and restores it from its journal.
func (h *host) restart() txpool.Restored {
	p, err := txpool.New(h.cfg, h)
	require.NoError(h.t, err)
	r, err := p.Restore(h.tape.replay)
	require.NoError(h.t, err)
	h.pool = p
	return r
}

// If the bundle of a private transaction fails, the transaction is back and
// still private.
func TestPrivateStaysPrivate(t *testing.T) {
	h := newHost(t, nil)
	tx := transfer(0, 0, 5, 0)
	require.NoError(t, h.pool.AddPrivate(tx))
	require.NoError(t, h.pool.Drain(txpool.Budget{}).Commit())
	block := []txpool.Block{{Transactions: []*types.Transaction{tx}}}
	h.pool.Reset(txpool.Head{Reverted: block}) // the bundle failed
	require.Equal(t, txpool.StatusPending, h.pool.Status(tx.Hash()))
	require.Empty(t, h.pool.Candidates(), "a private transaction is shown")
}

// A block that holds nil is the host's mistake: it costs nothing but that transaction.
func TestNilInBlocks(t *testing.T) {
	for name, head := range map[string]txpool.Head{
		"included": {Included: []txpool.Block{{Transactions: []*types.Transaction{nil}}}},
		"reverted": {Reverted: []txpool.Block{{Transactions: []*types.Transaction{nil}}}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, nil)
			require.NotPanics(t, func() { h.pool.Reset(head) })
			require.NoError(t, h.pool.Add(transfer(0, 0, 5, 0)), "it goes on")
		})
	}
}

// TestPanickingSender: if Config.Sender panics for a transaction of a reverted block, Reset does
// not, and the other transactions of the block return.
func TestPanickingSender(t *testing.T) {
	bad := transfer(0, 0, 5, 0)
	var panics bool
	h := newHost(t, func(c *txpool.Config) {
		signer := types.LatestSignerForChainID(c.ChainID)
		c.Sender = func(tx *types.Transaction) (common.Address, error) {
			if panics && tx.Hash() == bad.Hash() {
				panic("x")
			}
			return types.Sender(signer, tx)
		}
	})
	panics = true
	var displaced []txpool.Displaced
	block := txpool.Block{Transactions: []*types.Transaction{bad, transfer(1, 0, 5, 0)}}
	require.NotPanics(t, func() { displaced = h.pool.Reset(txpool.Head{Reverted: []txpool.Block{block}}) })
	require.Equal(t, 1, h.pool.Stats().Pending)
	require.Len(t, displaced, 1)
	require.True(t, displaced[0].Held)
	panics = false
	h.pool.Reset(txpool.Head{})
	require.Equal(t, 2, h.pool.Stats().Pending, "the transaction that was held aside")
}

// If an observer panics, a background goroutine delivers the later events.
func TestPanickingObserver(t *testing.T) {
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			seen := make(chan txpool.Kind, 10)
			h := newHost(t, func(c *txpool.Config) {
				c.MaxPending = 2
				c.Observe = func(e txpool.Event) {
					seen <- e.Kind
					if e.Kind == txpool.Dropped {
						panic("x")
					}
				}
			})
			require.NoError(t, h.pool.Add(transfer(0, 0, 5, 0)))
			require.NoError(t, h.pool.Add(transfer(1, 0, 5, 0)))
			require.Panics(t, func() { _ = h.pool.Add(transfer(2, 0, 9, 0)) })
			for _, want := range []txpool.Kind{txpool.Pending, txpool.Pending, txpool.Dropped, txpool.Pending} {
				require.Equal(t, want, <-seen)
			}
		})
	}
}
