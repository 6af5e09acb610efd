package txpool

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// model is a naive pool beside a real one, for all property tests. It knows the
// things that users, observers and the chain can see: answers, events and blocks. A
// random host, [wild] or [orderly], moves both, and the model compares them:
//
//   - send adds transactions. The answers must be true (I11), and none takes a place
//     that it may not take (I1).
//   - verify finds each acknowledged transaction in exactly one place (T5).
//   - next takes a transaction of a session. A search of all transactions must find
//     the same one.
//   - sameContent compares a pool with the one that its records restore.
//
// The dice decide: rapid, which shortens a run that fails, or a seed.
type model struct {
	*world
	dice
	senders  int
	fates    map[common.Hash]*fate
	arrivals int
	deaf     bool  // the process can end before it delivers an event
	failed   error // shown by an event
	session  *naive
	saves    func() // nil: keep
}

// fate is the knowledge of the model about a transaction.
type fate struct {
	tx       *types.Transaction
	arrival  int  // number of its admission
	acked    bool // the sender knows that the pool has it
	inside   bool // by its events
	held     bool // held aside, by the answers of the pool
	left     int  // number of events since it was last in the pool that say that it left
	returned bool // by Reset or Restore, as not in the pool
	back     bool // it came back once, so that no cap may drop it
	block    bool // it is in a block
	rejected bool // the host has rejected it
}

func newModel(t tester, d dice, changes ...func(*Config)) *model {
	m := &model{dice: d, senders: senders, fates: make(map[common.Hash]*fate)}
	named := func(c *Config) {
		c.Sender = func(tx *types.Transaction) (common.Address, error) { return *tx.To(), nil }
	}
	m.world = newWorld(t, append([]func(*Config){named, observed(m.observe)}, changes...)...)
	return m
}

// dice decides what a random host does.
type dice interface {
	// roll returns a number from 0 to n-1. A test that fails shows it with its name.
	roll(n int, name string) int
}

// rapidly are dice that rapid controls, so that a failing run becomes short. Small
// numbers are more frequent.
type rapidly struct{ *rapid.T }

func (d rapidly) roll(n int, what string) int { return rapid.IntRange(0, n-1).Draw(d.T, what) }

// seeded are dice for many short runs.
type seeded struct{ *rand.Rand }

func (d seeded) roll(n int, _ string) int { return d.IntN(n) }

// one returns whether a roll of n is 0.
func (m *model) one(n int, what string) bool { return m.roll(n, what) == 0 }

// pick returns one of some values.
func pick[T any](d dice, what string, all ...T) T { return all[d.roll(len(all), what)] }

// bare makes an unsigned transaction of sender i, whom the recipient names.
func bare(i int, nonce uint64, tip, feeCap int64, gas uint64, value int64, zeros int) *types.Transaction {
	to := addr(i)
	return types.NewTx(&types.DynamicFeeTx{
		ChainID: chainID, Nonce: nonce, GasTipCap: gweis(tip), GasFeeCap: gweis(feeCap), Gas: gas, To: &to, Value: gweis(value), Data: make([]byte, zeros),
	})
}

func (m *model) fate(hash common.Hash) *fate {
	if m.fates[hash] == nil {
		m.fates[hash] = new(fate)
	}
	return m.fates[hash]
}

// observe follows the events: each transaction is admitted once and leaves once
// (I11), and one that came back is dropped by no cap (T5).
func (m *model) observe(e Event) {
	if m.deaf {
		return
	}
	f := m.fate(e.Tx.Hash())
	f.tx = e.Tx
	gone := e.Kind == Dropped || e.Kind == Replaced
	switch {
	case e.Admitted == f.inside && !(gone && f.held), e.Kind == Dropped && e.Reason == nil:
		m.failed = fmt.Errorf("I11: %v (admitted %v, reason %v) of nonce %d, which is in the pool: %v", e.Kind, e.Admitted, e.Reason, e.Tx.Nonce(), f.inside)
	case gone && f.back && (errors.Is(e.Reason, ErrPoolFull) || errors.Is(e.Reason, ErrSenderLimit)):
		m.failed = fmt.Errorf("T5: nonce %d had come back, and was dropped by a cap: %w", e.Tx.Nonce(), e.Reason)
	}
	if e.Admitted {
		m.arrivals++
		f.arrival = m.arrivals
		f.here()
	}
	f.inside = !gone && e.Kind != Included
	if gone {
		f.left++
		f.held = false
	}
	if e.Kind == Replaced && f.back {
		m.fate(e.By).back = true
	}
}

// here is called for a transaction that the pool has, or has again.
func (f *fate) here() { f.left, f.returned, f.held = 0, false, false }

// send adds transactions that are in no block, one of them perhaps as a private one,
// or several in a batch. The answers must be true.
func (m *model) send(txs ...*types.Transaction) {
	txs = slices.DeleteFunc(txs, func(tx *types.Transaction) bool { return m.fate(tx.Hash()).block })
	for _, tx := range txs {
		m.fate(tx.Hash()).tx = tx
	}
	switch {
	case len(txs) > 1:
		errs := m.AddAll(txs)
		m.save()
		for i, err := range errs {
			m.answered(txs[i], err)
		}
	case len(txs) == 1:
		tx, status, add := txs[0], m.Status(txs[0].Hash()), m.Add
		if m.one(8, "public") {
			add = m.AddPrivate
		}
		err := add(tx)
		m.save()
		m.answered(tx, err)
		require.True(m.t, err != nil || status == StatusUnknown, "Add of a transaction that is %v", status)
		require.True(m.t, !errors.Is(err, ErrAlreadyKnown) || status != StatusUnknown, "Add of an unknown transaction said %v", err)
		stored := err == nil || status != StatusUnknown && status != StatusHeld
		require.Equal(m.t, stored, m.Get(tx.Hash()) != nil, "I11: Add said %v", err)
		m.placeTaken(tx, err)
	}
}

// answered notes the answer for a transaction.
func (m *model) answered(tx *types.Transaction, err error) {
	f := m.fate(tx.Hash())
	if err == nil {
		f.acked, f.back, f.rejected = true, false, false
	}
}

// placeTaken checks that in the limits of a sender no transaction behind a gap
// takes the place of the next one, which can run (I1). A sender above its limit,
// because transactions came back, makes no way.
func (m *model) placeTaken(tx *types.Transaction, err error) {
	a, cfg := m.core.accounts[*tx.To()], m.core.cfg
	if a == nil || tx.Nonce() != a.next() {
		return
	}
	stay := 0
	for _, l := range a.txs {
		if l.locked || l.exempt {
			stay++
		}
	}
	in := a.inFlight()
	limited := errors.Is(err, ErrSenderLimit) && in+stay < cfg.MaxPerSender && len(a.txs) <= cfg.MaxPerSender
	if errors.Is(err, ErrDelegatedGap) || errors.Is(err, ErrDelegatedLimit) && in < cfg.MaxDelegated || limited {
		require.FailNow(m.t, "I1", "refused with %d in line: %v", in, err)
	}
}

// told notes what Reset and Restore say of transactions.
func (m *model) told(all []Displaced) {
	for _, d := range all {
		require.NotNil(m.t, d.Tx)
		require.Error(m.t, d.Err)
		f := m.fate(d.Tx.Hash())
		switch {
		case d.Held:
			f.held = true
		case f.left == 0:
			f.returned = true
		}
	}
}

// cameBack notes that transactions came back from a block, and are
// exempt from now on.
func (m *model) cameBack(txs []*types.Transaction) {
	for _, tx := range txs {
		m.fate(tx.Hash()).back = true
	}
}

// enter notes that transactions are in a block, and leave that they are not any
// more.
func (m *model) enter(txs []*types.Transaction) {
	for _, tx := range txs {
		m.fate(tx.Hash()).block = true
	}
}

func (m *model) leave(txs []*types.Transaction) {
	for _, tx := range txs {
		f := m.fate(tx.Hash())
		f.block = false
		f.here()
	}
	m.cameBack(txs)
}

// verify checks the invariants, and that each acknowledged transaction is in
// exactly one place: in the pool, in a block, or gone, with a departure.
func (m *model) verify() {
	m.check()
	require.NoError(m.t, m.failed)
	locked := 0
	if m.session != nil {
		locked = len(m.session.Transactions())
	}
	require.Equal(m.t, locked, m.Stats().Locked, "transactions of the session")
	for hash, f := range m.fates {
		status := m.Status(hash)
		if status == StatusHeld {
			f.here()
			f.held = true
		}
		d, departed := m.Departure(hash)
		told := f.left > 0 || f.returned
		if m.deaf {
			told = departed
			require.True(m.t, !f.acked || m.accounted(hash), "T5: nonce %d is lost: %+v", f.tx.Nonce(), d)
		} else {
			require.Equal(m.t, f.inside, status != StatusUnknown && status != StatusHeld, "I11: by its events a transaction is in the pool: %v", f.inside)
		}
		places := 0
		for _, there := range []bool{status != StatusUnknown, f.block, told} {
			if there {
				places++
			}
		}
		switch {
		case !f.acked, m.deaf:
		case places != 1, f.left > 1, f.left == 1 && f.returned:
			require.FailNow(m.t, "T5", "nonce %d is %v; in a block: %v; left by %d events; returned: %v; departed: %v", f.tx.Nonce(), status, f.block, f.left, f.returned, departed)
		case told != departed, told && d.Kind == Dropped && d.Reason == nil:
			require.FailNow(m.t, "T5", "nonce %d has left: %v; its departure: %+v", f.tx.Nonce(), told, d)
		}
	}
}

// accounted reports whether a transaction is in the pool, in a block, or has left for
// a reason that is true, or whether this holds for the one that replaced it. It is
// for hosts that make the pool drop none.
func (m *model) accounted(hash common.Hash) bool {
	f := m.fate(hash)
	d, departed := m.Departure(hash)
	if departed && d.Kind == Replaced {
		return m.accounted(d.By)
	}
	return m.Status(hash) != StatusUnknown || f.block || f.rejected || departed && f.tx.Nonce() < m.accounts.get(*f.tx.To()).Nonce
}

// naive is a session with a model of it.
type naive struct {
	*Session
	cancel     context.CancelFunc
	baseFee    uint64
	used       Budget // of the budget
	last       *types.Transaction
	aside      map[common.Address]bool
	offered    map[common.Hash]bool
	uncompared bool // a transaction was not compared
}

// begin begins a session.
func (m *model) begin(b Budget) *naive {
	ctx, cancel := context.WithCancel(context.Background())
	n := &naive{
		Session: m.Build(ctx, b), cancel: cancel, baseFee: m.Stats().BaseFee,
		aside: make(map[common.Address]bool), offered: make(map[common.Hash]bool),
	}
	m.session = n
	return n
}

// has reports whether the session has a transaction.
func (n *naive) has(tx *types.Transaction) bool {
	return tx != nil && slices.ContainsFunc(n.Transactions(), func(other *types.Transaction) bool { return other.Hash() == tx.Hash() })
}

// answer counts the use of the last transaction.
func (n *naive) answer(gas, bytes uint64) {
	if n.has(n.last) {
		n.used.Count++
		n.used.Gas += gas
		n.used.Bytes += bytes
	}
	n.last = nil
}

// dismiss gives the last transaction back. The session takes no other one of its
// sender.
func (n *naive) dismiss(answer func()) {
	n.aside[*n.last.To()] = true
	n.last = nil
	answer()
}

// putAside notes that the host has rejected a transaction of the session.
func (m *model) putAside(tx *types.Transaction) {
	if m.session != nil {
		m.session.aside[*tx.To()] = true
	}
}

// save appends the changes of the pool to the tape.
func (m *model) save() {
	if m.saves != nil {
		m.saves()
		return
	}
	m.keep()
}

// next takes the next transaction of a session: one that can run, is offered once, and
// comes after all earlier ones of its sender. If the session is the only one, it is
// the best of all that fit.
func (m *model) next(n *naive) *types.Transaction {
	if n.last != nil {
		n.answer(n.last.Gas(), n.last.Size())
	}
	running := m.core.session == n.Session && !n.over && n.ctx.Err() == nil
	n.uncompared = n.uncompared || m.deaf || !m.synced()
	var want *types.Transaction
	if running {
		want = m.best(n)
	}
	n.last = n.Next()
	switch tx := n.last; {
	case !running:
		require.Nil(m.t, tx, "a session that has ended")
	case !n.uncompared && want == nil:
		require.Nil(m.t, tx)
	case !n.uncompared:
		require.NotNil(m.t, tx, "want nonce %d", want.Nonce())
		require.Equal(m.t, want.Hash(), tx.Hash(), "have nonce %d, want nonce %d of %v", tx.Nonce(), want.Nonce(), want.To())
	}
	if n.last != nil {
		m.offer(n)
	}
	return n.last
}

// offer checks a transaction that a session returned.
func (m *model) offer(n *naive) {
	hash := n.last.Hash()
	require.False(m.t, n.offered[hash], "nonce %d is offered again", n.last.Nonce())
	n.offered[hash] = true
	require.Equal(m.t, StatusLocked, m.Status(hash))
	a := m.core.all[hash].account
	next := a.Nonce
	for _, l := range a.txs {
		if l.nonce < a.Nonce {
			continue // used, but still locked
		}
		require.True(m.t, l.nonce == next && l.locked, "nonce %d is offered before nonce %d", n.last.Nonce(), next)
		if next++; l.hash() == hash {
			return
		}
	}
}

// synced reports whether the pool knows the state of all its senders.
func (m *model) synced() bool {
	return len(m.broken) == 0 && !slices.ContainsFunc(m.core.list, func(a *account) bool { return a.differs(m.accounts.get(a.address)) })
}

// best returns the transaction that a session must take next.
func (m *model) best(n *naive) (best *types.Transaction) {
	b := n.budget
	if b.Count > 0 && n.used.Count >= b.Count || b.Gas > 0 && n.used.Gas+txGas > b.Gas || b.Bytes > 0 && n.used.Bytes >= b.Bytes {
		return nil
	}
	heads := make(map[common.Address]*fate)
	for hash, f := range m.fates {
		if m.Status(hash) == StatusPending {
			if h := heads[*f.tx.To()]; h == nil || f.tx.Nonce() < h.tx.Nonce() {
				heads[*f.tx.To()] = f
			}
		}
	}
	score, arrival := int64(math.MinInt64), 0
	for from, f := range heads {
		fits := (b.Gas == 0 || f.tx.Gas()+n.used.Gas <= b.Gas) && (b.Bytes == 0 || f.tx.Size()+n.used.Bytes <= b.Bytes)
		if n.aside[from] || !fits || wei(f.tx.GasFeeCap()) < n.baseFee || !m.inOrder(n, f.tx) {
			continue
		}
		if s := m.score(f.tx); best == nil || s > score || s == score && f.arrival < arrival {
			best, score, arrival = f.tx, s, f.arrival
		}
	}
	return best
}

func (m *model) score(tx *types.Transaction) int64 {
	base := m.Stats().BaseFee
	tip := min(wei(tx.GasTipCap()), wei(tx.GasFeeCap())-base)
	if m.cfg.Score != nil {
		return m.cfg.Score(Candidate{Tx: tx, Tip: tip, Size: tx.Size()})
	}
	return int64(tip)
}

// inOrder reports whether a session has no later transaction of a sender.
func (m *model) inOrder(n *naive, tx *types.Transaction) bool {
	return !slices.ContainsFunc(n.Transactions(), func(other *types.Transaction) bool { return *other.To() == *tx.To() && other.Nonce() > tx.Nonce() })
}

// reopen ends the process and begins another one from the tape.
func (m *model) reopen(changes ...func(*Config)) {
	for _, f := range m.fates {
		f.inside = false
	}
	m.session = nil
	m.told(m.restart(changes...).Displaced)
}

// sameContent compares a pool with the one that was restored from its records.
func sameContent(old, restored *Pool) error {
	for _, a := range old.core.list {
		for _, e := range a.txs {
			if e.nonce < a.Nonce {
				continue // used, but locked
			}
			if have := restored.Status(e.hash()); have == StatusUnknown {
				return fmt.Errorf("the restart lost nonce %d of %v, locked %v", e.nonce, a.address, e.locked)
			}
		}
	}
	for _, a := range restored.core.list {
		for _, e := range a.txs {
			if old.Status(e.hash()) == StatusUnknown {
				return fmt.Errorf("the restart brought back nonce %d of %v", e.nonce, a.address)
			}
		}
	}
	return nil
}
