package txpool

import (
	"fmt"
	"maps"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Transactions behind gaps take no places of those that can run, also when the
// gaps close.
func TestSiegeFutureFlood(t *testing.T) {
	for _, accounts := range []int{1, 2000} {
		t.Run(fmt.Sprint(accounts), func(t *testing.T) {
			s := besieged(t, 16)
			for i := range accounts {
				who := s.rogue(i, rich)
				for nonce := uint64(1); nonce < uint64(max(70/accounts, 2)); nonce++ {
					_ = s.Add(tx(who, nonce, 1000))
				}
			}
			s.judge(1)
			s.admits(500, 9)
			for i := range 16 { // the gaps close
				_ = s.Add(tx(attacker+i%accounts, 0, 6))
			}
			s.judge(1)
			s.admits(501, 9)
		})
	}
}

// overdrawn is the balance of each account in overdraftWays, in gwei. overdraft
// offers it and more: the first transaction moves all of it.
const overdrawn = 2000 * txGas

func overdraft(who int) []*types.Transaction {
	return append([]*types.Transaction{valued(who, 0, 100, overdrawn-100*txGas)}, chain(who, 1, 7, 100)...)
}

// overdraftWays are ways in which an account can offer its balance more than
// once.
var overdraftWays = map[string]func(s *siege, who int){
	"one by one":     func(s *siege, who int) { s.offer(overdraft(who)...) },
	"in a batch":     func(s *siege, who int) { s.offerAll(overdraft(who)...) },
	"children first": func(s *siege, who int) { s.offer(backwards(overdraft(who))...) },
	"children first in a batch": func(s *siege, who int) {
		s.offerAll(backwards(overdraft(who))...)
	},
	"behind a gap, then a dear parent": func(s *siege, who int) { // MemPurge
		s.offer(chain(who, 1, 8, 200)...)
		_ = s.Add(valued(who, 0, 100, overdrawn-100*txGas))
	},
	"replaced parent": func(s *siege, who int) {
		s.offer(chain(who, 0, 8, 100)...)
		_ = s.Add(valued(who, 0, 200, overdrawn-200*txGas))
	},
	"replaced child in a batch": func(s *siege, who int) {
		s.offerAll(append(chain(who, 0, 8, 100), valued(who, 7, 200, overdrawn-200*txGas), valued(who, 6, 200, overdrawn-200*txGas))...)
	},
	"behind a locked one": func(s *siege, who int) {
		_ = s.Add(valued(who, 0, 100, overdrawn-100*txGas))
		s.drain(Budget{Count: 1})
		s.offer(chain(who, 1, 8, 100)...)
	},
	"behind a block": func(s *siege, who int) {
		s.offer(chain(who, 1, 8, 200)...)
		s.force(valued(who, 0, 1, overdrawn-300*txGas)) // leaves enough for one
		_ = s.Add(tx(who, 1, 201))
	},
	"sums that overflow": func(s *siege, who int) {
		for nonce := range uint64(8) {
			s.offer(sign(who, &types.LegacyTx{
				Nonce: nonce, GasPrice: gweis(100), Gas: txGas, To: there, Value: new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), gweis(100*txGas)),
			}), legacy(who, nonce, new(big.Int).Lsh(big.NewInt(1), 255), 2*txGas, 0))
		}
	},
}

// A balance is spent once, in whatever way the transactions come.
func TestSiegeOverdraft(t *testing.T) {
	for name, way := range overdraftWays {
		t.Run(name, func(t *testing.T) {
			s := besieged(t, 8)
			for i := range 3 {
				way(s, s.rogue(i, overdrawn))
			}
			s.judge(1)
			s.produce(Budget{})
			s.judge(1)
			s.admits(500, 1000)
		})
	}
}

// Dear children on a parent that the attacker takes away w.
func TestSiegeTurningParents(t *testing.T) {
	t.Run("the parent is evicted", func(t *testing.T) {
		s := besieged(t, 8)
		s.offer(tx(s.rogue(0, rich), 0, 6))
		s.offer(chain(attacker, 1, 7, 1000)...)
		for i := range 8 {
			s.offer(tx(s.rogue(1+i, rich), 0, 7))
		}
		s.judge(1)
		s.admits(500, 9)
	})
	t.Run("the parent fails in building", func(t *testing.T) {
		s := besieged(t, 8)
		s.offer(chain(s.rogue(0, rich), 0, 8, 8)...)
		pending, _ := s.ContentFrom(addr(attacker))
		require.NotEmpty(t, pending)
		require.NoError(t, s.Reject(pending[0].Hash(), errTest))
		s.admits(500, 9)
		require.Zero(t, s.Stats().Pending-8+len(pending)-1, "its children cannot run")
	})
	t.Run("the parent expires", func(t *testing.T) {
		s := newSiege(t, 8)
		s.offer(tx(s.rogue(0, rich), 0, 8))
		s.advance(59 * time.Minute)
		s.offer(chain(attacker, 1, 7, 8)...)
		s.advance(2 * time.Minute)
		require.Zero(t, s.cleanup(), "its children are young, and pay")
		for i := range 8 {
			s.admits(i, 9)
		}
		s.judge(1)
		s.advance(time.Hour)
		s.CleanupExpired()
		require.Zero(t, s.Size())
	})
	t.Run("the parent was included elsewhere and reverted", func(t *testing.T) {
		s := besieged(t, 8)
		parent := tx(s.rogue(0, rich), 0, 1)
		before := maps.Clone(s.accounts)
		s.force(parent)
		s.offer(chain(attacker, 1, 8, 8)...)
		s.accounts, s.paid = before, 0
		s.Reset(Head{Reverted: []Block{blockOf(parent)}})
		s.admits(500, 9)
		s.judge(1)
	})
}

// The caps of transactions that cannot run cost nothing to fill. A transaction that
// cannot run for a moment must run again.
func TestSiegeIdle(t *testing.T) {
	t.Run("parked by a base fee that rises for a block", func(t *testing.T) {
		s := besieged(t, 8)
		s.setBaseFee(2) // all victims still pay it
		for i := range 40 {
			s.offer(capped(s.rogue(i, rich), 0, 1, 1)) // never pays it
			s.offer(capped(attacker+i, 1, 1000, 1000)) // and a dear child, as worthless
		}
		s.setBaseFee(8) // a block of others' making
		s.setBaseFee(2)
		s.judge(1)
		s.admits(500, 9)
	})
	t.Run("queued while a bundle fails", func(t *testing.T) {
		s := newSiege(t, 8)
		s.honour(append(chain(0, 0, 4, 5), chain(1, 0, 4, 5)...)...)
		for i := range 40 {
			s.offer(tx(s.rogue(i, rich), 1, 1000))
		}
		block := s.commit(Budget{Count: 4})
		for i := range 40 {
			s.offer(tx(attacker+i, 2, 1000))
		}
		s.fails(block.Transactions...)
		s.judge(1)
		s.admits(500, 9)
	})
	t.Run("queued by a reorg", func(t *testing.T) {
		s := newSiege(t, 8)
		before := maps.Clone(s.accounts)
		first := tx(0, 0, 5)
		s.force(first)
		s.honour(chain(0, 1, 3, 5)...)
		for i := range 40 {
			s.offer(tx(s.rogue(i, rich), 1, 1000))
		}
		before[addr(attacker)] = s.accounts[addr(attacker)]
		s.accounts = before
		s.Reset(Head{Reverted: []Block{blockOf(first)}})
		s.judge(1)
		require.Equal(t, 4, s.Stats().Pending)
	})
	t.Run("nonces out of order in one batch", func(t *testing.T) {
		s := newSiege(t, 8)
		for i := range 40 {
			s.offer(tx(s.rogue(i, rich), 1, 1000))
		}
		s.offerAll(backwards(chain(0, 0, 4, 5))...)
		s.admits(500, 5)
	})
}

// A cheap parent does not carry dear children over others, in whatever order they come.
func TestSiegeLowFeeAnchor(t *testing.T) {
	for name, order := range map[string]func([]*types.Transaction) []*types.Transaction{
		"parent first": func(txs []*types.Transaction) []*types.Transaction { return txs }, "children first": backwards,
	} {
		for _, tip := range []int64{4, 5, 6} { // below, at and above the worst
			t.Run(fmt.Sprint(name, tip), func(t *testing.T) {
				s := besieged(t, 8)
				for i := range 4 {
					txs := chain(s.rogue(i, rich), 0, 8, 1000)
					txs[0] = tx(attacker+i, 0, tip)
					s.offer(order(txs)...)
				}
				s.judge(1)
				s.admits(500, 9)
			})
		}
	}
}

// Replacements, of many nonces and in batches, cost what they displace and end.
func TestSiegeReplacementFlood(t *testing.T) {
	s := besieged(t, 8)
	accepted := 0
	for price := int64(8); price < 1_000_000; price += price/8 + 1 {
		var batch []*types.Transaction
		for i := range 3 {
			batch = append(batch, chain(s.rogue(i, rich), 0, 3, price)...)
		}
		accepted += s.offerAll(batch...)
	}
	s.judge(1)
	require.LessOrEqual(t, accepted, 8*11)
	s.set(600, func(a *Account) { a.Balance = *uint256.MustFromBig(gweis(2 * rich)) })
	s.admits(600, 1_000_001) // a higher price is admitted
}

// Long transactions that wait behind a gap, or parked, must not displace many short ones when they
// come in line.
func TestSiegePromotedBytes(t *testing.T) {
	const room = 64 * 1024
	for _, how := range []string{"gap fills", "parent replaced"} {
		t.Run(how, func(t *testing.T) {
			s := newSiege(t, 1000, narrow(15_000, room))
			s.fill(room - 1500)
			who := s.rogue(0, rich)
			switch how {
			case "gap fills":
				s.offer(padded(who, 1, 8, 14_000))
				s.offer(tx(who, 0, 8))
			default:
				s.setBaseFee(4)
				s.offer(capped(who, 0, 3, 3), padded(who, 1, 12, 14_000))
				require.Equal(t, 2, s.Stats().Parked)
				s.offer(capped(who, 0, 8, 12))
			}
			s.judge(1)
		})
	}
}

// Thin caps that waited must not displace when the gap fills: once the base fee rises by an eighth
// they are worth nothing.
func TestSiegePromotedThinCaps(t *testing.T) {
	const price = 100
	s := newSiege(t, 8)
	s.setBaseFee(price)
	for i := range 8 {
		s.honour(capped(i, 0, 5, 3*price+5))
	}
	who := s.rogue(0, rich)
	for nonce := uint64(1); nonce < 8; nonce++ {
		s.offer(capped(who, nonce, 6, price+6))
	}
	s.offer(capped(who, 0, 6, 3*price))
	s.setBaseFee(price * 9 / 8)
	s.judge(1)
}

// A transaction grew old behind a gap, for nothing. Children of it must not displace others just
// before it expires.
func TestSiegeExpiringParent(t *testing.T) {
	s := newSiege(t, 16)
	who := s.rogue(0, rich)
	s.offer(tx(who, 1, 8)) // waits behind a gap, for nothing
	s.advance(59*time.Minute + 50*time.Second)
	s.honour(fair(16)...)
	s.offer(chain(who, 2, 14, 8)...)
	s.offer(tx(who, 0, 8))
	require.Equal(t, 16, s.inLine(who))
	s.advance(10 * time.Second)
	s.CleanupExpired()
	s.judge(1)
}

// At equal prices, the transaction that came in line later gives way, even if
// it was admitted earlier.
func TestSiegePromotedTies(t *testing.T) {
	s := newSiege(t, 8)
	who := s.rogue(0, rich)
	s.offer(chain(who, 1, 7, 5)...)
	for i := range 8 {
		s.honour(tx(i, 0, 5))
	}
	s.offer(tx(who, 0, 6))
	_, gone := s.lost()
	require.LessOrEqual(t, gone, 1, "children with the same tip as residents displaced them: a newcomer must beat the worst strictly (I4)")
}

// Search: no sequence of an attacker's moves on a pool of 4 to 16 slots gets past the oracle.
// Sessions and resets are the host's.
func TestSiegeSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const accounts, poor = 4, 400 * txGas
		s := besieged(t, rapid.IntRange(4, 16).Draw(t, "slots"), func(c *Config) { c.FloorWindow = 20 })
		for i := range accounts {
			s.rogue(i, poor)
		}
		uint64s := func(most uint64, label string) uint64 { return rapid.Uint64Range(0, most).Draw(t, label) }
		for range rapid.IntRange(1, 40).Draw(t, "moves") {
			i := attacker + rapid.IntRange(0, accounts-1).Draw(t, "who")
			tip := rapid.Int64Range(1, 60).Draw(t, "tip")
			next, _ := s.NextNonce(addr(i))
			switch move := rapid.SampledFrom([]string{"normal", "future", "parent", "child", "overdraft", "replacement", "set code", "session", "reset"}).Draw(t, "move"); move {
			case "normal":
				s.offer(tx(i, next, tip))
			case "future":
				s.offer(tx(i, next+1+uint64s(2, "gap"), 1000))
			case "parent":
				s.offer(tx(i, 0, tip))
			case "child":
				s.offer(tx(i, next, 100))
			case "overdraft":
				s.offer(valued(i, next, tip, poor-tip*txGas))
			case "replacement":
				s.offer(valued(i, uint64s(next, "nonce"), 2*tip, rapid.SampledFrom([]int64{0, poor / 2}).Draw(t, "value")))
			case "set code":
				s.offer(setCode(i, next, tip, delegate(attacker+rapid.IntRange(0, accounts-1).Draw(t, "authority"), uint64s(2, "nonce"))))
			case "session":
				s.drain(Budget{Count: 3}).Cancel()
			case "reset":
				s.Reset(Head{Included: []Block{{}}})
			}
			s.check()
		}
		s.judge(1)
	})
}
