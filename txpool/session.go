package txpool

import (
	"container/heap"
	"context"
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
	now    int64  // for ages
	lease  *Lease

	current *entry // returned by Next and not answered
	count   int
	gas     uint64 // used; also bytes and da
	bytes   uint64
	da      uint64
	skipped []Skip

	senders map[common.Address]*turn
	heads   heads
	walk    walk
	// last is the sender of the last transaction, and row the number of its
	// transactions in a row. held is its next one while another sender must go
	// first. In each round, a sender has up to Budget.PerSender transactions.
	// rested has the next ones of those that had them.
	last   common.Address
	row    int
	held   *head
	round  int
	rested []*head
	alone  bool // no other sender has one
}

// turn is the state of a sender in a session.
type turn struct {
	read  bool  // account was read
	aside bool  // sender is put aside for this session
	head  *head // in heads, rested or held; nil if there is none
	round int   // of the last transaction
	taken int   // in that round
}

// Build begins a session. Equal pools and states, and equal answers of the
// builder, give equal blocks (promise T3). Build reads the balance and nonce of
// each sender from State again before it takes its first transaction. If ctx is
// done, Next returns nil, and the lease expires after Config.LeaseLifetime.
func (p *Pool) Build(ctx context.Context, budget Budget) *Session {
	if ctx == nil {
		ctx = context.Background()
	}
	p.expireDue()
	s := &Session{pool: p, ctx: ctx, budget: budget, now: p.clock(), lease: p.openLease(), senders: make(map[common.Address]*turn)}
	p.lock()
	defer p.mu.Unlock()
	s.base = p.core.fees.base
	if budget.BaseFee != nil {
		s.base = wei(budget.BaseFee)
	}
	s.walk = p.core.newWalk(s)
	s.lease.session, s.lease.skipped = s, s.Skipped
	p.leases[s.lease.id] = s.lease
	p.core.sessions = append(p.core.sessions, s)
	return s
}

// Lease returns the session's lease.
func (s *Session) Lease() *Lease { return s.lease }

// Skipped returns the transactions that the session passed over, in the order in
// which it visited them, at most 4,096.
func (s *Session) Skipped() []Skip {
	s.pool.lock()
	defer s.pool.mu.Unlock()
	return slices.Clone(s.skipped)
}

// Next puts the best transaction that may start into the lease and returns it.
// It returns nil if none fits, if ctx is done, or after the end of the session.
// If the builder has not answered for the previous transaction, it counts with
// its gas limit and the size of its encoding.
func (s *Session) Next() *types.Transaction {
	p := s.pool
	defer p.begin()()
	for s.ctx.Err() == nil {
		p.lock()
		s.answer(s.limit())
		e, unread, more := s.pick(p.core)
		var address common.Address
		if e != nil {
			address = e.account.address
		}
		p.mu.Unlock()
		switch {
		case e == nil && !more:
			return nil
		case e == nil:
			p.pause()
		case unread:
			s.read(e, address)
		default:
			p.cfg.Metrics.count(CountDrained, "")
			return e.tx
		}
	}
	return nil
}

// read reads the account of an entry's sender again.
func (s *Session) read(e *entry, address common.Address) {
	account, err := s.pool.reread(address)
	_ = s.pool.step(func(c *core) error {
		s.senders[address].read = true
		c.observe(e.account, address, account, err)
		if e.gone || e.status != ready {
			s.skip(e, SkipChanged)
		}
		return nil
	})
}

// Used counts the gas, and the bytes of the budget, that the last transaction of
// Next has used. It does nothing if there is no unanswered transaction.
func (s *Session) Used(gas, bytes uint64) {
	s.pool.lock()
	defer s.pool.mu.Unlock()
	s.answer(gas, bytes)
}

// Fail drops the last transaction of Next from the pool, because it failed, and
// refuses it for Config.QuarantineTime (invariant I14). reason becomes
// Event.Reason; nil means ErrQuarantined. The session takes no other
// transaction of its sender. It does nothing if there is no unanswered
// transaction.
func (s *Session) Fail(reason error) {
	now := s.pool.clock()
	s.dismiss("", func(c *core, e *entry) { c.reject(e, reason, now) })
}

// Later leaves the last transaction of Next in the pool, for example because it
// did not fit. The session takes no other transaction of its sender. It does
// nothing if there is no unanswered transaction.
func (s *Session) Later() {
	s.dismiss(SkipLater, func(c *core, e *entry) { c.apply(c.decideReturn(e, false)) })
}

// dismiss removes the current transaction from the lease.
func (s *Session) dismiss(reason SkipReason, then func(*core, *entry)) {
	defer s.pool.begin()()
	_ = s.pool.step(func(c *core) error {
		e := s.current
		s.current = nil
		if e == nil || !s.lease.holds(e) {
			return nil
		}
		s.lease.txs = s.lease.txs[:len(s.lease.txs)-1]
		s.putAside(e, reason)
		then(c, e)
		return nil
	})
}

// limit returns the gas limit and the size of the current transaction.
func (s *Session) limit() (gas, bytes uint64) {
	if s.current == nil {
		return 0, 0
	}
	return s.current.tx.Gas(), uint64(s.current.size)
}

// answer counts the use of the current transaction.
func (s *Session) answer(gas, bytes uint64) {
	e := s.current
	s.current = nil
	s.lease.renew()
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
	s.end()
	l := s.lease
	_ = s.pool.step(func(c *core) error {
		if s.pool.leases[l.id] == l && !l.sealed {
			l.sealed = true
			c.emit(Event{Kind: leaseOpened, record: l.openedRecord()}, nil)
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
func (s *Session) Commit() error {
	s.finish()
	return s.lease.Commit()
}

// Cancel ends the session and gives its transactions back, because there is no
// block. Unlike those of Lease.Release, they were never in a bundle, so they
// are not exempt from the caps. After Seal, Commit or Cancel it changes
// nothing and returns an error that wraps ErrLeaseClosed.
func (s *Session) Cancel() error {
	defer s.pool.begin()()
	s.pool.lock()
	ended := s.lease.session != s
	s.pool.mu.Unlock()
	if ended {
		return s.lease.closedError()
	}
	return s.lease.closeLocked(leaseReleased, giveBack(false))
}

func (s *Session) finish() {
	defer s.pool.begin()()
	s.end()
}

// end makes the session take no more transactions. The caller holds p.long.
func (s *Session) end() {
	p := s.pool
	p.lock()
	s.answer(s.limit())
	s.lease.session = nil
	p.core.sessions = slices.DeleteFunc(p.core.sessions, func(other *Session) bool { return other == s })
	p.mu.Unlock()
	s.lease.inSlices(func(c *core, a *account, _ []*entry) { c.touch(a, int(a.lent), int(a.lent)) })
}

// pick puts the next transaction into the lease and returns it, or nil if none
// fits. If the account of its sender was not read in this session, it sets
// unread and puts nothing into the lease. It visits a bounded number of senders
// and sets more if there are others.
func (s *Session) pick(c *core) (e *entry, unread, more bool) {
	if s.lease.session != s {
		return nil, false, false
	}
	for range slice {
		if s.spent() {
			return nil, false, false
		}
		if !s.fill(c) {
			return nil, false, true
		}
		if len(s.heads) == 0 && !s.nextRound() {
			return nil, false, false
		}
		e := s.pop(c)
		s.alone = false
		if e == nil {
			continue
		}
		t := s.senders[e.account.address]
		if reason := s.refuses(e); reason != "" {
			s.putAside(e, reason)
			continue
		}
		if !t.read {
			s.push(c, e)
			return e, true, false
		}
		s.take(c, e)
		return e, false, false
	}
	return nil, false, true
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
	case b.Gas > 0 && e.tx.Gas() > b.Gas-min(s.gas, b.Gas):
		return SkipGas
	case b.Bytes > 0 && uint64(e.size) > b.Bytes-min(s.bytes, b.Bytes):
		return SkipBytes
	case b.DABytes > 0 && uint64(e.da) > b.DABytes-min(s.da, b.DABytes):
		return SkipDABytes
	}
	return ""
}

// take puts an entry into the lease.
func (s *Session) take(c *core, e *entry) {
	a := e.account
	c.lend(e, s.lease)
	s.lease.txs = append(s.lease.txs, e)
	s.current = e
	s.countTurn(a.address)
	s.push(c, a.head())
}

// putAside takes no more transactions of an entry's sender.
func (s *Session) putAside(e *entry, reason SkipReason) {
	t := s.senders[e.account.address]
	if t.aside {
		return
	}
	t.aside = true
	if reason != "" {
		s.skip(e, reason)
	}
	a := e.account
	i, _ := a.find(e.nonce)
	for i++; i < int(a.line) && len(s.skipped) < maxSkips; i++ {
		if l := a.txs[i].entry; l.status == ready && l.lease == nil {
			s.skip(l, SkipAncestor)
		}
	}
}

func (s *Session) skip(e *entry, reason SkipReason) {
	if len(s.skipped) < maxSkips {
		s.skipped = append(s.skipped, Skip{e.tx, reason})
	}
}

// noticed lets the running sessions notice a pending entry.
func (c *core) noticed(e *entry) {
	for _, s := range c.sessions {
		s.notice(e)
	}
}

// notice considers an entry that became pending or changed its place during the
// session. If the walk has not passed its place, the walk visits it later.
func (s *Session) notice(e *entry) {
	address := e.account.address
	t := s.senders[address]
	switch {
	case t == nil && !s.walk.passed(e):
		return
	case t == nil:
		t = new(turn)
		s.senders[address] = t
	case t.aside:
		return
	case t.head != nil:
		if t.head.index >= 0 { // it may be better now
			t.head.place = noLead
			heap.Fix(&s.heads, t.head.index)
		}
		return
	}
	t.head = &head{place: noLead, address: address} // popped first, to find its place
	heap.Push(&s.heads, t.head)
}

// visit adds a sender's next transaction to the heads.
func (s *Session) visit(c *core, a *account) {
	if s.senders[a.address] == nil {
		s.senders[a.address] = new(turn)
		s.push(c, a.head())
	}
}

// push adds a sender's next transaction to the heads, or makes it rest. It does
// nothing if there is none.
func (s *Session) push(c *core, e *entry) {
	if e == nil {
		return
	}
	address := e.account.address
	h := &head{place: c.keyOf(e, s.now), address: address, account: e.account, entry: e, index: -1}
	s.senders[address].head = h
	s.offer(h)
}

// pop removes the best head and returns its entry. It returns nil if the sender
// has another next transaction meanwhile, or none.
func (s *Session) pop(c *core) *entry {
	h := heap.Pop(&s.heads).(*head)
	t := s.senders[h.address]
	t.head = nil
	a := h.account
	if a == nil || a.address != h.address { // unknown, or used for another sender meanwhile
		a = c.accounts.get(h.address)
	}
	if a == nil || t.aside {
		return nil
	}
	e := a.head()
	if e == nil || e == h.entry && c.keyOf(e, s.now) == h.place {
		return e
	}
	s.push(c, e)
	return nil
}

// fill visits senders until no other can have a better transaction than the
// best head. It reports false if it stopped before, after a bounded number.
func (s *Session) fill(c *core) bool {
	for range slice {
		if s.walk.done() || len(s.heads) > 0 && !s.walk.bound().before(s.heads[0].place) {
			return true
		}
		s.walk.visit(func(a *account) { s.visit(c, a) })
	}
	return false
}

// head is a sender's next transaction.
type head struct {
	place   // higher scores first, then earlier arrivals
	address common.Address
	account *account // nil if unknown
	entry   *entry
	index   int // in heads, or -1
}

// heads is a heap with the best head at its top.
type heads []*head

func (h heads) Len() int           { return len(h) }
func (h heads) Less(i, j int) bool { return h[i].before(h[j].place) }
func (h heads) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *heads) Push(x any) {
	x.(*head).index = len(*h)
	*h = append(*h, x.(*head))
}
func (h *heads) Pop() any {
	last := len(*h) - 1
	top := (*h)[last]
	top.index = -1
	(*h)[last] = nil
	*h = (*h)[:last]
	return top
}
