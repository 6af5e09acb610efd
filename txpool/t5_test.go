package txpool

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// promise is a host of the pool that remembers every transaction that the pool acknowledged. It
// knows where each must be from the pool's answers and events alone.
type promise struct {
	world  *world
	tape   *memory
	cfg    Config
	pool   *Pool
	leases []*Lease
	shows  bool // the state shows a block as soon as it is committed
	refuse bool // Precheck refuses everything that is odd

	queue []executed // committed blocks that can fail, the oldest first
	final map[common.Hash]bool

	acked    map[common.Hash]*types.Transaction
	gone     map[common.Hash]int  // events since it was last there
	returned map[common.Hash]bool // by Reset or Restore, as not in the pool
	back     map[common.Hash]bool // came back once: no cap may drop it
	failed   error
}

// executed is a block with the accounts before it.
type executed struct {
	block  Block
	before map[common.Address]Account
}

func newPromise(t *rapid.T) *promise {
	h := &promise{
		world: newWorld(), tape: new(memory), shows: rapid.Bool().Draw(t, "shows"),
		final: make(map[common.Hash]bool), acked: make(map[common.Hash]*types.Transaction),
		gone: make(map[common.Hash]int), returned: make(map[common.Hash]bool), back: make(map[common.Hash]bool),
	}
	for i := range senders {
		h.world.balance(i, 1e16)
	}
	h.cfg = DefaultConfig(chainID)
	h.cfg.Now, h.cfg.Journal, h.cfg.Observe = h.world.clock, h.tape, h.observe
	h.cfg.QuarantineTime = 0
	h.cfg.Precheck = func(tx *types.Transaction) error {
		if h.refuse && tx.Nonce()%2 == 1 {
			return errors.New("odd nonces are not taken now")
		}
		return nil
	}
	h.configure(t)
	h.pool = h.open(t)
	return h
}

// configure draws caps, which a restart may lower.
func (h *promise) configure(t *rapid.T) {
	h.cfg.MaxPending = rapid.IntRange(2, 12).Draw(t, "pending")
	h.cfg.MaxQueued = rapid.IntRange(1, 8).Draw(t, "queued")
	h.cfg.MaxParked = rapid.IntRange(1, 8).Draw(t, "parked")
	h.cfg.MaxPerSender = rapid.IntRange(1, 6).Draw(t, "per sender")
	h.cfg.MaxDelegated = rapid.IntRange(1, 2).Draw(t, "delegated")
	h.cfg.FloorWindow = rapid.IntRange(0, 2).Draw(t, "window")
	h.cfg.MinGasPrice = rapid.Uint64Range(1, 3).Draw(t, "least") * gwei
	h.cfg.BlockGasLimit = rapid.SampledFrom([]uint64{txGas, 100_000}).Draw(t, "gas limit")
}

func (h *promise) open(t *rapid.T) *Pool {
	p, err := New(h.cfg, h.world)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (h *promise) observe(e Event) {
	if e.Admitted && h.acked[e.Tx.Hash()] != nil {
		h.here(e.Tx.Hash()) // again, as one that a refused newcomer had displaced
	}
	if e.Kind != Dropped && e.Kind != Replaced {
		return
	}
	hash := e.Tx.Hash()
	h.gone[hash]++
	switch {
	case e.Kind == Dropped && e.Reason == nil:
		h.failed = fmt.Errorf("%s was dropped without a reason", hash)
	case h.back[hash] && (errors.Is(e.Reason, ErrPoolFull) || errors.Is(e.Reason, ErrSenderLimit)):
		h.failed = fmt.Errorf("%s had come back, and was dropped by a cap: %w", hash, e.Reason)
	}
	if e.Kind == Replaced && h.back[hash] {
		h.back[e.By] = true
	}
}

// here is called for a transaction that the pool has, or has again.
func (h *promise) here(hash common.Hash) {
	delete(h.gone, hash)
	delete(h.returned, hash)
}

func (h *promise) add(t *rapid.T, tx *types.Transaction) {
	if h.pool.Get(tx.Hash()) != nil || h.pool.Status(tx.Hash()) == StatusHeld || h.committed(tx.Hash()) {
		return
	}
	seen := h.gone[tx.Hash()]
	if err := h.pool.Add(tx); err != nil {
		if h.acked[tx.Hash()] != nil {
			h.gone[tx.Hash()] = seen // not acknowledged
		}
		return
	}
	h.acked[tx.Hash()] = tx
	h.here(tx.Hash())
	delete(h.back, tx.Hash()) // a newcomer again
}

func (h *promise) committed(hash common.Hash) bool {
	for _, b := range h.queue {
		for _, tx := range b.block.Transactions {
			if tx.Hash() == hash {
				return true
			}
		}
	}
	return h.final[hash]
}

func (h *promise) displaced(all []Displaced) {
	for _, d := range all {
		if d.Tx == nil || d.Err == nil {
			h.failed = fmt.Errorf("displaced without a reason: %+v", d)
			return
		}
		if hash := d.Tx.Hash(); !d.Held && h.gone[hash] == 0 {
			h.returned[hash] = true
		}
	}
}

func (h *promise) lease(t *rapid.T) (*Lease, []*types.Transaction) {
	if len(h.leases) == 0 {
		t.Skip("no lease")
	}
	i := rapid.IntRange(0, len(h.leases)-1).Draw(t, "lease")
	l := h.leases[i]
	h.leases = append(h.leases[:i:i], h.leases[i+1:]...)
	return l, l.Transactions()
}

func (h *promise) cameBack(txs []*types.Transaction) {
	for _, tx := range txs {
		h.back[tx.Hash()] = true
	}
}

// commit puts a lease into a block, which the state shows now or when it is final.
func (h *promise) commit(t *rapid.T) {
	l, txs := h.lease(t)
	if err := l.Commit(); err != nil {
		if errors.Is(err, ErrJournal) { // it is open still
			h.leases = append(h.leases, l)
		}
		return
	}
	b := executed{Block{Transactions: txs}, make(map[common.Address]Account)}
	for i := range senders {
		b.before[addr(i)] = h.world.get(addr(i))
	}
	h.queue = append(h.queue, b)
	if h.shows {
		h.show(txs)
		h.displaced(h.pool.Reset(Head{Included: []Block{b.block}}))
	}
}

func (h *promise) show(txs []*types.Transaction) {
	for _, tx := range txs {
		from, _ := types.Sender(signer, tx)
		account := h.world.get(from)
		account.Nonce = max(account.Nonce, tx.Nonce()+1)
		if cost := uint256.MustFromBig(tx.Cost()); !account.Balance.Lt(cost) {
			account.Balance.Sub(&account.Balance, cost)
		}
		h.world.accounts[from] = account
	}
}

// fail takes the newest blocks back: their bundles can never be accumulated.
func (h *promise) fail(t *rapid.T) {
	if len(h.queue) == 0 {
		t.Skip("no block")
	}
	first := rapid.IntRange(0, len(h.queue)-1).Draw(t, "first")
	var reverted []Block
	for _, b := range h.queue[first:] {
		reverted = append(reverted, b.block)
		h.cameBack(b.block.Transactions)
		for _, tx := range b.block.Transactions {
			h.here(tx.Hash())
		}
	}
	if h.shows {
		for a, account := range h.queue[first].before {
			h.world.accounts[a] = account
		}
	}
	h.queue = h.queue[:first]
	h.displaced(h.pool.Reset(Head{Reverted: reverted}))
}

func (h *promise) finalize(t *rapid.T) {
	if len(h.queue) == 0 {
		t.Skip("no block")
	}
	b := h.queue[0]
	h.queue = h.queue[1:]
	for _, tx := range b.block.Transactions {
		h.final[tx.Hash()] = true
	}
	if !h.shows {
		h.show(b.block.Transactions)
		h.displaced(h.pool.Reset(Head{Included: []Block{b.block}}))
	}
}

// restart ends the process and begins another, perhaps with other caps.
func (h *promise) restart(t *rapid.T) {
	h.tape.broken = nil
	if err := h.pool.writeDown(); err != nil { // lost with the process
		t.Fatal(err)
	}
	if rapid.Bool().Draw(t, "other caps") {
		h.configure(t)
	}
	open := len(h.leases)
	h.leases = nil
	h.pool = h.open(t)
	restored, err := h.pool.Restore(h.tape.replay)
	if err != nil && len(h.world.broken) > 0 { // a lease has a transaction of the account
		clear(h.world.broken)
		h.pool = h.open(t)
		restored, err = h.pool.Restore(h.tape.replay)
	}
	if err != nil || len(restored.Poisoned) > 0 {
		t.Fatal(err, restored.Poisoned)
	}
	h.displaced(restored.Displaced)
	h.leases = h.pool.Leases()
	if len(h.leases) > open {
		t.Fatalf("%d leases, want at most %d", len(h.leases), open)
	}
	if rapid.Bool().Draw(t, "dump") {
		fresh := new(memory)
		if err := h.pool.Rotate(fresh); err != nil {
			t.Fatal(err)
		}
		h.tape, h.cfg.Journal = fresh, fresh
	}
}

func (h *promise) actions() map[string]func(*rapid.T) {
	all := map[string]func(*rapid.T){
		"commit": h.commit, "fail": h.fail, "finalize": h.finalize, "restart": h.restart, "": h.check,
	}
	maps.Copy(all, h.ofUsers())
	maps.Copy(all, h.ofLeases())
	maps.Copy(all, h.ofTheWorld())
	return all
}

func (h *promise) ofUsers() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"add": func(t *rapid.T) {
			i := sender(t)
			next, known := h.pool.NextNonce(addr(i))
			if !known {
				next = h.world.get(addr(i)).Nonce
			}
			for n := range rapid.Uint64Range(1, 6).Draw(t, "run") {
				h.add(t, tx(i, next+n, price(t)))
			}
		},
		"gap": func(t *rapid.T) {
			i := sender(t)
			h.add(t, tx(i, h.world.get(addr(i)).Nonce+rapid.Uint64Range(0, 8).Draw(t, "ahead"), price(t)))
		},
		"big": func(t *rapid.T) { // needs the larger gas limit, and much of the balance
			i := sender(t)
			value := big.NewInt(rapid.Int64Range(0, 1e16).Draw(t, "value"))
			h.add(t, sign(i, &types.LegacyTx{Nonce: h.world.get(addr(i)).Nonce, GasPrice: weiOf(price(t)), Gas: 90_000, To: &common.Address{1}, Value: value}))
		},
		"set code": func(t *rapid.T) {
			i, j := sender(t), sender(t)
			h.add(t, setCode(i, h.world.get(addr(i)).Nonce, uint64(price(t)), delegate(j, h.world.get(addr(j)).Nonce)))
		},
	}
}

func (h *promise) ofLeases() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"drain": func(t *rapid.T) {
			h.leases = append(h.leases, h.pool.Drain(Budget{Count: rapid.IntRange(1, 6).Draw(t, "count")}))
		},
		"release": func(t *rapid.T) {
			l, txs := h.lease(t)
			h.cameBack(txs)
			_ = l.Release()
		},
		"reject": func(t *rapid.T) {
			l, txs := h.lease(t)
			h.leases = append(h.leases, l)
			if len(txs) > 0 {
				_ = l.Reject(txs[0].Hash(), errors.New("reverted"))
			}
		},
		"return": func(t *rapid.T) {
			l, txs := h.lease(t)
			h.leases = append(h.leases, l)
			if len(txs) > 0 {
				_ = l.Return(txs[len(txs)-1].Hash())
			}
		},
	}
}

func (h *promise) ofTheWorld() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"base fee": func(t *rapid.T) {
			h.displaced(h.pool.Reset(Head{BaseFee: big.NewInt(rapid.Int64Range(0, 12).Draw(t, "base fee") * gwei)}))
		},
		"balance": func(t *rapid.T) {
			i := sender(t)
			h.world.balance(i, rapid.Uint64Range(0, 1e16).Draw(t, "balance"))
			h.displaced(h.pool.Reset(Head{}))
		},
		"state":   func(t *rapid.T) { h.breakState(rapid.Bool().Draw(t, "broken"), sender(t)) },
		"journal": func(t *rapid.T) { h.breakJournal(rapid.Bool().Draw(t, "broken")) },
		"precheck": func(t *rapid.T) {
			h.refuse = rapid.Bool().Draw(t, "refuse")
			h.displaced(h.pool.Reset(Head{}))
		},
		"time": func(t *rapid.T) {
			h.world.advance(time.Duration(rapid.IntRange(0, 40).Draw(t, "minutes")) * time.Minute)
			for _, l := range h.leases {
				if !l.bundled && !h.world.clock().Before(l.Expires()) {
					h.cameBack(l.Transactions())
				}
			}
			h.pool.CleanupExpired()
		},
	}
}

func (h *promise) breakState(broken bool, i int) {
	delete(h.world.broken, addr(i))
	if broken {
		h.world.broken[addr(i)] = errors.New("no disk")
	}
}

func (h *promise) breakJournal(broken bool) {
	h.tape.broken = nil
	if broken {
		h.tape.broken = errors.New("no disk")
	}
}

// check finds each acknowledged transaction in exactly one place.
func (h *promise) check(t *rapid.T) {
	if err := h.pool.Check(); err != nil {
		t.Fatal(err)
	}
	if h.failed != nil {
		t.Fatal(h.failed)
	}
	for hash := range h.acked {
		pooled := h.pool.Status(hash) != StatusUnknown
		if h.pool.Status(hash) == StatusHeld {
			h.here(hash) // also if a newcomer that the journal refused had displaced it
		}
		told := h.gone[hash] > 0 || h.returned[hash]
		d, departed := h.pool.Departure(hash)
		switch committed := h.committed(hash); {
		case h.gone[hash] > 1 || h.gone[hash] == 1 && h.returned[hash]:
			t.Fatalf("%s has left by %d events, and returned: %v", hash, h.gone[hash], h.returned[hash])
		case told && (pooled || committed):
			t.Fatalf("%s has left by its events, and is in the pool (%v) or a block (%v)", hash, pooled, committed)
		case !told && pooled == committed:
			t.Fatalf("%s, which left by no event, is in the pool: %v; in a block: %v", hash, pooled, committed)
		case told && !departed, told && d.Kind == Dropped && d.Reason == nil:
			t.Fatalf("%s has left, and its departure is not known: %+v", hash, d)
		case pooled && departed:
			t.Fatalf("%s is in the pool, and has a departure: %+v", hash, d)
		}
	}
}

// T5: an acknowledged transaction leaves the pool only by inclusion, by a
// replacement of its sender, or by an event that names it and the reason. A
// transaction that comes back from a failed block is never dropped because of a
// cap.
func TestT5NothingAcknowledgedDisappears(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newPromise(t)
		t.Repeat(h.actions())
	})
}

// The run that lost 54 of 120: blocks fail while their sender has filled its share again.
func TestT5FailedBlocksOfASenderAtItsLimit(t *testing.T) {
	const limit, depth = 4, 10
	w := newWorld()
	p := newPool(t, w, func(c *Config) { c.MaxPerSender, c.MaxPending = limit, 3*limit })
	var acked []common.Hash
	var queue []Block
	nonce := uint64(0)
	send := func() {
		for range limit {
			tx := tx(0, nonce, 2)
			require.NoError(t, p.Add(tx))
			acked = append(acked, tx.Hash())
			nonce++
		}
	}
	for range depth {
		send()
		l := p.Drain(Budget{})
		queue = append(queue, Block{Transactions: l.Transactions()})
		require.NoError(t, l.Commit())
	}
	send()
	w.nonce(0, nonce-limit)
	p.Reset(Head{Included: queue})
	w.nonce(0, 0)
	require.Empty(t, p.Reset(Head{Reverted: queue}))
	require.NoError(t, p.Check())
	for _, hash := range acked {
		require.Equal(t, StatusPending, p.Status(hash))
	}
	require.Equal(t, depth*limit, p.Stats().Exempt)
	require.ErrorIs(t, p.Add(tx(0, nonce, 2)), ErrNonceTooHigh, "newcomers have no exemption")
	got := p.Drain(Budget{}).Transactions()
	require.Equal(t, acked, hashes(got), "in order, without a gap")
}
