package txpool

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sweepWays are how transactions of an account come in line that another one, or itself, delegates.
var sweepWays = map[string]func(s *siege, who, other int){
	"delegated before": func(s *siege, who, _ int) {
		s.delegated(who)
		s.offer(chain(who, 0, 8, 20)...)
	},
	"in a batch": func(s *siege, who, _ int) {
		s.delegated(who)
		s.offerAll(chain(who, 0, 8, 20)...)
	},
	"children first": func(s *siege, who, _ int) {
		s.delegated(who)
		s.offer(backwards(chain(who, 0, 8, 20))...)
	},
	"by itself, then its chain": func(s *siege, who, _ int) {
		_ = s.Add(setCode(who, 0, 20, delegate(who, 1)))
		s.offer(chain(who, 1, 7, 20)...)
		s.offer(chain(who, 2, 7, 20)...)
	},
	"its chain, then by itself": func(s *siege, who, _ int) {
		s.offer(chain(who, 0, 7, 20)...)
		_ = s.Add(setCode(who, 7, 20, delegate(who, 8)))
		_ = s.Add(tx(who, 8, 20))
	},
	"its parent is replaced": func(s *siege, who, _ int) {
		s.offer(chain(who, 0, 7, 20)...)
		_ = s.Add(setCode(who, 0, 40, delegate(who, 1)))
	},
	"its chain, then by another": func(s *siege, who, other int) {
		s.offer(chain(who, 0, 8, 20)...)
		_ = s.Add(setCode(other, 0, 20, delegate(who, 0)))
	},
	"by another for the middle of its chain": func(s *siege, who, other int) {
		s.offer(chain(who, 0, 8, 20)...)
		_ = s.Add(setCode(other, 0, 20, delegate(who, 3)))
	},
	"by another first, for the middle of its chain": func(s *siege, who, other int) {
		_ = s.Add(setCode(other, 0, 20, delegate(who, 3)))
		s.offer(chain(who, 0, 8, 20)...)
	},
	"by another behind a gap that closes": func(s *siege, who, other int) {
		_ = s.Add(setCode(other, 1, 20, delegate(who, 0)))
		s.offer(chain(who, 0, 8, 20)...)
		_ = s.Add(tx(other, 0, 20))
	},
	"by another that is parked until the base fee falls": func(s *siege, who, other int) {
		s.setBaseFee(2)
		_ = s.Add(setCode(other, 0, 1, delegate(who, 0)))
		s.offer(chain(who, 0, 8, 20)...)
		s.setBaseFee(0)
	},
	"its chain is parked until the base fee falls": func(s *siege, who, other int) {
		s.setBaseFee(2)
		for nonce := range uint64(8) {
			_ = s.Add(capped(who, nonce, 1, 1))
		}
		_ = s.Add(setCode(other, 0, 20, delegate(who, 0)))
		s.setBaseFee(0)
	},
	"its chain is behind a gap that closes": func(s *siege, who, other int) {
		s.offer(chain(who, 1, 8, 20)...)
		_ = s.Add(setCode(other, 0, 20, delegate(who, 0)))
		_ = s.Add(tx(who, 0, 20))
	},
	"for any chain": func(s *siege, who, other int) {
		_ = s.Add(setCode(other, 0, 20, delegateOn(who, 0, 0)))
		s.offer(chain(who, 0, 8, 20)...)
	},
	"hidden behind fifteen others": func(s *siege, who, other int) {
		auths := make([]types.SetCodeAuthorization, 15)
		_ = s.Add(setCode(other, 0, 20, append(auths, delegate(who, 0))...))
		s.offer(chain(who, 0, 8, 20)...)
	},
	"while the carrier is locked": func(s *siege, who, other int) {
		_ = s.Add(setCode(other, 0, 2000, delegate(who, 0)))
		s.drain(Budget{Count: 1})
		s.offer(chain(who, 0, 8, 20)...)
	},
	"by a block": func(s *siege, who, other int) {
		s.offer(chain(who, 1, 8, 20)...)
		s.force(setCode(other, 0, 6, delegate(who, 0)))
		s.offer(tx(who, 1, 30))
	},
}

// Of an account that others can empty, no more is in line than Config.MaxDelegated, however it got
// there.
func TestSiegeSweep(t *testing.T) {
	for name, way := range sweepWays {
		t.Run(name, func(t *testing.T) {
			s := besieged(t, 12)
			who, other := s.rogue(0, rich), s.rogue(1, rich)
			way(s, who, other)
			delegates := s.accounts.get(addr(who)).Delegated || s.canDelegate(who)
			if delegates {
				assert.LessOrEqual(t, s.inLine(who), 1, "transactions in line of an account that can be emptied at once")
			}
			s.sweep(9)
			s.judge(0.5)
		})
	}
}

// canDelegate reports whether the transactions that the pool would drain now
// would delegate an account whose transactions are in line.
func (s *siege) canDelegate(i int) bool {
	for _, tx := range s.bundle() {
		for _, auth := range tx.SetCodeAuthorizations() {
			authority, err := auth.Authority()
			if err == nil && authority == addr(i) && auth.Nonce <= s.accounts.get(authority).Nonce+uint64(s.inLine(i)) {
				return true
			}
		}
	}
	return false
}

// Many accounts with one transaction each, all emptied at once. The cost is the call into
// each: more than half of a transfer.
func TestSiegeSweepOfMany(t *testing.T) {
	s := besieged(t, 16)
	for i := range 16 {
		who := s.rogue(i, rich)
		s.delegated(who)
		s.offer(chain(who, 0, 2, 8)...)
	}
	s.sweep(9)
	s.judge(0.5)
	for i := range 16 {
		s.admits(100+i, 5)
	}
}

// One carrier makes the transactions of all its authorities late: it pays for each of them.
func TestSiegeNonceBump(t *testing.T) {
	s := besieged(t, 17)
	var auths []types.SetCodeAuthorization
	for i := range 16 {
		s.offer(tx(s.rogue(i, rich), 0, 8))
		auths = append(auths, delegate(attacker+i, 0))
	}
	s.offer(setCode(s.rogue(16, rich), 0, 9, auths...))
	s.produce(Budget{Count: 1})
	s.judge(1)
}

// throttled is a victim whose authorization a stranger copied; throttleEnds are how the stranger's
// carrier stops being able to run.
const throttled = 600

var throttleEnds = map[string]func(s *siege, _ *types.Transaction){
	"removed":          func(s *siege, grief *types.Transaction) { s.remove(grief) },
	"failed":           func(s *siege, grief *types.Transaction) { require.NoError(s.t, s.Reject(grief.Hash(), errTest)) },
	"expired":          func(s *siege, _ *types.Transaction) { s.advance(2 * time.Hour); s.CleanupExpired() },
	"parked":           func(s *siege, _ *types.Transaction) { s.setBaseFee(9) },
	"included":         func(s *siege, _ *types.Transaction) { s.produce(Budget{Count: 1}) },
	"its nonce passed": func(s *siege, _ *types.Transaction) { s.force(tx(attacker, 0, 1)) },
	"failed in a session": func(s *siege, grief *types.Transaction) {
		b := s.drain(Budget{Count: 1})
		require.NoError(s.t, s.Reject(grief.Hash(), errTest))
		b.Cancel()
	},
	"evicted": func(s *siege, grief *types.Transaction) {
		for i := range 16 {
			s.offer(tx(700+i, 0, 20))
		}
		require.Nil(s.t, s.Get(grief.Hash()))
	},
	"its account was emptied": func(s *siege, _ *types.Transaction) {
		s.accounts[addr(attacker)] = Account{}
		s.head(Block{})
	},
	"the victim's nonce passed": func(s *siege, _ *types.Transaction) { s.force(tx(throttled, 0, 1)) },
	"replaced": func(s *siege, _ *types.Transaction) {
		s.add(setCode(attacker, 0, 12, types.SetCodeAuthorization{}))
	},
}

// A stranger's carrier holds a victim back no longer than it can run itself, and never from
// replacing.
func TestSiegeThrottleEnds(t *testing.T) {
	for name, end := range throttleEnds {
		t.Run(name, func(t *testing.T) {
			s := newSiege(t, 16)
			grief := setCode(s.rogue(0, rich), 0, 8, delegate(throttled, 0))
			s.add(grief)
			end(s, grief)
			account := s.accounts.get(addr(throttled))
			if account.Delegated { // it ran: the victim is delegated in truth
				require.Equal(t, "included", name)
				return
			}
			for nonce := account.Nonce; nonce < account.Nonce+4; nonce++ {
				require.NoError(t, s.Add(tx(throttled, nonce, 30)), "nonce %d of the victim", nonce)
			}
			require.Equal(t, 4, s.inLine(throttled))
		})
	}
}

func TestSiegeThrottled(t *testing.T) {
	t.Run("replacing", func(t *testing.T) {
		s := newSiege(t, 16)
		s.add(setCode(s.rogue(0, rich), 0, 8, delegate(throttled, 0)), tx(throttled, 0, 5))
		for price := int64(8); price < 40; price += 8 {
			s.add(tx(throttled, 0, price))
		}
	})
	t.Run("a victim with a chain keeps it", func(t *testing.T) {
		s := newSiege(t, 16)
		s.honour(chain(throttled, 0, 4, 5)...)
		for i := range 8 {
			s.offer(setCode(s.rogue(i, rich), 0, 100, delegate(throttled, uint64(i))))
		}
		s.judge(1)
		require.Equal(t, 4, s.inLine(throttled))
	})
	t.Run("authorizations that cannot apply", func(t *testing.T) {
		s := newSiege(t, 40)
		s.accounts[addr(throttled)] = Account{Nonce: 5, Balance: *uint256.NewInt(1e18)}
		spoiled := delegate(throttled, 5)
		spoiled.R = *new(uint256.Int).AddUint64(&spoiled.R, 1)
		malleable := delegate(throttled, 5) // a high s is invalid (EIP-2, EIP-7702)
		order, _ := new(big.Int).SetString("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", 16)
		malleable.S = *uint256.MustFromBig(new(big.Int).Sub(order, malleable.S.ToBig()))
		malleable.V ^= 1
		for i, auth := range []types.SetCodeAuthorization{delegateOn(throttled, 5, 77), spoiled, malleable, delegate(throttled, 4), delegate(throttled, 1<<40)} {
			s.add(setCode(s.rogue(i, rich), 0, 8, auth))
		}
		s.add(setCode(s.rogue(10, rich), 1, 8, delegate(throttled, 5)))
		s.setBaseFee(2)
		s.add(setCode(s.rogue(11, rich), 0, 1, delegate(throttled, 5)))
		for nonce := uint64(5); nonce < 9; nonce++ {
			s.add(tx(throttled, nonce, 30))
		}
	})
}

// Many carriers that cannot run neither restrict nor displace other
// transactions.
func TestSiegeIdleCarriers(t *testing.T) {
	s := newSiege(t, 16)
	for i := range 8 {
		s.honour(tx(i, 0, 5))
	}
	s.setBaseFee(2)
	for i := range 40 {
		who := s.rogue(i, rich)
		s.offer(setCode(who, 1, 1000, delegate(i%8, 0)), setCode(who, 0, 1, delegate(i%8, 0)))
	}
	s.judge(1)
	for i := range 8 {
		s.honour(tx(i, 1, 30))
	}
}
