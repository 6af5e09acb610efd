package txpool

import "time"

// clock returns the time by which the pool measures ages, in Unix nanoseconds.
// If Config.Now returns times with a monotonic reading, as time.Now does, it
// follows that reading from the pool's beginning. Setting the machine's clock
// then makes nothing older or younger.
func (p *Pool) clock() int64 { return p.at(p.cfg.Now()) }

// at returns the time of the pool's clock at which Config.Now returned t.
func (p *Pool) at(t time.Time) int64 { return p.begun.UnixNano() + int64(t.Sub(p.begun)) }

// CleanupExpired drops expired transactions, and tries to admit transactions that are
// held aside. It returns the number of dropped transactions. Add, Build and Reset do this
// when it is due: see Config.Lifetime. A host that waits for the events while it makes no
// such call calls it now and then.
func (p *Pool) CleanupExpired() int {
	defer p.begin()()
	now := p.clock()
	return p.retryHeld() + p.dropExpired(now)
}

// dropExpired drops the expired transactions of all senders. The caller holds
// p.turn.
func (p *Pool) dropExpired(now int64) (dropped int) {
	_ = p.step(func(c *core) error {
		for i := len(c.list) - 1; i >= 0; i-- { // the last one takes the place of a removed one
			dropped += c.expire(c.list[i], now)
		}
		c.departures.prune(now)
		return nil
	})
	p.sweptAt.Store(now)
	return dropped
}

// due reports whether expired transactions may be in the pool.
func (p *Pool) due(now int64) bool { return now-p.sweptAt.Load() >= int64(p.cfg.Lifetime/expiryShare) }

// expireInAdd drops expired transactions if it is due. It waits for no other call
// and calls no function of the host.
func (p *Pool) expireInAdd(now int64) {
	if p.due(now) && p.turn.TryLock() {
		defer p.turn.Unlock()
		p.dropExpired(now)
	}
}

// expiryShare is the part of Config.Lifetime by which a transaction may outlive
// it before the pool drops it.
const expiryShare = 16

// expireDue does the work of CleanupExpired if it is due. Build and Reset call it.
func (p *Pool) expireDue() {
	if p.due(p.clock()) {
		p.CleanupExpired()
	}
}

// expire drops the expired transactions of a sender, last one first. A
// transaction stays while later ones in line stay: they have displaced others
// and could not run without it.
func (c *core) expire(a *account, now int64) (dropped int) {
	lifetime := int64(c.cfg.Lifetime)
	p := plan{account: a, index: len(a.txs)}
	followed := false // a successor in line stays
	for i := len(a.txs) - 1; i >= 0; i-- {
		e := a.txs[i].entry
		if !e.locked && now-e.at >= lifetime && !followed {
			p.leaves = append(p.leaves, leaving{e, Dropped, ErrExpired})
			p.index = i
			continue
		}
		followed = i < int(a.line)
	}
	if len(p.leaves) > 0 {
		c.apply(p)
	}
	c.close(a)
	return len(p.leaves)
}
