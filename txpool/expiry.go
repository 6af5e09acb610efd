package txpool

import "github.com/ethereum/go-ethereum/common"

// CleanupExpired releases expired leases, drops expired transactions, and tries
// to admit transactions that are held aside. It returns the number of dropped
// transactions. A host calls it regularly, for example once a minute. It works
// in slices.
func (p *Pool) CleanupExpired() int {
	defer p.begin()()
	now := p.cfg.Now()
	for _, l := range p.Leases() {
		if !now.Before(l.expires) {
			_ = l.closeLocked(leaseReleased, func(c *core, e *entry) { c.giveBack(e) })
		}
	}
	dropped := p.retryHeld()
	p.sweep(func(c *core, from, to int) func() {
		for i := to - 1; i >= from; i-- {
			dropped += c.expire(c.list[i], now.UnixNano())
		}
		return nil
	})
	p.lock()
	defer p.mu.Unlock()
	p.core.departures.prune(now)
	return dropped
}

// expire drops the expired transactions of a sender, last one first. A
// transaction stays while later ones in line stay: they have displaced others
// and could not run without it.
func (c *core) expire(a *account, now int64) (dropped int) {
	lifetime := int64(c.cfg.Lifetime)
	followed := false // a successor in line stays
	for i := len(a.txs) - 1; i >= 0; i-- {
		e := a.txs[i].entry
		if e.lease == nil && now-e.at >= lifetime && !followed {
			c.drop(a, i, Dropped, ErrExpired, common.Hash{})
			dropped++
			continue
		}
		followed = i < int(a.line)
	}
	if a.nonce > a.state && len(a.txs) == 0 && (a.committed == nil || now-a.committed.at >= lifetime) {
		c.emit(Event{Kind: nonceFreed, Sender: a.address, nonce: a.state}, nil)
		c.uncommit(a, a.state) // never shown by the state
		return dropped
	}
	c.close(a)
	return dropped
}
