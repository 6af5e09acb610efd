package txpool

import (
	"errors"
	"fmt"

	"github.com/holiman/uint256"
)

// check returns what is wrong, or nil: the invariants that must hold after every call.
func (c *core) check() error {
	var pending, queued usage
	count := 0
	for addr, a := range c.accounts {
		var cost uint256.Int
		next, seenGap := a.nonce, false
		for i, e := range a.txs {
			count++
			cost.Add(&cost, &e.cost)
			if i > 0 && a.txs[i-1].nonce >= e.nonce {
				return fmt.Errorf("%s: nonces out of order", addr)
			}
			if e.pending {
				pending.add(e)
				if e.lease != 0 && e.nonce != next {
					continue
				}
				if seenGap || e.nonce != next {
					return fmt.Errorf("T1: %s: pending nonce %d, want %d", addr, e.nonce, next)
				}
				next++
			} else {
				queued.add(e)
				seenGap = seenGap || e.nonce >= a.nonce
			}
			if c.all[e.hash] != e {
				return fmt.Errorf("%s is not indexed", e.hash)
			}
		}
		if !cost.Eq(&a.cost) {
			return fmt.Errorf("%s: cost is %v, want %v", addr, &a.cost, &cost)
		}
		if len(a.txs) == 0 || len(a.txs) > c.cfg.MaxPerSender {
			return fmt.Errorf("T2: %s has %d transactions", addr, len(a.txs))
		}
	}
	switch {
	case pending != c.pending || queued != c.queued || count != len(c.all):
		return errors.New("the counts are off")
	case pending.count > c.cfg.MaxPending || pending.bytes > c.cfg.MaxPendingBytes:
		return fmt.Errorf("T2: %+v pending", pending)
	case queued.count > c.cfg.MaxQueued || queued.bytes > c.cfg.MaxQueuedBytes:
		return fmt.Errorf("T2: %+v queued", queued)
	}
	return nil
}
