package txpool

import (
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Budget bounds a drain. A field that is 0 is no bound.
type Budget struct {
	// Count is the maximum number of transactions.
	Count int
	// Gas bounds the sum of the gas limits, Bytes that of the encodings, and
	// DABytes that of Config.DASize. Sizes are in bytes.
	Gas, Bytes, DABytes uint64
	// PerSender is the maximum number of transactions of one sender. They have
	// consecutive nonces. 2 treats senders fairly.
	PerSender int
	// BaseFee is the base fee of the next block, in wei per gas. Nil means the
	// one of the last Reset.
	BaseFee *big.Int
}

// SkipReason is why a drain passed over a transaction.
type SkipReason string

const (
	// SkipGas means that the gas limit does not fit into the rest of the
	// budget.
	SkipGas SkipReason = "gas"
	// SkipBytes means that the encoding does not fit into the rest of the
	// budget.
	SkipBytes SkipReason = "bytes"
	// SkipDABytes means that Config.DASize does not fit into the rest of the
	// budget.
	SkipDABytes SkipReason = "da bytes"
	// SkipPerSender means that Budget.PerSender is reached.
	SkipPerSender SkipReason = "per sender"
	// SkipBaseFee means that the transaction does not pay Budget.BaseFee.
	SkipBaseFee SkipReason = "base fee"
	// SkipAncestor means that an earlier transaction of the sender was skipped.
	SkipAncestor SkipReason = "ancestor"
	// SkipChanged means that the account's current nonce or balance does not
	// allow the transaction.
	SkipChanged SkipReason = "changed"
)

// Skip is a transaction Tx that a drain passed over, with the Reason.
type Skip struct {
	Tx     *types.Transaction
	Reason SkipReason
}

// maxSkips is the maximum number of skipped transactions in a lease.
const maxSkips = 4096

// Drain leases the best transactions that fit into a budget and returns them in
// the order in which they should run. Equal pools, states and budgets give
// equal drains (promise T3). Drain reads the balance and nonce of each chosen
// sender from State again. The lease may be empty, but it must be committed or
// released. Drain visits all pending transactions until no other can fit. It
// does not hold the pool's lock meanwhile.
func (p *Pool) Drain(budget Budget) *Lease {
	defer p.begin()()
	l := p.openLease()
	defer p.abandon(l)
	defer p.thaw()
	s := selection{budget: budget, taken: make(map[*account]int), stopped: make(map[*account]bool)}
	for again := true; again; {
		var v *view
		v, again = p.freeze(), false
		s.choose(v)
		for rest := s.chosen; len(rest) > 0; {
			now := rest[:min(slice, len(rest))]
			rest = rest[len(now):]
			p.pause()
			again = p.lend(l, now, &s) || again
		}
		p.thaw()
		s.next()
	}
	p.sealLease(l, s.listed(l))
	return l
}

// listed returns the transactions that were skipped in all rounds, each once.
func (s *selection) listed(l *Lease) []Skip {
	if len(s.skipped) == 0 {
		return nil
	}
	listed := make(map[*types.Transaction]bool, len(l.txs))
	for _, e := range l.txs {
		listed[e.tx] = true
	}
	return slices.DeleteFunc(s.skipped, func(skip Skip) bool { // several rounds may visit one
		again := listed[skip.Tx]
		listed[skip.Tx] = true
		return again
	})
}

// selection chooses transactions within a budget, in one or more rounds.
type selection struct {
	budget         Budget
	gas, bytes, da uint64
	count          int
	chosen         []*entry
	skipped        []Skip
	taken          map[*account]int  // number per sender
	stopped        map[*account]bool // senders that are done
}

// next prepares another round. Transactions that were skipped because of an
// earlier one of their sender may fit now.
func (s *selection) next() {
	s.chosen = s.chosen[:0]
	clear(s.taken)
	clear(s.stopped)
}

// choose fills the rest of the budget.
func (s *selection) choose(v *view) {
	base := v.base
	if s.budget.BaseFee != nil {
		base = wei(s.budget.BaseFee)
	}
	for e := range v.order() {
		if s.spent() {
			return
		}
		reason := s.refuses(e, base)
		if reason == "" {
			s.take(e)
			continue
		}
		s.stopped[e.account] = true
		s.skip(e, reason)
	}
}

// spent reports whether no other transaction can fit.
func (s *selection) spent() bool {
	b := &s.budget
	return b.Count > 0 && s.count >= b.Count || b.Gas > 0 && s.gas+txGas > b.Gas || b.Bytes > 0 && s.bytes >= b.Bytes || b.DABytes > 0 && s.da >= b.DABytes
}

// refuses returns why an entry cannot be taken, or "".
func (s *selection) refuses(e *entry, base uint64) SkipReason {
	b := &s.budget
	switch {
	case s.stopped[e.account]:
		return SkipAncestor
	case e.feeCap < base:
		return SkipBaseFee
	case b.Gas > 0 && e.tx.Gas() > b.Gas-s.gas:
		return SkipGas
	case b.Bytes > 0 && uint64(e.size) > b.Bytes-s.bytes:
		return SkipBytes
	case b.DABytes > 0 && uint64(e.da) > b.DABytes-s.da:
		return SkipDABytes
	case b.PerSender > 0 && s.taken[e.account] >= b.PerSender:
		return SkipPerSender
	}
	return ""
}

func (s *selection) take(e *entry) {
	s.count++
	s.gas += e.tx.Gas()
	s.bytes += uint64(e.size)
	s.da += uint64(e.da)
	if s.budget.PerSender > 0 {
		s.taken[e.account]++
	}
	s.chosen = append(s.chosen, e)
}

func (s *selection) skip(e *entry, reason SkipReason) {
	if len(s.skipped) < maxSkips {
		s.skipped = append(s.skipped, Skip{e.tx, reason})
	}
}

// untake removes an entry that was chosen but could not be lent.
func (s *selection) untake(e *entry) {
	s.count--
	s.gas -= e.tx.Gas()
	s.bytes -= uint64(e.size)
	s.da -= uint64(e.da)
	s.skip(e, SkipChanged)
}

// lend reads the accounts of the chosen entries and puts those that can still
// run into the lease. It reports whether one could not.
func (p *Pool) lend(l *Lease, chosen []*entry, s *selection) (changed bool) {
	known := p.readSenders(chosen)
	_ = p.step(func(c *core) error {
		for _, e := range chosen {
			if !e.gone {
				if account, there := known[e.account.address]; there && e.account.differs(account) {
					c.refresh(e.account, account)
				}
			}
			if !c.lendable(e) {
				s.untake(e)
				changed = true
				continue
			}
			c.lend(e, l)
			l.txs = append(l.txs, e)
		}
		return nil
	})
	return changed
}

// lendable reports whether an entry can run directly after its sender's leased
// transactions.
func (c *core) lendable(e *entry) bool {
	if e.gone || e.lease != nil || e.status != ready {
		return false
	}
	a := e.account
	i, _ := a.find(e.nonce)
	if int(a.leased) < i {
		return false
	}
	return !slices.ContainsFunc(a.txs[:i], func(earlier link) bool { return earlier.lease == nil })
}

// differs reports whether the host's state has changed.
func (a *account) differs(known Account) bool {
	return a.stale || a.state != known.Nonce || a.delegated != known.Delegated || !known.Balance.Eq(a.balance())
}

// readSenders reads the accounts of entries that are in the pool. An account
// that cannot be read keeps its last known state.
func (p *Pool) readSenders(entries []*entry) map[common.Address]Account {
	p.lock()
	addresses := make([]common.Address, 0, len(entries))
	for _, e := range entries {
		if !e.gone {
			addresses = append(addresses, e.account.address)
		}
	}
	p.mu.Unlock()
	known := make(map[common.Address]Account, len(addresses))
	for _, address := range addresses {
		if _, there := known[address]; there {
			continue
		}
		if account, err := p.account(address); err == nil {
			known[address] = account
		} else {
			p.cfg.Logger.Warn("txpool: cannot read an account, using its last known state", "err", err)
		}
	}
	return known
}

// freeze makes readers see the current state of the pool until thaw, and
// returns it. The caller holds p.long.
func (p *Pool) freeze() *view {
	now := p.cfg.Now().UnixNano()
	p.lock()
	defer p.mu.Unlock()
	p.frozen = p.look(now)
	return p.frozen
}

func (p *Pool) thaw() {
	p.lock()
	defer p.mu.Unlock()
	p.frozen = nil
}

// look returns the current state of the pool. The caller holds p.mu.
func (p *Pool) look(now int64) *view {
	return &view{index: p.core.ready.Clone(), ordering: p.cfg.Ordering, base: p.core.fees.base, now: now}
}
