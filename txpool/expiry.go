package txpool

import (
	"time"
	"weak"
)

// clock returns the time by which the pool measures ages, in Unix nanoseconds.
// If Config.Now returns times with a monotonic reading, as time.Now does, it
// follows that reading from the pool's beginning. Setting the machine's clock
// then makes nothing older or younger.
func (p *Pool) clock() int64 { return p.at(p.cfg.Now()) }

// at returns the time of the pool's clock at which Config.Now returned t.
func (p *Pool) at(t time.Time) int64 { return p.begun.UnixNano() + int64(t.Sub(p.begun)) }

// CleanupExpired releases expired leases, drops expired transactions, and tries
// to admit transactions that are held aside. It returns the number of dropped
// transactions. It works in slices. The pool calls it by itself: see
// Config.Lifetime.
func (p *Pool) CleanupExpired() int {
	defer p.begin()()
	return p.expireAll(p.clock())
}

// expireAll is CleanupExpired for a caller that holds p.long.
func (p *Pool) expireAll(now int64) int {
	p.expireLeases()
	dropped := p.retryHeld()
	p.sweep(func(c *core, from, to int) func() {
		dropped += c.expireSlice(from, to, now)
		return nil
	})
	p.sweptAt.Store(now)
	p.lock()
	defer p.mu.Unlock()
	p.expiry = expiry{}
	p.core.departures.prune(p.time(now))
	return dropped
}

func (c *core) expireSlice(from, to int, now int64) (dropped int) {
	for i := to - 1; i >= from; i-- {
		dropped += c.expire(c.list[i], now)
	}
	return dropped
}

// expiry is the state of the expiry that needs no call of the host.
type expiry struct {
	running bool // a sweep has begun
	left    int  // senders that it has not visited
}

// expireSome does a slice of the work of CleanupExpired if it is due. Add calls
// it, so that the work is spread.
func (p *Pool) expireSome(now int64) {
	if now-p.sweptAt.Load() < int64(p.cfg.Lifetime/expiryShare) || !p.long.TryLock() {
		return
	}
	defer p.deliverSome(deliverShare) // after the next line
	defer p.long.Unlock()
	_ = p.step(func(c *core) error {
		x := &p.expiry
		if !x.running {
			x.running, x.left = true, len(c.list)
		}
		from, to := c.slice(x.left)
		c.expireSlice(from, to, now)
		if x.left = from; from == 0 {
			p.expiry = expiry{}
			p.sweptAt.Store(now)
		}
		return nil
	})
}

// expireLeases releases leases whose time is over, except those of running
// sessions. The caller holds p.long.
func (p *Pool) expireLeases() {
	now := p.cfg.Now()
	for _, l := range p.Leases() {
		p.lock()
		over := !now.Before(l.expires)
		if over && (l.bundled || l.session != nil && l.session.ctx.Err() == nil) {
			l.renew()
			over = false
		}
		p.mu.Unlock()
		if over {
			_ = l.closeLocked(leaseReleased, giveBack(l.sealed))
		}
	}
}

// expiryShare is the part of Config.Lifetime by which a transaction may outlive
// it before the pool drops it.
const expiryShare = 16

// expireDue does the work of CleanupExpired if it is due. Build and Reset call
// it, so that it needs no timer while the host builds blocks.
func (p *Pool) expireDue() {
	if p.clock()-p.sweptAt.Load() >= int64(p.cfg.Lifetime/expiryShare) {
		p.CleanupExpired()
		return
	}
	defer p.begin()()
	p.expireLeases()
}

// keepExpiring starts a timer that calls expireDue while the pool has
// transactions or leases, if it does not run. It keeps no pool alive that the
// host has forgotten. If Config.Now is set, there is no timer, because that clock
// may stand still.
func (p *Pool) keepExpiring() {
	if p.ownClock || !p.expiring.CompareAndSwap(false, true) {
		return
	}
	pool := weak.Make(p)
	time.AfterFunc(max(min(p.cfg.Lifetime/expiryShare, p.cfg.LeaseLifetime), time.Millisecond), func() {
		if p := pool.Value(); p != nil {
			p.expireByTimer()
		}
	})
}

// expireByTimer is the function of the timer.
func (p *Pool) expireByTimer() {
	p.timing.Lock()
	defer p.timing.Unlock()
	if p.closed {
		return
	}
	defer func() {
		if r := recover(); r != nil { // no caller could recover it
			p.cfg.Logger.Error("txpool: a function of the host panicked", "panic", r)
		}
	}()
	p.expiring.Store(false) // also if the host panics
	p.expireDue()
	p.lock()
	some := p.core.all.len() > 0 || len(p.core.list) > 0 || len(p.leases) > 0 || len(p.core.aside.txs) > 0
	p.mu.Unlock()
	if some {
		p.keepExpiring()
	}
}

// Close ends the search for expired transactions by a timer, and waits for a
// running one. A host calls it before it closes its State or its journal. It
// must not be called from Config.Observe.
func (p *Pool) Close() {
	p.timing.Lock()
	defer p.timing.Unlock()
	p.closed = true
}

// time returns a time of the pool's clock.
func (p *Pool) time(clock int64) time.Time {
	return p.begun.Add(time.Duration(clock - p.begun.UnixNano()))
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
		if e.lease == nil && now-e.at >= lifetime && !followed {
			p.leaves = append(p.leaves, leaving{e, Dropped, ErrExpired})
			p.index = i
			continue
		}
		followed = i < int(a.line)
	}
	if len(p.leaves) > 0 {
		c.apply(p)
	}
	if a.nonce > a.state && len(a.txs) == 0 && (a.committed == nil || now-a.committed.at >= lifetime) {
		c.emit(Event{Kind: nonceFreed, Sender: a.address, nonce: a.state}, nil)
		c.uncommit(a, a.state) // never shown by the state
	}
	c.close(a)
	return len(p.leaves)
}
