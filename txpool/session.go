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
	// Gas limits the gas that the transactions use; a transaction may start if its gas limit fits
	// into the rest. Bytes limits the bytes that they use; a transaction may start if its encoding
	// fits into the rest.
	Gas, Bytes uint64
	// BaseFee is the base fee of the block, in wei per gas. Transactions that do not pay it are
	// skipped. It does not change the order, and parked transactions stay parked: see Head.BaseFee.
	// Nil means the base fee of the last Reset.
	BaseFee *big.Int
}

// Session gives a builder the transactions of one block, one after the other. Next returns the best
// transaction that may start, and the builder answers with Used, Fail or Later. The session then
// goes on with the rest of the budget. If a newcomer is better than the remaining transactions, it
// is taken too.
//
// The pool locks the transactions that a session has taken: they stay in the pool, cannot be
// replaced, removed or evicted, and do not expire. A session ends with [Pool.Reset], with Cancel,
// or when the next session begins. Those of its transactions that are in no block are then free
// again. A Session must not be used by several goroutines at the same time.
type Session struct {
	pool   *Pool
	ctx    context.Context
	budget Budget
	base   uint64   // base fee, wei per gas
	taken  []*entry // in order; some may have left

	current *entry // returned by Next and not answered
	count   int
	gas     uint64 // used; also bytes
	bytes   uint64

	// over is true when the session takes no more transactions; those that it has taken may still
	// be locked. misses counts the transactions that the session has skipped since the last one
	// that it took, because they do not fit.
	over   bool
	misses int

	senders map[common.Address]*turn
	heads   heads
	walk    walk
}

// usualSenders is for how many senders a session has room from the start.
const usualSenders = 256

// maxMisses is how many transactions in a row a session skips, because they do not fit, before it
// considers the block full. An attacker who wants to end blocks early needs this many transactions
// that do not fit, with the best tips, and the balance for their gas limits.
const maxMisses = 10_000

// Build begins a session, and cancels the one before. Equal pools and states, and equal answers of
// the builder, give equal blocks (promise T3). Before the session takes the first transaction of a
// sender, it reads the sender's balance and nonce from State again.
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

// Transactions returns the transactions that the session has taken, in the order in which they
// should run. It leaves out those that have left the pool or were given back.
func (s *Session) Transactions() []*types.Transaction {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	txs := make([]*types.Transaction, 0, len(s.taken))
	for e := range s.members {
		txs = append(txs, e.tx)
	}
	return txs
}

// members yields the entries that the session has locked. The caller holds the pool's lock.
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

// Next locks the best transaction that may start, and returns it. It returns nil if none fits, if
// ctx is done, or after the end of the session. It also returns nil after 10,000 transactions in a
// row that do not fit, so that the end of a block costs the same in any pool. If the builder has
// not answered for the transaction before, that one counts with its gas limit and the size of its
// encoding.
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

// stopTaking makes the session take no more transactions, and forgets everything that it needed for
// that. The transactions behind those that it has taken get their new places.
func (s *Session) stopTaking(c *core) {
	if s.over {
		return
	}
	for e := range s.members {
		a := e.account
		if int(a.ahead) < len(a.txs) {
			c.touchAccount(a, int(a.ahead), int(a.ahead))
		}
	}
	s.over = true
	s.senders, s.heads = make(map[common.Address]*turn), nil
	s.walk = walk{ended: true}
}

// readSenders reads the account of an entry's sender again, together with those of other senders
// that may be the next ones.
func (s *Session) readSenders(e *entry) {
	readings := make([]reading, 0, readers)
	read := func(e *entry) {
		if !e.gone {
			readings = append(readings, reading{in: e.account})
		}
	}
	s.pool.mu.Lock()
	read(e)
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

// Used informs the session how much gas, and how many bytes of the budget, the last transaction of
// Next has used. It does nothing if that transaction was answered already.
func (s *Session) Used(gas, bytes uint64) {
	s.pool.lockCore()
	defer s.pool.mu.Unlock()
	s.countUse(gas, bytes)
}

// Fail drops the last transaction of Next from the pool, because it failed, and refuses it for
// Config.QuarantineTime (invariant I14). reason becomes Event.Reason; nil means ErrQuarantined. The
// session takes no other transaction of the same sender. Fail does nothing if the transaction was
// answered already.
func (s *Session) Fail(reason error) {
	s.giveUpCurrent(func(c *core, e *entry) { c.rejectEntry(e, reason) })
}

// Later leaves the last transaction of Next in the pool, for example because it did not fit into
// the block. The caps apply to it as before. The session takes no other transaction of the same
// sender. Later does nothing if the transaction was answered already.
func (s *Session) Later() {
	s.giveUpCurrent(func(c *core, e *entry) {
		s.putAside(e)
		c.applyPlan(c.decideReturn(e, false))
	})
}

// giveUpCurrent passes the last transaction of Next to giveUp, if it is still locked by this
// session.
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

// limit returns the gas limit and the size of the current transaction, or zeros if there is none.
func (s *Session) limit() (gas, bytes uint64) {
	if s.current == nil {
		return 0, 0
	}
	return s.current.gas, uint64(s.current.size)
}

// countUse adds the gas and bytes of the current transaction to those of the block.
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

// Cancel ends the session and gives its transactions back, because there is no block. They were
// never in a block, so they are exempt from the caps only if newcomers have taken their room. After
// the end of the session Cancel changes nothing, so a host can defer it.
func (s *Session) Cancel() {
	defer s.pool.deliverEvents()
	s.pool.changeCore(func(c *core) {
		if c.session == s {
			c.endSession(s)
		}
	})
}

// endSession ends a session, if s is not nil, and gives back the transactions that it has locked.
func (c *core) endSession(s *Session) {
	if s == nil {
		return
	}
	s.current = nil
	s.stopTaking(c)
	for e := range s.members {
		c.applyPlan(c.decideReturn(e, !c.fits(e)))
	}
	c.session = nil
}

// pickNext locks the next transaction and returns it, or nil if none fits. If the account of its
// sender was not read in this session, it returns the transaction with unread set, and locks
// nothing.
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
			t.aside, t.unfit = true, true
			s.misses++
			if s.misses > maxMisses {
				break
			}
			continue
		}
		if !t.read {
			s.pushHead(c, t, e)
			return e, true
		}
		s.lockNext(c, t, e)
		return e, false
	}
	return nil, false
}

// lockNext locks an entry that the session takes, and adds the next one of the same sender to the
// heads.
func (s *Session) lockNext(c *core, t *turn, e *entry) {
	c.lockEntry(e)
	s.taken = append(s.taken, e)
	s.current = e
	s.misses = 0
	t.took = true
	s.pushHead(c, t, e.account.head())
}

// rejectEntry drops a transaction that failed while a block was built, and puts it in quarantine.
// If the running session has taken it, the session takes no more of its sender, because a
// transaction that takes the nonce now would come too late in the block.
func (c *core) rejectEntry(e *entry, reason error) {
	if reason == nil {
		reason = ErrQuarantined
	}
	if e.locked && !c.session.over {
		c.session.putAside(e)
	}
	c.failed.remember(e.hash(), struct{}{}, c.now)
	c.applyPlan(planDrop(e, reason))
}
