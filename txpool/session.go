package txpool

import (
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Session gives a builder the transactions of one block, one after the other.
// Next returns the best transaction that may start, and the builder answers
// with Used, Fail or Later. The session then continues with the rest of the
// budget. Newcomers that are better than the remaining ones are taken too.
//
// The transactions are in one lease, which grows with the session and does not
// expire while the session's context lives. A session ends with Commit, Cancel
// or Seal, or when its lease is closed. It must not be used by several
// goroutines concurrently.
type Session struct {
	pool   *Pool
	ctx    context.Context
	budget Budget
	base   uint64 // base fee, wei per gas
	lease  *Lease

	current *entry // returned by Next and not answered
	count   int
	gas     uint64 // used; also bytes and da
	bytes   uint64
	da      uint64

	// over is set when the session takes no more transactions, although its lease
	// may be open. misses counts the transactions that the session has passed over
	// since its last one, because they do not fit.
	over   bool
	misses int
	// outdated is set if the priorities of all transactions have changed.
	outdated bool

	senders map[common.Address]*turn
	heads   heads
	walk    walk
}

// maxSessions is the maximum number of sessions that take transactions at a
// time. Each newcomer is offered to all of them.
const maxSessions = 64

// usualSenders is the number of senders for which a session has room from the start.
const usualSenders = 256

// maxMisses is the maximum number of transactions that a session passes over since
// its last one before it considers the block full. An attacker who ends blocks early
// needs as many transactions that do not fit, with the best tips and the balance for
// their gas limits.
const maxMisses = 10_000

// Build begins a session. Equal pools and states, and equal answers of the
// builder, give equal blocks (promise T3). Build reads the balance and nonce of
// each sender from State again before it takes its first transaction. If ctx is
// done, Next returns nil, and the lease expires after Config.LeaseLifetime.
//
// Several sessions can be open, for blocks that follow one another in the order
// in which the sessions began. While one session has a nonce of a sender, a
// session that began earlier takes only lower nonces of that sender, and one that
// began later takes only higher ones, because each block must be able to run
// after the blocks before it. At most 64 sessions take transactions. If another
// session begins, Next of the oldest one returns nil from then on.
func (p *Pool) Build(ctx context.Context, budget Budget) *Session {
	if ctx == nil {
		ctx = context.Background()
	}
	p.expireDue()
	l := &Lease{pool: p}
	s := &Session{pool: p, ctx: ctx, budget: budget, lease: l, senders: make(map[common.Address]*turn, usualSenders)}
	p.enter()
	defer p.mu.Unlock()
	l.renew(p.core.now)
	p.lastID++
	l.id, l.session = p.lastID, s
	s.base = p.core.fees.base
	if budget.BaseFee != nil {
		s.base = wei(budget.BaseFee)
	}
	s.walk = p.core.newWalk()
	p.leases[l.id] = l
	if len(p.core.sessions) == maxSessions {
		p.core.sessions[0].stop(p.core)
	}
	p.core.sessions = append(p.core.sessions, s)
	return s
}

// Lease returns the session's lease.
func (s *Session) Lease() *Lease { return s.lease }

// Skipped returns the transactions that the session passed over, in the order in
// which it visited them, at most 4,096.
func (s *Session) Skipped() []Skip { return s.lease.Skipped() }

// Next puts the best transaction that may start into the lease and returns it.
// It returns nil if none fits, if ctx is done, or after the end of the session.
// It also returns nil after 10,000 transactions in a row that do not fit, so that
// the end of a block costs the same in any pool. If the builder has not answered for
// the previous transaction, it counts with its gas limit and the size of its encoding.
func (s *Session) Next() *types.Transaction {
	p := s.pool
	defer p.begin()()
	for s.ctx.Err() == nil {
		var e *entry
		var unread bool
		_ = p.step(func(c *core) error {
			s.answer(s.limit())
			e, unread = s.pick(c)
			return nil
		})
		switch {
		case e == nil:
			return nil
		case unread:
			s.read(e)
		default:
			p.cfg.Metrics.count(CountDrained, "")
			return e.tx
		}
	}
	_ = p.step(func(c *core) error {
		s.answer(s.limit())
		s.stop(c)
		return nil
	})
	return nil
}

// stop makes the session take no more transactions, and forgets what it needed
// for that. The transactions after those that it took get their places.
func (s *Session) stop(c *core) {
	if s.over {
		return
	}
	for e := range s.lease.members {
		if a := e.account; int(a.lent) < len(a.txs) {
			c.touch(a, int(a.lent), int(a.lent))
		}
	}
	s.over = true
	s.senders, s.heads = make(map[common.Address]*turn), nil
	s.walk = walk{ended: true}
	c.sessions = slices.DeleteFunc(c.sessions, func(other *Session) bool { return other == s })
}

// read reads the account of an entry's sender again, and those of other senders
// that may come next.
func (s *Session) read(e *entry) {
	next, readings := make([]*entry, 0, readers), make([]reading, 0, readers)
	read := func(e *entry) {
		if !e.gone {
			next, readings = append(next, e), append(readings, reading{in: e.account})
		}
	}
	s.pool.mu.Lock()
	read(e)
	for _, t := range s.heads {
		if len(next) < readers && t.entry != nil && t.entry != e && !t.read {
			read(t.entry)
		}
	}
	s.pool.mu.Unlock()
	s.pool.readAll(readings)
	_ = s.pool.step(func(c *core) error {
		for i, r := range readings {
			if t := s.senders[r.in.address]; t != nil {
				t.read = true
			}
			c.observe(&r)
			if e := next[i]; e.gone || e.status != ready {
				s.skip(e, SkipChanged)
			}
		}
		return nil
	})
}

// Used counts the gas, and the bytes of the budget, that the last transaction of
// Next has used. It does nothing if there is no unanswered transaction.
func (s *Session) Used(gas, bytes uint64) {
	s.pool.enter()
	defer s.pool.mu.Unlock()
	s.answer(gas, bytes)
}

// Fail drops the last transaction of Next from the pool, because it failed, and
// refuses it for Config.QuarantineTime (invariant I14). reason becomes
// Event.Reason; nil means ErrQuarantined. The session takes no other
// transaction of its sender. It does nothing if there is no unanswered
// transaction.
func (s *Session) Fail(reason error) {
	s.dismiss(func(hash common.Hash) error { return s.lease.Reject(hash, reason) })
}

// Later leaves the last transaction of Next in the pool, for example because it
// did not fit. The session takes no other transaction of its sender. It does
// nothing if there is no unanswered transaction.
func (s *Session) Later() { s.dismiss(s.lease.Return) }

// dismiss removes the current transaction from the lease.
func (s *Session) dismiss(remove func(common.Hash) error) {
	s.pool.mu.Lock()
	e := s.current
	s.current = nil
	s.pool.mu.Unlock()
	if e != nil {
		_ = remove(e.hash()) // fails if another call has removed it
	}
}

// limit returns the gas limit and the size of the current transaction.
func (s *Session) limit() (gas, bytes uint64) {
	if s.current == nil {
		return 0, 0
	}
	return s.current.gas, uint64(s.current.size)
}

// answer counts the use of the current transaction, and renews the lease.
func (s *Session) answer(gas, bytes uint64) {
	e := s.current
	s.current = nil
	s.lease.renew(s.pool.core.now)
	if e == nil || !s.lease.holds(e) {
		return
	}
	s.count++
	s.gas = addSaturating(s.gas, gas)
	s.bytes = addSaturating(s.bytes, bytes)
	s.da = addSaturating(s.da, uint64(e.da))
}

// Seal ends the session and returns its lease, which the journal then has. A
// host that makes a bundle durable before it commits the lease seals first, so
// that it finds the lease after a restart. If the journal fails, the error wraps
// ErrJournal; the lease is still open, and the journal gets it when it works
// again.
func (s *Session) Seal() (*Lease, error) {
	defer s.pool.begin()()
	l := s.lease
	l.endSession()
	_ = s.pool.step(func(c *core) error {
		if l.checkOpen() == nil && !l.sealed {
			l.sealed = true
			if c.journaling() {
				c.note(l.openedRecord())
			}
		}
		return nil
	})
	if s.pool.out.failing.Load() {
		if err := s.pool.writeDown(); err != nil {
			return l, journalError(err)
		}
	}
	return l, nil
}

// Commit ends the session and commits its lease: see Lease.Commit.
func (s *Session) Commit() error { return s.lease.Commit() }

// Cancel ends the session and gives its transactions back, because there is no
// block. Unlike those of Lease.Release, they were never in a bundle, so they
// are exempt from the caps only if newcomers have taken their room.
//
// After the end of the session Cancel changes nothing, so a host can defer it.
// The error wraps ErrSessionEnded if the lease is still open, as after Seal or
// after a Commit that failed, and ErrLeaseClosed otherwise.
func (s *Session) Cancel() error {
	p, l := s.pool, s.lease
	defer p.begin()()
	p.mu.Lock()
	ended, err := l.session != s, l.checkOpen()
	p.mu.Unlock()
	switch {
	case err != nil:
		return err
	case ended:
		return fmt.Errorf("%w: lease %d is open: commit or release it", ErrSessionEnded, l.id)
	}
	return l.closeLocked(recordReleased, giveBack(false))
}

// pick puts the next transaction into the lease and returns it, or nil if none
// fits. If the account of its sender was not read in this session, it sets
// unread and puts nothing into the lease.
func (s *Session) pick(c *core) (e *entry, unread bool) {
	for !s.over {
		if s.outdated {
			s.sortAgain(c)
		}
		if s.spent() {
			s.stop(c)
			break
		}
		s.fill(c)
		if len(s.heads) == 0 {
			break
		}
		e, t := s.pop(c)
		if e == nil {
			continue
		}
		if reason := s.refuses(e); reason != "" {
			s.putAside(e, reason)
			t.unfit = true
			if s.misses++; s.misses > maxMisses {
				break
			}
			continue
		}
		if !t.read {
			s.push(c, t, e)
			return e, true
		}
		s.take(c, t, e)
		return e, false
	}
	return nil, false
}

// spent reports whether no other transaction can fit.
func (s *Session) spent() bool {
	b := &s.budget
	return b.Count > 0 && s.count >= b.Count || b.Gas > 0 && addSaturating(s.gas, txGas) > b.Gas ||
		b.Bytes > 0 && s.bytes >= b.Bytes || b.DABytes > 0 && s.da >= b.DABytes
}

// refuses returns why an entry cannot be taken, or "".
func (s *Session) refuses(e *entry) SkipReason {
	b := &s.budget
	switch {
	case e.feeCap < s.base:
		return SkipBaseFee
	case b.DABytes > 0 && uint64(e.da) > b.DABytes-min(s.da, b.DABytes):
		return SkipDABytes
	case !s.inOrder(e.account):
		return SkipOrder
	}
	return s.tooLarge(e.gas, uint64(e.size))
}

// tooLarge returns why a transaction of a gas limit and size does not fit into the
// rest of the block, or "".
func (s *Session) tooLarge(gas, size uint64) SkipReason {
	switch b := &s.budget; {
	case b.Gas > 0 && gas > b.Gas-min(s.gas, b.Gas):
		return SkipGas
	case b.Bytes > 0 && size > b.Bytes-min(s.bytes, b.Bytes):
		return SkipBytes
	}
	return ""
}

// inOrder reports whether the session may take the sender's next transaction:
// those before it must be in this or earlier sessions, and those after it in later
// ones. Otherwise neither block could run before the other, or the lease could not
// run in its order.
func (s *Session) inOrder(a *account) bool {
	id, next := s.lease.id, int(a.lent)
	if next > 0 && a.txs[next-1].lease.id > id {
		return false
	}
	if int(a.leased) > next {
		for _, later := range a.txs[next:] {
			if later.lease != nil {
				return later.lease.id > id
			}
		}
	}
	return true
}

// take puts an entry into the lease.
func (s *Session) take(c *core, t *turn, e *entry) {
	c.lend(e, s.lease)
	s.lease.txs = append(s.lease.txs, e)
	s.current = e
	s.misses = 0
	t.took = true
	next := e.account.head()
	s.push(c, t, next)
	for _, other := range c.sessions {
		if next != nil && other != s {
			other.notice(next)
		}
	}
}

// putAside takes no more transactions of an entry's sender.
func (s *Session) putAside(e *entry, reason SkipReason) {
	t := s.begin(e.account.address)
	t.unfit = false
	if t.aside {
		return
	}
	t.aside = true
	s.passOver(e, reason)
}

// passOver records that the session passes over a transaction and those of its
// sender after it.
func (s *Session) passOver(e *entry, reason SkipReason) {
	if reason != "" {
		s.skip(e, reason)
	}
	a := e.account
	i, _ := a.find(e.nonce)
	for i++; i < int(a.line) && len(s.lease.skipped) < maxSkips; i++ {
		if l := a.txs[i].entry; l.status == ready && l.lease == nil {
			s.skip(l, SkipAncestor)
		}
	}
}

func (s *Session) skip(e *entry, reason SkipReason) {
	if l := s.lease; len(l.skipped) < maxSkips {
		l.skipped = append(l.skipped, skipped{e, reason})
	}
}
