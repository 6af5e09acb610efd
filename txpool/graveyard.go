package txpool

import (
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
)

// graveyard remembers for a while which transactions were replaced or failed in building, so that they do not come back. It is
// bounded: the oldest is forgotten for the newest. Eight bytes of a hash are enough to know one by: who finds another transaction with the
// same has only made that one wait.
type graveyard struct {
	graves map[uint64]grave
	ring   []uint64 // the same by age, from next on
	next   int
}

type grave struct {
	until  int64 // Unix nanoseconds
	failed bool  // in building; else it was replaced
}

const maxGraves = 16 * 1024

func newGraveyard() graveyard { return graveyard{graves: make(map[uint64]grave)} }

// bury remembers a transaction by the prefix of its hash; failed, that it failed in building, else that it was replaced.
func (g *graveyard) bury(at uint64, failed bool, now int64, duration time.Duration) {
	if duration <= 0 {
		return
	}
	if _, there := g.graves[at]; !there {
		if len(g.ring) < maxGraves {
			g.ring = append(g.ring, at)
		} else {
			delete(g.graves, g.ring[g.next])
			g.ring[g.next] = at
			g.next = (g.next + 1) % maxGraves
		}
	}
	g.graves[at] = grave{now + int64(duration), failed}
}

// find returns why a transaction must not come back yet, or nil.
func (g *graveyard) find(hash common.Hash, now int64) error {
	if len(g.graves) == 0 {
		return nil
	}
	at, there := g.graves[hashPrefix(hash)]
	if !there || now >= at.until {
		return nil
	}
	reason := ErrReplaced
	if at.failed {
		reason = ErrQuarantined
	}
	return fmt.Errorf("%w: %s, want to wait %v", reason, hash, time.Duration(at.until-now))
}

// accountCache holds accounts that have nothing in the pool, so that a flood of refused transactions does not read the host's state each time.
type accountCache struct {
	accounts lru.BasicLRU[common.Address, Account]
}

func newAccountCache(size int) accountCache {
	return accountCache{lru.NewBasicLRU[common.Address, Account](size)}
}

func (c *accountCache) put(address common.Address, account Account) {
	c.accounts.Add(address, account)
}

func (c *accountCache) get(address common.Address) (Account, bool) { return c.accounts.Get(address) }

func (c *accountCache) has(address common.Address) bool {
	return c.accounts.Len() > 0 && c.accounts.Contains(address)
}

func (c *accountCache) forget(address common.Address) { c.accounts.Remove(address) }

func (c *accountCache) clear() { c.accounts.Purge() }
