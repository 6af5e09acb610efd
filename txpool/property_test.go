package txpool

import (
	"errors"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"pgregory.net/rapid"
)

// machine does random things to a small pool.
type machine struct {
	world  *world
	pool   *Pool
	leases []*Lease
	inside map[common.Hash]bool // by the events
	// committed are blocks that can be reverted, the oldest first.
	committed []Block
	failed    error
}

func newMachine(t *rapid.T) *machine {
	m := &machine{world: newWorld(), inside: make(map[common.Hash]bool)}
	cfg := DefaultConfig(chainID)
	cfg.Now = m.world.clock
	cfg.MaxPending = rapid.IntRange(4, 16).Draw(t, "pending")
	cfg.MaxQueued = rapid.IntRange(1, 8).Draw(t, "queued")
	cfg.MaxParked = rapid.IntRange(1, 8).Draw(t, "parked")
	cfg.MaxPerSender = rapid.IntRange(2, 8).Draw(t, "per sender")
	cfg.MaxDelegated = rapid.IntRange(1, 4).Draw(t, "delegated")
	cfg.FloorWindow = rapid.IntRange(0, 3).Draw(t, "window")
	if rapid.Bool().Draw(t, "small") {
		cfg.MaxBytes, cfg.MaxTxSize = 9000, 6000
	}
	if rapid.Bool().Draw(t, "score") {
		cfg.Score = byTipAndSize
	}
	cfg.Observe = m.observe
	p, err := New(cfg, m.world)
	if err != nil {
		t.Fatal(err)
	}
	m.pool = p
	return m
}

// observe checks that every transaction is admitted once and leaves once (I11).
func (m *machine) observe(e Event) {
	if e.Kind == FloorChanged {
		return
	}
	hash, left := e.Tx.Hash(), e.Kind == Replaced || e.Kind == Dropped || e.Kind == Included
	if e.Admitted == m.inside[hash] || e.Kind == Dropped && e.Reason == nil {
		m.failed = fmt.Errorf("%v (admitted %v, reason %v) of %s, which is in the pool: %v", e.Kind, e.Admitted, e.Reason, hash, m.inside[hash])
	}
	m.inside[hash] = !left
}

const senders = 5

func sender(t *rapid.T) int { return rapid.IntRange(0, senders-1).Draw(t, "sender") }

// next is the sender's next nonce.
func (m *machine) next(i int) uint64 {
	if nonce, known := m.pool.NextNonce(addr(i)); known {
		return nonce
	}
	return m.world.get(addr(i)).Nonce
}

// add adds a transaction and checks that the answer is true (I11), and that a refused one changed
// nothing.
func (m *machine) add(t *rapid.T, tx *types.Transaction) {
	known := m.pool.Get(tx.Hash()) != nil
	err := m.pool.Add(tx)
	if stored := m.pool.Get(tx.Hash()) != nil; stored != (err == nil || known) {
		t.Fatalf("Add said %v, stored: %v", err, stored)
	}
	if known != errors.Is(err, ErrAlreadyKnown) {
		t.Fatalf("Add of a known transaction (%v) said %v", known, err)
	}
	m.placeTaken(t, tx, err)
}

// placeTaken checks that in the limits of a sender no transaction behind a gap
// takes the place of the next one, which can run (I1). A sender above its limit,
// because transactions came back, makes no way.
func (m *machine) placeTaken(t *rapid.T, tx *types.Transaction, err error) {
	from, _ := types.Sender(signer, tx)
	a, cfg := m.pool.core.accounts[from], m.pool.core.cfg
	if a == nil || tx.Nonce() != a.next() {
		return
	}
	leased := 0
	for _, l := range a.txs {
		if l.lease != nil || l.exempt {
			leased++
		}
	}
	switch in := a.inFlight(); {
	case errors.Is(err, ErrDelegatedGap):
		t.Fatalf("I1: the next one is refused: %v", err)
	case errors.Is(err, ErrDelegatedLimit) && in < cfg.MaxDelegated, errors.Is(err, ErrSenderLimit) && in+leased < cfg.MaxPerSender && len(a.txs) <= cfg.MaxPerSender:
		t.Fatalf("I1: refused with %d in line: %v", in, err)
	}
}

func price(t *rapid.T) int64 { return rapid.Int64Range(1, 20).Draw(t, "gwei") }

// The actions of an attacker, of users and of the host.
func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"normal": func(t *rapid.T) { i := sender(t); m.add(t, tx(i, m.next(i), price(t))) },
		"future": func(t *rapid.T) {
			i := sender(t)
			m.add(t, tx(i, m.next(i)+rapid.Uint64Range(1, 4).Draw(t, "gap"), price(t)))
		},
		"parent": func(t *rapid.T) { // fills a gap, if there is one, or replaces
			i := sender(t)
			m.add(t, tx(i, m.world.get(addr(i)).Nonce, price(t)))
		},
		"child": func(t *rapid.T) { // rich, of a poor parent
			i := sender(t)
			m.add(t, tx(i, m.next(i), 1))
			m.add(t, tx(i, m.next(i), 20))
		},
		"capped": func(t *rapid.T) {
			i, tip := sender(t), price(t)
			m.add(t, capped(i, m.next(i), tip, tip+rapid.Int64Range(0, 3).Draw(t, "more")))
		},
		"overdraft": func(t *rapid.T) {
			i := sender(t)
			account := m.world.get(addr(i))
			value := new(big.Int).Sub(account.Balance.ToBig(), big.NewInt(rapid.Int64Range(0, 200*gwei*txGas).Draw(t, "left")))
			if value.Sign() < 0 {
				value = new(big.Int)
			}
			fee := big.NewInt(price(t) * gwei)
			m.add(t, sign(i, &types.LegacyTx{Nonce: m.next(i), GasPrice: fee, Gas: txGas, To: &common.Address{1}, Value: value}))
		},
		"replacement": func(t *rapid.T) {
			i := sender(t)
			pending, queued := m.pool.ContentFrom(addr(i))
			all := append(pending, queued...)
			if len(all) == 0 {
				t.Skip("nothing to replace")
			}
			old := rapid.SampledFrom(all).Draw(t, "old")
			m.add(t, tx(i, old.Nonce(), price(t)))
		},
		"set code": func(t *rapid.T) {
			i, j := sender(t), sender(t)
			nonce := m.world.get(addr(j)).Nonce + rapid.Uint64Range(0, 2).Draw(t, "ahead")
			m.add(t, setCode(i, m.next(i)+rapid.Uint64Range(0, 1).Draw(t, "gap"), uint64(price(t)), delegate(j, nonce)))
		},
		"padded": func(t *rapid.T) {
			i := sender(t)
			list := types.AccessList{{Address: common.Address{1}, StorageKeys: make([]common.Hash, rapid.IntRange(0, 6).Draw(t, "keys"))}}
			m.add(t, sign(i, &types.AccessListTx{ChainID: chainID, Nonce: m.next(i), GasPrice: big.NewInt(price(t) * gwei), Gas: 60_000, To: &common.Address{1}, AccessList: list}))
		},
		"batch": func(t *rapid.T) {
			var txs []*types.Transaction
			for range rapid.IntRange(1, 4).Draw(t, "size") {
				i := sender(t)
				txs = append(txs, tx(i, m.next(i)+rapid.Uint64Range(0, 2).Draw(t, "gap"), price(t)))
			}
			m.pool.AddAll(txs)
		},
		"lease": func(t *rapid.T) {
			m.leases = append(m.leases, m.pool.Drain(Budget{Count: rapid.IntRange(0, 5).Draw(t, "count")}))
		},
		"commit":  func(t *rapid.T) { m.commit(t) },
		"release": func(t *rapid.T) { _ = m.lease(t).Release() },
		"reject": func(t *rapid.T) {
			l := m.lease(t)
			if txs := l.Transactions(); len(txs) > 0 {
				tx := rapid.SampledFrom(txs).Draw(t, "tx")
				if err := l.Reject(tx.Hash(), errors.New("reverted")); err == nil && !errors.Is(m.pool.Add(tx), ErrQuarantined) {
					t.Fatal("I14: it came back")
				}
			}
		},
		"return": func(t *rapid.T) {
			l := m.lease(t)
			if txs := l.Transactions(); len(txs) > 0 {
				_ = l.Return(rapid.SampledFrom(txs).Draw(t, "tx").Hash())
			}
		},
		"remove": func(t *rapid.T) {
			if txs := m.pool.Candidates(); len(txs) > 0 {
				_ = m.pool.Remove(rapid.SampledFrom(txs).Draw(t, "tx").Hash())
			}
		},
		"drift": func(t *rapid.T) {
			i := sender(t)
			m.world.balance(i, rapid.Uint64Range(0, 40*txGas*gwei).Draw(t, "balance"))
			m.pool.Reset(Head{Touched: []common.Address{addr(i)}})
		},
		"foreign": func(t *rapid.T) { // another block moves a nonce
			i := sender(t)
			m.world.set(i, func(a *Account) { a.Nonce++; a.Delegated = rapid.Bool().Draw(t, "delegated") })
			m.pool.Reset(Head{})
		},
		"base fee": func(t *rapid.T) {
			m.pool.Reset(Head{BaseFee: big.NewInt(rapid.Int64Range(0, 8).Draw(t, "base fee") * gwei), Touched: []common.Address{}})
		},
		"empty block": func(t *rapid.T) { m.pool.Reset(Head{Included: []Block{{}}}) },
		"broken": func(t *rapid.T) {
			i := sender(t)
			m.world.broken[addr(i)] = errors.New("no disk")
			m.pool.Reset(Head{})
			delete(m.world.broken, addr(i))
		},
		"revert": m.revert,
		"time": func(t *rapid.T) {
			m.world.advance(time.Duration(rapid.IntRange(1, 40).Draw(t, "minutes")) * time.Minute)
			m.pool.CleanupExpired()
		},
		"": m.check,
	}
}

func (m *machine) lease(t *rapid.T) *Lease {
	if len(m.leases) == 0 {
		t.Skip("no lease")
	}
	return rapid.SampledFrom(m.leases).Draw(t, "lease")
}

// commit executes a lease's bundle and commits it. The state shows it, and the
// host calls Reset, now or later.
func (m *machine) commit(t *rapid.T) {
	l := m.lease(t)
	txs := l.Transactions()
	if l.Commit() != nil {
		return
	}
	if !rapid.Bool().Draw(t, "shown") {
		return
	}
	block := Block{Transactions: txs}
	for _, tx := range txs {
		from, _ := types.Sender(signer, tx)
		account := m.world.get(from)
		account.Nonce = max(account.Nonce, tx.Nonce()+1)
		var cost uint256.Int
		cost.SetFromBig(tx.Cost())
		if !account.Balance.Lt(&cost) {
			account.Balance.Sub(&account.Balance, &cost)
		}
		m.world.accounts[from] = account
	}
	m.committed = append(m.committed, block)
	m.pool.Reset(Head{Included: []Block{block}})
}

// revert takes the newest block back.
func (m *machine) revert(t *rapid.T) {
	if len(m.committed) == 0 {
		t.Skip("no block")
	}
	last := len(m.committed) - 1
	block := m.committed[last]
	m.committed = m.committed[:last]
	for _, tx := range block.Transactions {
		from, _ := types.Sender(signer, tx)
		account := m.world.get(from)
		account.Nonce = min(account.Nonce, tx.Nonce())
		account.Balance.Add(&account.Balance, uint256.MustFromBig(tx.Cost()))
		m.world.accounts[from] = account
	}
	for _, refusal := range m.pool.Reset(Head{Reverted: []Block{block}}) {
		if refusal.Err == nil || refusal.Tx == nil {
			t.Fatalf("refusal without reason: %+v", refusal)
		}
	}
}

func (m *machine) check(t *rapid.T) {
	if err := m.pool.Check(); err != nil {
		t.Fatal(err)
	}
	if m.failed != nil {
		t.Fatal("I11:", m.failed)
	}
	for hash, in := range m.inside {
		if in != (m.pool.Get(hash) != nil) {
			t.Fatalf("I11: by its events %s is in the pool: %v", hash, in)
		}
	}
	if got, want := len(m.pool.Candidates()), m.pool.core.ready.Len(); got != want {
		t.Fatalf("Pending has %d, want %d", got, want)
	}
}

// The invariants hold after every step of any sequence of calls on a small pool.
func TestInvariantsUnderRandomCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		t.Repeat(m.actions())
	})
}
