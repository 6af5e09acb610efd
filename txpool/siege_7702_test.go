package txpool_test

import (
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/txpool"
)

// carrier returns a set-code transaction with the given fee cap in gwei.
func carrier(i int, nonce uint64, tip, limit int64, auths ...types.SetCodeAuthorization) *types.Transaction {
	return types.MustSignNewTx(key(i), signer, &types.SetCodeTx{
		ChainID: uint256.MustFromBig(chainID), Nonce: nonce, GasTipCap: wei(tip), GasFeeCap: wei(limit),
		Gas: gas + 25_000*uint64(len(auths)), To: common.Address{1}, AuthList: auths,
	})
}

// sweep empties all delegated accounts of the attacker, as one transaction of
// another account can, and charges for it: a call with a value into cold
// delegated code, 11,900 gas each (EIP-2929, EIP-7702), at the given price in
// gwei.
func (s *siege) sweep(price int64) {
	s.mu.Lock()
	s.paid += float64(gas * price)
	for who := range s.mine {
		if account := s.chain.get(who); account.Delegated {
			account.Balance.Clear()
			s.chain[who] = account
			s.paid += float64(11_900 * price)
		}
	}
	s.mu.Unlock()
	s.head(nil)
}

// inLine is how many transactions of an account can run.
func (s *siege) inLine(i int) int {
	pending, _ := s.pool.ContentFrom(address(i))
	return len(pending)
}

// sweepWays are how transactions of an account come in line that another one, or itself, delegates.
var sweepWays = map[string]func(s *siege, who, other int){
	"delegated before": func(s *siege, who, _ int) {
		s.delegated(who)
		addAll(s, chain(who, 0, 8, 20, 0)...)
	},
	"in a batch": func(s *siege, who, _ int) {
		s.delegated(who)
		s.pool.AddAll(chain(who, 0, 8, 20, 0))
	},
	"children first": func(s *siege, who, _ int) {
		s.delegated(who)
		addAll(s, reversed(chain(who, 0, 8, 20, 0))...)
	},
	"by itself, then its chain": func(s *siege, who, _ int) {
		_ = s.pool.Add(carrier(who, 0, 20, 20, authorization(who, 1)))
		addAll(s, chain(who, 1, 7, 20, 0)...)
		addAll(s, chain(who, 2, 7, 20, 0)...)
	},
	"its chain, then by itself": func(s *siege, who, _ int) {
		addAll(s, chain(who, 0, 7, 20, 0)...)
		_ = s.pool.Add(carrier(who, 7, 20, 20, authorization(who, 8)))
		_ = s.pool.Add(transfer(who, 8, 20, 0))
	},
	"its parent is replaced": func(s *siege, who, _ int) {
		addAll(s, chain(who, 0, 7, 20, 0)...)
		_ = s.pool.Add(carrier(who, 0, 40, 40, authorization(who, 1)))
	},
	"its chain, then by another": func(s *siege, who, other int) {
		addAll(s, chain(who, 0, 8, 20, 0)...)
		_ = s.pool.Add(carrier(other, 0, 20, 20, authorization(who, 0)))
	},
	"by another for the middle of its chain": func(s *siege, who, other int) {
		addAll(s, chain(who, 0, 8, 20, 0)...)
		_ = s.pool.Add(carrier(other, 0, 20, 20, authorization(who, 3)))
	},
	"by another first, for the middle of its chain": func(s *siege, who, other int) {
		_ = s.pool.Add(carrier(other, 0, 20, 20, authorization(who, 3)))
		addAll(s, chain(who, 0, 8, 20, 0)...)
	},
	"by another behind a gap that closes": func(s *siege, who, other int) {
		_ = s.pool.Add(carrier(other, 1, 20, 20, authorization(who, 0)))
		addAll(s, chain(who, 0, 8, 20, 0)...)
		_ = s.pool.Add(transfer(other, 0, 20, 0))
	},
	"by another that is parked until the base fee falls": func(s *siege, who, other int) {
		s.setBaseFee(2)
		_ = s.pool.Add(carrier(other, 0, 1, 1, authorization(who, 0)))
		addAll(s, chain(who, 0, 8, 20, 0)...)
		s.setBaseFee(0)
	},
	"its chain is parked until the base fee falls": func(s *siege, who, other int) {
		s.setBaseFee(2)
		for nonce := range uint64(8) {
			_ = s.pool.Add(dynamic(who, nonce, 1, 1))
		}
		_ = s.pool.Add(carrier(other, 0, 20, 20, authorization(who, 0)))
		s.setBaseFee(0)
	},
	"its chain is behind a gap that closes": func(s *siege, who, other int) {
		addAll(s, chain(who, 1, 8, 20, 0)...)
		_ = s.pool.Add(carrier(other, 0, 20, 20, authorization(who, 0)))
		_ = s.pool.Add(transfer(who, 0, 20, 0))
	},
	"for any chain": func(s *siege, who, other int) {
		auth, err := types.SignSetCode(key(who), types.SetCodeAuthorization{Address: common.Address{2}})
		require.NoError(s.t, err)
		_ = s.pool.Add(carrier(other, 0, 20, 20, auth))
		addAll(s, chain(who, 0, 8, 20, 0)...)
	},
	"hidden behind fifteen others": func(s *siege, who, other int) {
		auths := make([]types.SetCodeAuthorization, 15)
		_ = s.pool.Add(carrier(other, 0, 20, 20, append(auths, authorization(who, 0))...))
		addAll(s, chain(who, 0, 8, 20, 0)...)
	},
	"while the carrier is leased": func(s *siege, who, other int) {
		_ = s.pool.Add(carrier(other, 0, 2000, 2000, authorization(who, 0)))
		s.pool.Drain(txpool.Budget{Count: 1})
		addAll(s, chain(who, 0, 8, 20, 0)...)
	},
	"while the carrier is committed": func(s *siege, who, other int) {
		_ = s.pool.Add(carrier(other, 0, 2000, 2000, authorization(who, 0)))
		lease := s.pool.Drain(txpool.Budget{Count: 1})
		bundle := lease.Transactions()
		require.NoError(s.t, lease.Commit())
		addAll(s, chain(who, 1, 8, 20, 0)...) // the account's nonce is 1 once that has run
		addAll(s, chain(who, 0, 8, 20, 0)...)
		require.NoError(s.t, s.run(bundle[0]))
		s.head(bundle)
	},
	"by a block": func(s *siege, who, other int) {
		addAll(s, chain(who, 1, 8, 20, 0)...)
		s.force(carrier(other, 0, 6, 6, authorization(who, 0)))
		addAll(s, transfer(who, 1, 30, 0))
	},
}

// Of an account that others can empty, no more is in line than Config.MaxDelegated, however it got
// there.
func TestSiegeSweep(t *testing.T) {
	for name, way := range sweepWays {
		t.Run(name, func(t *testing.T) {
			s := besieged(t, 12, nil)
			who, other := s.rogue(0, rich), s.rogue(1, rich)
			way(s, who, other)
			delegates := s.chain.get(address(who)).Delegated || s.canDelegate(who)
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
	var bundle []*types.Transaction
	for _, lease := range s.pool.Leases() {
		bundle = append(bundle, lease.Transactions()...)
	}
	bundle = append(bundle, s.pool.Candidates()...)
	for _, tx := range bundle {
		for _, auth := range tx.SetCodeAuthorizations() {
			authority, err := auth.Authority()
			if err == nil && authority == address(i) && auth.Nonce <= s.chain.get(authority).Nonce+uint64(s.inLine(i)) {
				return true
			}
		}
	}
	return false
}

// Many accounts with one transaction each, all emptied at once. The cost is the call into
// each: more than half of a transfer.
func TestSiegeSweepOfMany(t *testing.T) {
	s := besieged(t, 16, nil)
	for i := range 16 {
		who := s.rogue(i, rich)
		s.delegated(who)
		addAll(s, chain(who, 0, 2, 8, 0)...)
	}
	s.sweep(9)
	s.judge(0.5)
	for i := range 16 {
		s.admits(100+i, 5)
	}
}

// One carrier makes the transactions of all its authorities late: it pays for each of them.
func TestSiegeNonceBump(t *testing.T) {
	s := besieged(t, 17, nil)
	var auths []types.SetCodeAuthorization
	for i := range 16 {
		addAll(s, transfer(s.rogue(i, rich), 0, 8, 0))
		auths = append(auths, authorization(attacker+i, 0))
	}
	addAll(s, carrier(s.rogue(16, rich), 0, 9, 9, auths...))
	s.build(txpool.Budget{Count: 1})
	s.judge(1)
}

// throttled is a victim whose authorization a stranger copied; throttleEnds are how the stranger's
// carrier stops being able to run.
const throttled = 600

var throttleEnds = map[string]func(s *siege, tx *types.Transaction){
	"removed":          func(s *siege, tx *types.Transaction) { require.NoError(s.t, s.pool.Remove(tx.Hash())) },
	"failed":           func(s *siege, tx *types.Transaction) { require.NoError(s.t, s.pool.Reject(tx.Hash(), errors.New("x"))) },
	"expired":          func(s *siege, tx *types.Transaction) { s.now = s.now.Add(2 * time.Hour); s.pool.CleanupExpired() },
	"parked":           func(s *siege, tx *types.Transaction) { s.setBaseFee(9) },
	"included":         func(s *siege, tx *types.Transaction) { s.build(txpool.Budget{Count: 1}) },
	"its nonce passed": func(s *siege, tx *types.Transaction) { s.force(transfer(attacker, 0, 1, 0)) },
	"failed in a lease": func(s *siege, tx *types.Transaction) {
		lease := s.pool.Drain(txpool.Budget{Count: 1})
		require.NoError(s.t, lease.Reject(tx.Hash(), errors.New("x")))
		require.NoError(s.t, lease.Commit())
	},
	"evicted": func(s *siege, tx *types.Transaction) {
		for i := range 16 {
			addAll(s, transfer(700+i, 0, 20, 0))
		}
		require.Nil(s.t, s.pool.Get(tx.Hash()))
	},
	"its account was emptied": func(s *siege, tx *types.Transaction) {
		s.chain[address(attacker)] = txpool.Account{}
		s.head(nil)
	},
	"the victim's nonce passed": func(s *siege, tx *types.Transaction) {
		s.force(transfer(throttled, 0, 1, 0))
	},
	"replaced": func(s *siege, tx *types.Transaction) {
		require.NoError(s.t, s.pool.Add(carrier(attacker, 0, 12, 12, types.SetCodeAuthorization{})))
	},
}

// A stranger's carrier holds a victim back no longer than it can run itself, and never from
// replacing.
func TestSiegeThrottleEnds(t *testing.T) {
	for name, end := range throttleEnds {
		t.Run(name, func(t *testing.T) {
			s := newSiege(t, 16, nil)
			grief := carrier(s.rogue(0, rich), 0, 8, 8, authorization(throttled, 0))
			require.NoError(t, s.pool.Add(grief))
			end(s, grief)
			account := s.chain.get(address(throttled))
			if account.Delegated { // it ran: the victim is delegated in truth
				require.Equal(t, "included", name)
				return
			}
			for nonce := account.Nonce; nonce < account.Nonce+4; nonce++ {
				require.NoError(t, s.pool.Add(transfer(throttled, nonce, 30, 0)), "nonce %d of the victim", nonce)
			}
			require.Equal(t, 4, s.inLine(throttled))
		})
	}
}

func TestSiegeThrottled(t *testing.T) {
	t.Run("replacing", func(t *testing.T) {
		s := newSiege(t, 16, nil)
		require.NoError(t, s.pool.Add(carrier(s.rogue(0, rich), 0, 8, 8, authorization(throttled, 0))))
		require.NoError(t, s.pool.Add(transfer(throttled, 0, 5, 0)))
		for price := int64(8); price < 40; price += 8 {
			require.NoError(t, s.pool.Add(transfer(throttled, 0, price, 0)))
		}
	})
	t.Run("a victim with a chain keeps it", func(t *testing.T) {
		s := newSiege(t, 16, nil)
		for nonce := range uint64(4) {
			s.honour(transfer(throttled, nonce, 5, 0))
		}
		for i := range 8 {
			addAll(s, carrier(s.rogue(i, rich), 0, 100, 100, authorization(throttled, uint64(i))))
		}
		s.judge(1)
		require.Equal(t, 4, s.inLine(throttled))
	})
	t.Run("authorizations that cannot apply", func(t *testing.T) {
		s := newSiege(t, 40, nil)
		s.chain[address(throttled)] = txpool.Account{Nonce: 5, Balance: *uint256.NewInt(1e18)}
		elsewhere, err := types.SignSetCode(key(throttled), types.SetCodeAuthorization{ChainID: *uint256.NewInt(77), Nonce: 5})
		require.NoError(t, err)
		spoiled := authorization(throttled, 5)
		spoiled.R = *new(uint256.Int).AddUint64(&spoiled.R, 1)
		malleable := authorization(throttled, 5) // a high s is invalid (EIP-2, EIP-7702)
		order, _ := new(big.Int).SetString("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", 16)
		malleable.S = *uint256.MustFromBig(new(big.Int).Sub(order, malleable.S.ToBig()))
		malleable.V ^= 1
		for i, auth := range []types.SetCodeAuthorization{elsewhere, spoiled, malleable, authorization(throttled, 4), authorization(throttled, 1<<40)} {
			require.NoError(t, s.pool.Add(carrier(s.rogue(i, rich), 0, 8, 8, auth)))
		}
		require.NoError(t, s.pool.Add(carrier(s.rogue(10, rich), 1, 8, 8, authorization(throttled, 5))))
		s.setBaseFee(2)
		require.NoError(t, s.pool.Add(carrier(s.rogue(11, rich), 0, 1, 1, authorization(throttled, 5))))
		for nonce := uint64(5); nonce < 9; nonce++ {
			require.NoError(t, s.pool.Add(transfer(throttled, nonce, 30, 0)))
		}
	})
}

// Many carriers that cannot run neither restrict nor displace other
// transactions.
func TestSiegeIdleCarriers(t *testing.T) {
	s := newSiege(t, 16, nil)
	for i := range 8 {
		s.honour(transfer(i, 0, 5, 0))
	}
	s.setBaseFee(2)
	for i := range 40 {
		who := s.rogue(i, rich)
		addAll(s, carrier(who, 1, 1000, 1000, authorization(i%8, 0)), carrier(who, 0, 1, 1, authorization(i%8, 0)))
	}
	s.judge(1)
	for i := range 8 {
		s.honour(transfer(i, 1, 30, 0))
	}
}
