package txpool_test

import (
	"cmp"
	"context"
	"errors"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/txpool"
)

// bookkeeper is a naive model of a session. It searches all transactions for
// each next one.
type bookkeeper struct {
	txs     []*types.Transaction // in the pool, in the order of arrival
	score   func(txpool.Candidate) int64
	baseFee *big.Int
	budget  txpool.Budget
	gas     uint64
	bytes   uint64
	count   int
	taken   []*types.Transaction
	aside   map[common.Address]bool
	unfit   map[common.Address]bool // did not fit when it had its turn
	current *types.Transaction
}

// senderOf is Config.Sender of these tests. The recipient names the sender.
func senderOf(tx *types.Transaction) (common.Address, error) { return *tx.To(), nil }

// heads returns the next transaction of each sender that is not put aside, the
// best first: the highest priority, then the earliest arrival.
func (m *bookkeeper) heads() (heads []*types.Transaction) {
	next := make(map[common.Address]uint64)
	for _, tx := range m.taken {
		next[*tx.To()]++
	}
	for _, tx := range m.txs {
		from := *tx.To()
		if tx.Nonce() == next[from] && !m.aside[from] && (!m.unfit[from] || m.fits(tx)) && tx.GasFeeCapIntCmp(m.baseFee) >= 0 {
			heads = append(heads, tx)
		}
	}
	slices.SortStableFunc(heads, func(a, b *types.Transaction) int {
		return -cmp.Compare(m.priority(a), m.priority(b))
	})
	return heads
}

func (m *bookkeeper) priority(tx *types.Transaction) int64 {
	c := txpool.Candidate{Tx: tx, Tip: tx.EffectiveGasTipValue(m.baseFee).Uint64(), Size: tx.Size()}
	return m.score(c)
}

// fits reports whether a transaction may start.
func (m *bookkeeper) fits(tx *types.Transaction) bool {
	return tx.Gas() <= m.budget.Gas-m.gas && (m.budget.Bytes == 0 || tx.Size() <= m.budget.Bytes-m.bytes)
}

// next returns the transaction that a session must return. A sender whose next
// transaction has its turn and does not fit is put aside, until it replaces the
// transaction by one that fits.
func (m *bookkeeper) next() *types.Transaction {
	if m.current != nil {
		m.used(m.current.Gas(), m.current.Size())
	}
	if m.budget.Count > 0 && m.count >= m.budget.Count || m.gas+gas > m.budget.Gas || m.budget.Bytes > 0 && m.bytes >= m.budget.Bytes {
		return nil
	}
	for {
		heads := m.heads()
		if len(heads) == 0 {
			return nil
		}
		tx := heads[0]
		if m.fits(tx) {
			delete(m.unfit, *tx.To())
			m.take(tx)
			return tx
		}
		m.unfit[*tx.To()] = true
	}
}

func (m *bookkeeper) take(tx *types.Transaction) {
	m.current = tx
	m.taken = append(m.taken, tx)
}

func (m *bookkeeper) used(gas, bytes uint64) {
	m.gas += gas
	m.bytes += bytes
	m.count++
	m.current = nil
}

// dismiss is Fail and Later. Only the former removes the transaction from the
// pool.
func (m *bookkeeper) dismiss(drop bool) {
	m.aside[*m.current.To()] = true
	m.taken = m.taken[:len(m.taken)-1]
	if drop {
		m.txs = slices.DeleteFunc(m.txs, func(tx *types.Transaction) bool { return tx == m.current })
	}
	m.current = nil
}

// twins are two pools that get the same calls, and the model.
type twins struct {
	now      time.Time
	pools    [2]*txpool.Pool
	sessions [2]*txpool.Session
	model    *bookkeeper
}

const twinSenders = 5

func newTwins(t *rapid.T) *twins {
	w := &twins{now: time.Unix(1_800_000_000, 0), model: &bookkeeper{
		score:   func(c txpool.Candidate) int64 { return int64(c.Tip >> 1) },
		baseFee: big.NewInt(rapid.Int64Range(0, 3).Draw(t, "base fee") * gwei),
		aside:   make(map[common.Address]bool),
		unfit:   make(map[common.Address]bool),
	}}
	cfg := txpool.DefaultConfig(chainID)
	cfg.Sender = senderOf
	if rapid.Bool().Draw(t, "score") {
		w.model.score = func(c txpool.Candidate) int64 { return int64(c.Tip/gwei) - int64(c.Size/20) }
		cfg.Score = w.model.score
	}
	cfg.Now = func() time.Time { return w.now }
	cfg.MinGasPrice, cfg.FloorWindow = 0, 0
	for i := range w.pools {
		p, err := txpool.New(cfg, txpool.StateFunc(func(common.Address) (txpool.Account, error) {
			return txpool.Account{Balance: *uint256.NewInt(1e18)}, nil
		}))
		require.NoError(t, err)
		p.Reset(txpool.Head{BaseFee: w.model.baseFee})
		w.pools[i] = p
	}
	return w
}

// add adds a transaction to the pools and the model, perhaps behind a gap. If
// replace is set, it may take the place of the sender's last one.
func (w *twins) add(t *rapid.T, replace bool) {
	from := common.Address{1 + byte(rapid.IntRange(0, twinSenders-1).Draw(t, "sender"))}
	next := uint64(0)
	for _, tx := range w.model.txs {
		if *tx.To() == from {
			next = max(next, tx.Nonce()+1)
		}
	}
	first := next
	if replace && next > 0 {
		first--
	}
	tip := rapid.Int64Range(0, 5).Draw(t, "tip")
	tx := types.NewTx(&types.DynamicFeeTx{
		ChainID: chainID, To: &from, Nonce: first + rapid.Uint64Range(0, 2).Draw(t, "nonce"),
		Gas: rapid.SampledFrom([]uint64{gas, 2 * gas, 10 * gas}).Draw(t, "gas"), Data: make([]byte, rapid.SampledFrom([]int{0, 0, 50}).Draw(t, "data")),
		GasTipCap: big.NewInt(tip * gwei), GasFeeCap: big.NewInt((tip + rapid.Int64Range(0, 3).Draw(t, "more")) * gwei),
	})
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "seconds")) * time.Second)
	errs := [2]error{w.pools[0].Add(tx), w.pools[1].Add(tx)}
	require.Equal(t, errs[0] == nil, errs[1] == nil)
	if errs[0] != nil {
		return // little gas for its data, or a replacement that pays too little
	}
	w.model.txs = slices.DeleteFunc(w.model.txs, func(old *types.Transaction) bool {
		return *old.To() == from && old.Nonce() == tx.Nonce()
	})
	w.model.txs = append(w.model.txs, tx)
}

// answer gives a drawn answer for the transaction that Next returned.
func (w *twins) answer(t *rapid.T) {
	tx := w.model.current
	each := func(f func(*txpool.Session)) {
		for _, s := range w.sessions {
			f(s)
		}
	}
	switch rapid.SampledFrom([]string{"used", "used", "used", "none", "fail", "later"}).Draw(t, "answer") {
	case "used":
		use := rapid.Uint64Range(gas, tx.Gas()).Draw(t, "use")
		size := rapid.Uint64Range(1, tx.Size()).Draw(t, "size")
		each(func(s *txpool.Session) { s.Used(use, size) })
		w.model.used(use, size)
	case "fail":
		each(func(s *txpool.Session) { s.Fail(errors.New("it failed")) })
		w.model.dismiss(true)
	case "later":
		each(func(s *txpool.Session) { s.Later() })
		w.model.dismiss(false)
	}
}

// A session returns what a naive model returns, for any transactions, budgets,
// answers and newcomers: the best next transaction of all senders that may
// start. Two equal pools return the same (T3).
func TestSessionsAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTwins(t)
		for range rapid.IntRange(0, 20).Draw(t, "transactions") {
			w.add(t, true)
		}
		w.model.budget = txpool.Budget{
			Gas:   rapid.Uint64Range(1, 40*gas).Draw(t, "budget"),
			Bytes: rapid.SampledFrom([]uint64{0, 0, 100, 500}).Draw(t, "bytes"),
			Count: rapid.IntRange(0, 12).Draw(t, "count"),
		}
		for i, p := range w.pools {
			w.sessions[i] = p.Build(context.Background(), w.model.budget)
		}
		for newcomers := 8; ; {
			want := w.model.next()
			for i, s := range w.sessions {
				requireSame(t, w, want, s.Next(), i)
			}
			if want == nil && newcomers == 0 {
				break
			}
			if want != nil {
				w.answer(t)
			}
			if newcomers > 0 && (want == nil || rapid.IntRange(0, 3).Draw(t, "newcomer") == 0) {
				newcomers--
				w.add(t, true)
			}
		}
		for i, s := range w.sessions {
			lease, err := s.Seal()
			require.NoError(t, err)
			require.Equal(t, hashesOf(w.model.taken), hashesOf(lease.Transactions()))
			require.NoError(t, w.pools[i].Check())
			require.NoError(t, s.Commit())
			require.NoError(t, w.pools[i].Check())
		}
	})
}

func requireSame(t *rapid.T, w *twins, want, got *types.Transaction, pool int) {
	if want == got {
		return
	}
	describe := func(tx *types.Transaction) any {
		if tx == nil {
			return nil
		}
		return map[string]any{"sender": tx.To()[0], "nonce": tx.Nonce(), "tip": tx.EffectiveGasTipValue(w.model.baseFee), "gas": tx.Gas()}
	}
	t.Fatalf("Next of pool %d returned %v, want %v after %d transactions", pool, describe(got), describe(want), len(w.model.taken))
}
