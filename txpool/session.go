package txpool

import (
	"context"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Budget limits a block. A field that is 0 sets no limit.
type Budget struct {
	// Count is the maximum number of transactions.
	Count int
	// Gas limits the gas that the block's transactions use; a transaction may start
	// if its gas limit fits into the rest. Bytes limits the bytes that they use; a
	// transaction may start if its encoding fits into the rest.
	Gas, Bytes uint64
	// BaseFee is the base fee of the block, in wei per gas; transactions that do
	// not pay it are skipped. Nil means the base fee of the last Reset. BaseFee
	// neither changes the order of the transactions nor makes parked ones run; only
	// Head.BaseFee does.
	BaseFee *big.Int
}

// Session gives a builder the transactions of one block, one after the other. Next returns the best
// transaction that may start, and the builder answers with Used, Fail or Later. The session then
// goes on with the rest of the budget. If a better transaction arrives in the meantime, the session
// takes it too.
//
// The pool locks the transactions that a session has taken: they stay in the pool,
// cannot be replaced, removed or evicted, and do not expire. A session ends with
// [Pool.Reset], with Cancel, or when the next session begins. Its transactions that
// are in no block are then unlocked. A Session must not be used by several
// goroutines at the same time.
type Session struct {
	pool   *Pool
	ctx    context.Context
	budget Budget
	base   uint64   // base fee, wei per gas
	taken  []*entry // in order; some may have left the pool

	current *entry // returned by Next, and not answered yet
	count   int
	gas     uint64 // gas used so far; bytes likewise
	bytes   uint64

	// over is true if the session takes no more transactions. Those that it has taken
	// may still be locked.
	over   bool
	misses int // transactions in a row that did not fit

	senders map[common.Address]*turn
	heads   heads
	walk    walk
}

// usualSenders is the initial capacity of Session.senders.
const usualSenders = 256

// maxMisses is how many transactions in a row a session skips because they do not fit,
// before it considers the block full. To end blocks early, an attacker would need this
// many transactions that do not fit, all with the best tips, and the balance for their
// gas limits.
const maxMisses = 10_000

// Build begins a session for one block, and cancels the previous session. The block
// depends only on the contents of the pool, on State and on the builder's answers
// (promise T3). Before the session takes the first transaction of a sender, it
// reads the sender's balance and nonce from State again.
func (p *Pool) Build(ctx context.Context, budget Budget) *Session {
	if ctx == nil {
		ctx = context.Background()
	}
	p.expireDue(p.clock())
	defer p.takeTurn()() // not within a Reset
	s := &Session{pool: p, ctx: ctx, budget: budget, senders: make(map[common.Address]*turn, usualSenders)}
	p.lockCore()
	defer p.mu.Unlock()
	c := p.core
	c.endSession(c.session)
	c.restoreCaps()
	s.base = c.fees.base
	if budget.BaseFee != nil {
		s.base = wei(budget.BaseFee)
	}
	s.walk, c.session = c.newWalk(), s
	return s
}

// Transactions returns the transactions that the session has taken, in the order in which the block
// should run them. It leaves out those that have left the pool or were given back.
func (s *Session) Transactions() []*types.Transaction {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	txs := make([]*types.Transaction, 0, len(s.taken))
	for e := range s.members {
		txs = append(txs, e.tx)
	}
	return txs
}

// members yields the transactions of the session that are still locked.
func (s *Session) members(yield func(*entry) bool) {
	if s.pool.core.session != s {
		return // it has ended
	}
	for _, e := range s.taken {
		if e.locked && !yield(e) {
			return
		}
	}
}

// Next returns the best transaction that may start, and locks it. If the builder
// has not answered for the previous transaction, that transaction counts with its
// gas limit and its encoded size. Next returns nil in these cases:
//
//   - No transaction fits into the rest of the block.
//   - ctx is done, or the session has ended.
//   - 10,000 transactions in a row do not fit. This limit makes the end of a block cost the same in
//     any pool.
func (s *Session) Next() *types.Transaction {
	p := s.pool
	defer p.takeTurn()()
	for {
		var e *entry
		var unread bool
		p.changeCore(func(c *core) {
			s.countUse(s.limit())
			if s.ctx.Err() != nil {
				s.stopTaking(c)
			}
			e, unread = s.pickNext(c)
		})
		switch {
		case e == nil:
			return nil
		case !unread:
			return e.tx
		}
		s.readSenders(e)
	}
}

// stopTaking makes the session take no more transactions, and frees its data.
func (s *Session) stopTaking(c *core) {
	if s.over {
		return
	}
	for e := range s.members {
		a := e.account
		if int(a.ahead) < len(a.txs) {
			// The places of the sender's later transactions were left alone while the session
			// took the first ones. Compute them now.
			c.touchAccount(a, int(a.ahead), int(a.ahead))
		}
	}
	s.over = true
	s.senders, s.heads = make(map[common.Address]*turn), nil
	s.walk = walk{ended: true}
}

// readSenders reads the account of a transaction's sender again.
func (s *Session) readSenders(e *entry) {
	readings := make([]reading, 0, readers)
	read := func(e *entry) {
		if !e.gone {
			readings = append(readings, reading{in: e.account})
		}
	}
	s.pool.mu.Lock()
	read(e)
	// Also read accounts of other senders that may be next, because several slow
	// readings at once take no longer than one.
	for _, t := range s.heads {
		if len(readings) < readers && t.entry != nil && t.entry != e && !t.read {
			read(t.entry)
		}
	}
	s.pool.mu.Unlock()
	s.pool.readAll(readings)
	s.pool.changeCore(func(c *core) {
		for _, r := range readings {
			t := s.senders[r.in.address]
			if t != nil {
				t.read = true
			}
			c.applyReading(&r)
		}
	})
}

// Used tells the session how much gas and how many bytes of the budget were used by
// the transaction that Next last returned. It does nothing if the builder has
// already answered for that transaction.
func (s *Session) Used(gas, bytes uint64) {
	s.pool.lockCore()
	defer s.pool.mu.Unlock()
	s.countUse(gas, bytes)
}

// Fail drops the transaction that Next last returned from the pool, because it
// failed. The pool refuses the same transaction for Config.QuarantineTime
// (invariant I14). reason becomes Event.Reason; nil means ErrQuarantined. The
// session takes no other transaction of the same sender. Fail does nothing if the
// builder has already answered for the transaction.
func (s *Session) Fail(reason error) {
	s.giveUpCurrent(func(c *core, e *entry) { c.rejectEntry(e, reason) })
}

// Later leaves the transaction that Next last returned in the pool, for example
// because it did not fit into the block. The caps apply to it as before. The
// session takes no other transaction of the same sender. Later does nothing if the
// builder has already answered for the transaction.
func (s *Session) Later() {
	s.giveUpCurrent(func(c *core, e *entry) {
		s.putAside(e)
		c.applyPlan(c.decideReturn(e, false))
	})
}

// giveUpCurrent calls giveUp with the current transaction if it is still locked.
func (s *Session) giveUpCurrent(giveUp func(*core, *entry)) {
	defer s.pool.deliverEvents()
	s.pool.changeCore(func(c *core) {
		e := s.current
		s.current = nil
		if e != nil && e.locked && c.session == s {
			giveUp(c, e)
		}
	})
}

// limit returns the gas limit and size of the transaction not answered for yet.
func (s *Session) limit() (gas, bytes uint64) {
	if s.current == nil {
		return 0, 0
	}
	return s.current.gas, uint64(s.current.size)
}

// countUse adds the current transaction's gas and bytes to those of the block.
func (s *Session) countUse(gas, bytes uint64) {
	e := s.current
	s.current = nil
	if e == nil || !e.locked {
		return
	}
	s.count++
	s.gas = addSaturating(s.gas, gas)
	s.bytes = addSaturating(s.bytes, bytes)
}

// Cancel ends the session and unlocks its transactions, because there will be no
// block. The transactions become exempt from the caps only if newcomers have taken
// their room, because they were never in a block. Cancel does nothing if the
// session has already ended, so a host can defer it.
func (s *Session) Cancel() {
	defer s.pool.deliverEvents()
	s.pool.changeCore(func(c *core) {
		if c.session == s {
			c.endSession(s)
		}
	})
}

// endSession ends a session, which may be nil, and unlocks its transactions.
func (c *core) endSession(s *Session) {
	if s == nil {
		return
	}
	s.current = nil
	s.stopTaking(c)
	for e := range s.members {
		// No block contains these transactions, so the caps apply to them as before, except if
		// newcomers have taken their room.
		c.applyPlan(c.decideReturn(e, !c.fits(e)))
	}
	c.session = nil
}

// pickNext chooses the best transaction that fits into the block and locks it. It returns
// nil if none fits. If unread is true, nothing was locked: the caller must first read the
// account of the sender, and then call pickNext again.
func (s *Session) pickNext(c *core) (e *entry, unread bool) {
	for !s.over {
		if s.spent() {
			s.stopTaking(c)
			break
		}
		s.fillHeads(c)
		if len(s.heads) == 0 {
			break
		}
		e, t := s.popHead(c)
		if e == nil {
			continue
		}
		if !s.fits(e) {
			// The transaction does not fit, so skip its sender. If the sender's next
			// transaction changes, considerEntry considers it again.
			t.aside, t.unfit = true, true
			s.misses++
			if s.misses > maxMisses {
				break
			}
			continue
		}
		if !t.read {
			// The balance and the nonce of the sender must be read first. The caller reads them
			// without the lock and then calls pickNext again.
			s.pushHead(c, t, e)
			return e, true
		}
		s.lockNext(c, t, e)
		return e, false
	}
	return nil, false
}

// lockNext locks a transaction for the block and considers the sender's next one.
func (s *Session) lockNext(c *core, t *turn, e *entry) {
	c.lockEntry(e)
	s.taken = append(s.taken, e)
	s.current = e
	s.misses = 0
	t.took = true
	s.pushHead(c, t, e.account.head())
}

// rejectEntry drops a transaction that failed in a block, and puts it in quarantine.
func (c *core) rejectEntry(e *entry, reason error) {
	if reason == nil {
		reason = ErrQuarantined
	}
	if e.locked && !c.session.over {
		// The session takes no more transactions of this sender: a new one with the failed
		// nonce would come too late in the block.
		c.session.putAside(e)
	}
	c.failed.remember(e.hash(), struct{}{}, c.now)
	c.applyPlan(planDrop(e, reason))
}
