package txpool

import (
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
)

// graveyard remembers for a while which transactions were replaced or failed in building, so that they do not come back. It is
// bounded: the oldest is forgotten for the newest.
type graveyard struct {
	graves lru.BasicLRU[common.Hash, grave]
}

type grave struct {
	reason error
	until  int64 // Unix nanoseconds
}

const maxGraves = 16 * 1024

func newGraveyard() graveyard { return graveyard{lru.NewBasicLRU[common.Hash, grave](maxGraves)} }

func (g *graveyard) bury(hash common.Hash, reason error, now int64, duration time.Duration) {
	if duration > 0 {
		g.graves.Add(hash, grave{reason, now + int64(duration)})
	}
}

// find returns why a transaction must not come back yet, or nil.
func (g *graveyard) find(hash common.Hash, now int64) error {
	if g.graves.Len() == 0 {
		return nil
	}
	at, there := g.graves.Peek(hash)
	if !there {
		return nil
	}
	if now >= at.until {
		g.graves.Remove(hash)
		return nil
	}
	return fmt.Errorf("%w: %s, want to wait %v", at.reason, hash, time.Duration(at.until-now))
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

func (c *accountCache) forget(address common.Address) { c.accounts.Remove(address) }

func (c *accountCache) clear() { c.accounts.Purge() }
