package txpool

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// heldAside holds transactions that came back, for example from a failed block, but
// cannot be admitted now: the host cannot read the sender's account, or a check refuses
// the transaction at the moment. Each Reset and CleanupExpired tries again, until the
// transaction is admitted, its nonce is used, or its lifetime is over.
//
// The records of the pool contain these transactions too. They count toward the limit
// of the whole pool, because they use memory, but toward no other cap.
type heldAside struct {
	txs  map[common.Hash]*past
	used usage
	last uint64 // order of the newest one
}

// inOrder returns the transactions in the order in which they were put aside.
func (h *heldAside) inOrder() []*past {
	return slices.SortedFunc(maps.Values(h.txs), func(a, b *past) int { return cmp.Compare(a.order, b.order) })
}

// holdAside adds a transaction to those held aside, or replaces it there.
func (h *heldAside) holdAside(o *past) {
	h.letGo(o.tx.Hash())
	h.last++
	o.order = h.last
	h.txs[o.tx.Hash()] = o
	h.used.add(usage{1, memoryOf(o.tx)})
}

// letGo removes a transaction, if it is held aside.
func (h *heldAside) letGo(hash common.Hash) {
	o := h.txs[hash]
	if o != nil {
		delete(h.txs, hash)
		h.used.add(usage{-1, -memoryOf(o.tx)})
	}
}

// superseded is returned if a transaction comes back, for example from a failed block,
// but a newer transaction of the same sender has taken its nonce in the meantime. It
// wraps ErrReplaced and names the newer transaction.
type superseded struct{ by common.Hash }

func (s *superseded) Error() string { return ErrReplaced.Error() + " by " + s.by.String() }
func (s *superseded) Unwrap() error { return ErrReplaced }

// isFinal reports whether a transaction that came back can never be admitted, because
// of err.
func isFinal(err error) bool {
	return wrapsAny(err, []error{ErrNonceTooLow, ErrReplaced, ErrInvalidChainID, ErrMalformed})
}

// setAside holds aside, or drops, the transactions that came back and were not
// admitted.
func (p *Pool) setAside(batch []candidate) {
	p.changeCore(func(c *core) {
		for i := range batch {
			t := &batch[i]
			hash := t.tx.Hash()
			held, expired := c.aside.txs[hash], c.now-t.origin.at >= int64(p.cfg.Lifetime)
			switch {
			case t.err == nil:
				c.aside.letGo(hash)
			// The pool has this transaction already, for example because its sender has sent it
			// again. It was accepted before, so from now on no newcomer may push it out.
			case errors.Is(t.err, ErrAlreadyKnown):
				e := c.all[hash]
				if e != nil {
					c.applyPlan(plan{account: e.account, exempts: []*entry{e}})
				}
			// The pool had kept this transaction to try it again, and gives up now: it can
			// never be admitted, or its lifetime is over.
			case held != nil && (isFinal(t.err) || expired):
				c.aside.letGo(hash)
				c.emitEvent(t.endEvent(c.now), nil)
			case held != nil:
				held.err = t.err
			case isFinal(t.err):
				departs := t.endEvent(c.now)
				c.recordDeparture(departs.departure(c.now))
				c.displaced = append(c.displaced, Displaced{Tx: t.tx, Err: t.err})
			// The transaction cannot be admitted now, but perhaps later. Keep it, and tell the
			// caller of Reset or Restore.
			default:
				o := t.origin
				o.at, o.exempt, o.held, o.err = min(o.at, c.now), true, true, t.err
				c.aside.holdAside(o)
				c.recordAdmission(o)
				c.displaced = append(c.displaced, Displaced{Tx: t.tx, Err: t.err, Held: true})
			}
		}
	})
}

// endEvent returns the last event about a transaction that came back in vain.
func (t *candidate) endEvent(now int64) Event {
	event := Event{Kind: Dropped, Tx: t.tx, Sender: t.from, Private: t.origin.private, Age: time.Duration(now - t.origin.at), Reason: t.err}
	s := new(superseded)
	if errors.As(t.err, &s) {
		event.By = s.by
	}
	if !isFinal(t.err) {
		event.Reason = ErrExpired
	}
	return event
}

// retryHeld tries again to admit the transactions that are held aside.
func (p *Pool) retryHeld() {
	p.mu.Lock()
	origin := p.core.aside.inOrder()
	p.mu.Unlock()
	batch := p.examineBack(origin)
	p.admitAll(batch)
	p.setAside(batch)
}

// examineBack examines transactions that come back, with the lenient rules for them.
func (p *Pool) examineBack(origin []*past) []candidate {
	batch := make([]candidate, len(origin))
	for i, o := range origin {
		batch[i] = candidate{tx: o.tx, private: o.private, origin: o}
	}
	p.examineAll(batch, p.clock())
	return batch
}

// CleanupExpired drops expired transactions, and tries again to admit the
// transactions that are held aside. Most hosts need not call it, because Add, Build
// and Reset drop expired transactions when necessary (see Config.Lifetime), and
// Reset retries the held ones. A host that makes no such calls for a long time, but
// relies on the events, should call CleanupExpired now and then.
func (p *Pool) CleanupExpired() {
	defer p.takeTurn()()
	p.retryHeld()
	p.dropExpired(p.clock())
}

// dropExpired drops the expired transactions of all senders. The caller holds p.turn.
func (p *Pool) dropExpired(now int64) {
	p.changeCore(func(c *core) {
		for i := len(c.list) - 1; i >= 0; i-- { // a removed sender is replaced by the last one
			c.expireSender(c.list[i], now)
		}
		c.departures.prune(now)
	})
	p.sweptAt.Store(now)
}

// expireDue drops expired transactions if this was last done long enough ago.
func (p *Pool) expireDue(now int64) {
	// Every Add calls expireDue, so it must not wait: if another call with several
	// steps is running, it leaves the work to a later Add.
	if now-p.sweptAt.Load() >= int64(p.cfg.Lifetime/expiryShare) && p.turn.TryLock() {
		defer p.turn.Unlock()
		p.dropExpired(now)
	}
}

// expiryShare limits how late an expired transaction leaves, to
// Config.Lifetime/expiryShare.
const expiryShare = 16

// expireSender drops the expired transactions of one sender, the last one first.
func (c *core) expireSender(a *account, now int64) {
	lifetime := int64(c.cfg.Lifetime)
	p := plan{account: a, index: len(a.txs)}
	followed := false // a later transaction without a gap stays
	for i := len(a.txs) - 1; i >= 0; i-- {
		e := a.txs[i].entry
		// An expired transaction stays if a later one that follows without a gap stays: the
		// later one needs it in order to run, and may have pushed out others.
		if !e.locked && now-e.at >= lifetime && !followed {
			p.leaves = append(p.leaves, leaving{e, Dropped, ErrExpired})
			p.index = i
			continue
		}
		followed = i < int(a.line)
	}
	if len(p.leaves) > 0 {
		c.applyPlan(p)
	}
	c.closeAccount(a)
}
