package txpool_test

import (
	"fmt"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/txpool"
)

// siege is a small pool on a chain that executes transactions, so that an
// attacker pays the gas that it uses and not its gas limits. Victims are the
// accounts from 0 on, attackers those from attacker on.
type siege struct {
	t    require.TestingT
	pool *txpool.Pool

	mu      sync.Mutex
	now     time.Time
	chain   ledger
	baseFee int64 // gwei

	// honest are the victims' transactions that wait, mine are the attackers' addresses.
	honest map[common.Hash]*types.Transaction
	mine   map[common.Address]bool
	// earned and paid are the fees that blocks took from victims and from
	// attackers, in gwei.
	earned, paid float64
}

func newSiege(t require.TestingT, slots int, change func(*txpool.Config)) *siege {
	s := &siege{t: t, now: time.Unix(1_800_000_000, 0), chain: make(ledger), honest: make(map[common.Hash]*types.Transaction), mine: make(map[common.Address]bool)}
	cfg := txpool.DefaultConfig(chainID)
	cfg.MaxPending, cfg.MaxParked, cfg.MaxQueued = slots, slots, slots
	cfg.FloorWindow = 0
	cfg.Now = func() time.Time { return s.now }
	if change != nil {
		change(&cfg)
	}
	pool, err := txpool.New(cfg, txpool.StateFunc(func(who common.Address) (txpool.Account, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.chain.get(who), nil
	}))
	require.NoError(t, err)
	s.pool = pool
	return s
}

// besieged is a siege of a pool that victims filled with transfers for 5 to 7 gwei.
func besieged(t require.TestingT, slots int, change func(*txpool.Config)) *siege {
	s := newSiege(t, slots, change)
	for i := range slots {
		s.honour(transfer(i, 0, int64(5+i%3), 0))
	}
	return s
}

// honour adds a victim's transaction, which must be admitted.
func (s *siege) honour(tx *types.Transaction) {
	require.NoError(s.t, s.pool.Add(tx))
	s.honest[tx.Hash()] = tx
}

// rogue gives the attacker an account with a balance in gwei and returns its
// number.
func (s *siege) rogue(i int, balance int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mine[address(attacker+i)] = true
	s.chain[address(attacker+i)] = txpool.Account{Balance: *wei(balance)}
	return attacker + i
}

// delegated makes an account one that others can empty.
func (s *siege) delegated(i int) {
	account := s.chain.get(address(i))
	account.Delegated = true
	s.chain[address(i)] = account
}

// build makes a block of the transactions of a drain and calls Reset. It
// returns how many transactions ran.
func (s *siege) build(budget txpool.Budget) int {
	lease := s.pool.Drain(budget)
	var block []*types.Transaction
	for _, tx := range lease.Transactions() {
		if s.run(tx) != nil {
			_ = lease.Reject(tx.Hash(), fmt.Errorf("it did not run")) // and its successors
			continue
		}
		block = append(block, tx)
	}
	require.NoError(s.t, lease.Commit())
	s.head(block)
	return len(block)
}

// mine puts transactions into a block past the pool, such as by a forced inclusion.
func (s *siege) force(txs ...*types.Transaction) {
	for _, tx := range txs {
		require.NoError(s.t, s.run(tx))
	}
	s.head(txs)
}

func (s *siege) head(block []*types.Transaction) {
	s.now = s.now.Add(6 * time.Second)
	price := big.NewInt(s.baseFee * gwei)
	s.pool.Reset(txpool.Head{Included: []txpool.Block{{BaseFee: price, Transactions: block}}, BaseFee: price})
}

// setBaseFee sets the base fee of the next block, in gwei.
func (s *siege) setBaseFee(price int64) {
	s.baseFee = price
	s.head(nil)
}

// run runs a transaction on the chain, and counts what it pays.
func (s *siege) run(tx *types.Transaction) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, fee, err := s.chain.run(tx, s.baseFee)
	if err != nil {
		return err
	}
	if s.mine[from] {
		s.paid += fee
	} else {
		s.earned += fee
	}
	delete(s.honest, tx.Hash())
	return nil
}

// judge applies the oracle: the fees that the attacker has paid, and would pay
// if all pending transactions ran, are at least λ times those of the victims'
// transactions that were lost.
func (s *siege) judge(lambda float64) {
	lost, gone := 0.0, 0
	for hash, tx := range s.honest {
		if s.pool.Get(hash) == nil {
			lost += fee(tx, 0)
			gone++
		}
	}
	var all []*types.Transaction
	for _, lease := range s.pool.Leases() {
		all = append(all, lease.Transactions()...)
	}
	dry, paid := s.chain.copy(), s.paid
	for _, tx := range append(all, s.pool.Candidates()...) {
		if from, fee, err := dry.run(tx, s.baseFee); err == nil && s.mine[from] {
			paid += fee
		}
	}
	require.GreaterOrEqual(s.t, paid, lambda*lost, "of %d victims' transactions %d are gone, worth %.0f gwei; the attacker pays %.0f", len(s.honest), gone, lost, paid)
}

// admits checks that an honest newcomer is admitted at a fair price, in gwei,
// and runs in the next block.
func (s *siege) admits(i int, price int64) {
	tx := transfer(i, s.chain.get(address(i)).Nonce, price, 0)
	require.NoError(s.t, s.pool.Add(tx), "an honest newcomer who pays %d gwei; watermark %d", price, s.pool.Stats().Watermark)
	s.honest[tx.Hash()] = tx
}

func transfer(i int, nonce uint64, price int64, value int64) *types.Transaction {
	return types.MustSignNewTx(key(i), signer, &types.LegacyTx{Nonce: nonce, GasPrice: big.NewInt(price * gwei), Gas: gas, To: &common.Address{1}, Value: wei(value).ToBig()})
}

// dynamic pays a tip up to a cap, in gwei.
func dynamic(i int, nonce uint64, tip, limit int64) *types.Transaction {
	return types.MustSignNewTx(key(i), signer, &types.DynamicFeeTx{
		ChainID: chainID, Nonce: nonce, GasTipCap: big.NewInt(tip * gwei), GasFeeCap: big.NewInt(limit * gwei), Gas: gas, To: &common.Address{1},
	})
}

// wei converts gwei.
func wei(amount int64) *uint256.Int {
	return new(uint256.Int).Mul(uint256.NewInt(uint64(amount)), uint256.NewInt(gwei))
}

// ledger is the chain's accounts. One that is not there has an ether.
type ledger map[common.Address]txpool.Account

func (l ledger) get(who common.Address) txpool.Account {
	if account, there := l[who]; there {
		return account
	}
	return txpool.Account{Balance: *uint256.NewInt(1e18)}
}

func (l ledger) copy() ledger {
	c := make(ledger, len(l))
	for who, account := range l {
		c[who] = account
	}
	return c
}

// run runs a transaction as a chain with a base fee in gwei does. It returns
// the sender and the amount that it paid above the base fee, in gwei.
func (l ledger) run(tx *types.Transaction, baseFee int64) (from common.Address, paid float64, err error) {
	from, err = types.Sender(signer, tx)
	if err != nil {
		return from, 0, err
	}
	account := l.get(from)
	price := new(big.Int).Add(tx.EffectiveGasTipValue(big.NewInt(baseFee*gwei)), big.NewInt(baseFee*gwei))
	cost := new(big.Int).Add(new(big.Int).Mul(tx.GasFeeCap(), new(big.Int).SetUint64(tx.Gas())), tx.Value())
	switch {
	case tx.Nonce() != account.Nonce:
		return from, 0, fmt.Errorf("nonce %d, the account's is %d", tx.Nonce(), account.Nonce)
	case account.Balance.ToBig().Cmp(cost) < 0:
		return from, 0, fmt.Errorf("costs %v of %v", cost, &account.Balance)
	case tx.GasFeeCap().Cmp(big.NewInt(baseFee*gwei)) < 0:
		return from, 0, fmt.Errorf("does not pay the base fee")
	}
	spent := new(big.Int).Add(new(big.Int).Mul(price, new(big.Int).SetUint64(used(tx))), tx.Value())
	account.Nonce++
	account.Balance.Sub(&account.Balance, uint256.MustFromBig(spent))
	l[from] = account
	for _, auth := range tx.SetCodeAuthorizations() {
		authority, err := auth.Authority()
		if err != nil || auth.ChainID.ToBig().Cmp(chainID) != 0 && !auth.ChainID.IsZero() || l.get(authority).Nonce != auth.Nonce {
			continue
		}
		delegate := l.get(authority)
		delegate.Nonce++
		delegate.Delegated = true
		l[authority] = delegate
	}
	return from, fee(tx, baseFee), nil
}

// used returns the gas that a transaction to an account without code uses,
// which is its cost before the first instruction.
func used(tx *types.Transaction) uint64 {
	zeros, others := uint64(0), uint64(0)
	for _, b := range tx.Data() {
		if b == 0 {
			zeros++
		} else {
			others++
		}
	}
	all := gas + 4*zeros + 16*others + 2400*uint64(len(tx.AccessList())) + 1900*uint64(tx.AccessList().StorageKeys()) + 25_000*uint64(len(tx.SetCodeAuthorizations()))
	return max(all, gas+10*zeros+40*others) // EIP-7623
}

// fee returns the amount that a transaction pays above a base fee, in gwei.
func fee(tx *types.Transaction, baseFee int64) float64 {
	tip, _ := new(big.Float).SetInt(tx.EffectiveGasTipValue(big.NewInt(baseFee * gwei))).Float64()
	return tip * float64(used(tx)) / gwei
}

const rich = 1_000_000 * gas // gwei: enough for everything here

func TestSiegeFutureFlood(t *testing.T) {
	for _, accounts := range []int{1, 2000} {
		t.Run(fmt.Sprint(accounts), func(t *testing.T) {
			s := besieged(t, 16, nil)
			for i := range accounts {
				who := s.rogue(i, rich)
				for nonce := uint64(1); nonce < uint64(max(70/accounts, 2)); nonce++ {
					_ = s.pool.Add(transfer(who, nonce, 1000, 0))
				}
			}
			s.judge(1)
			s.admits(500, 9)
			for i := range 16 { // the gaps close
				_ = s.pool.Add(transfer(attacker+i%accounts, 0, 6, 0))
			}
			s.judge(1)
			s.admits(501, 9)
		})
	}
}

// overdrawn is the balance of each account in overdraftWays, in gwei.
const overdrawn = 2000 * gas

// overdraftWays are ways in which an account can offer its balance more than
// once.
var overdraftWays = map[string]func(s *siege, who int){
	"one by one":     func(s *siege, who int) { addAll(s, chain(who, 0, 8, 100, overdrawn-100*gas)...) },
	"in a batch":     func(s *siege, who int) { s.pool.AddAll(chain(who, 0, 8, 100, overdrawn-100*gas)) },
	"children first": func(s *siege, who int) { addAll(s, reversed(chain(who, 0, 8, 100, overdrawn-100*gas))...) },
	"children first in a batch": func(s *siege, who int) {
		s.pool.AddAll(reversed(chain(who, 0, 8, 100, overdrawn-100*gas)))
	},
	"held, then a dear parent": func(s *siege, who int) { // MemPurge
		addAll(s, chain(who, 1, 8, 200, 0)...)
		_ = s.pool.Add(transfer(who, 0, 100, overdrawn-100*gas))
	},
	"replaced parent": func(s *siege, who int) {
		addAll(s, chain(who, 0, 8, 100, 0)...)
		_ = s.pool.Add(transfer(who, 0, 200, overdrawn-200*gas))
	},
	"replaced child in a batch": func(s *siege, who int) {
		s.pool.AddAll(append(chain(who, 0, 8, 100, 0), transfer(who, 7, 200, overdrawn-200*gas), transfer(who, 6, 200, overdrawn-200*gas)))
	},
	"behind a lease": func(s *siege, who int) {
		_ = s.pool.Add(transfer(who, 0, 100, overdrawn-100*gas))
		s.pool.Drain(txpool.Budget{Count: 1})
		addAll(s, chain(who, 1, 8, 100, 0)...)
	},
	"behind a committed lease": func(s *siege, who int) {
		_ = s.pool.Add(transfer(who, 0, 100, overdrawn-100*gas))
		lease := s.pool.Drain(txpool.Budget{Count: 1})
		bundle := lease.Transactions()
		require.NoError(s.t, lease.Commit())
		addAll(s, chain(who, 1, 8, 100, 0)...) // State does not show the bundle yet
		require.NoError(s.t, s.run(bundle[0]))
		s.head(bundle)
	},
	"behind a block": func(s *siege, who int) {
		addAll(s, chain(who, 1, 8, 200, 0)...)
		s.force(transfer(who, 0, 1, overdrawn-300*gas)) // leaves enough for one
		_ = s.pool.Add(transfer(who, 1, 201, 0))
	},
	"sums that overflow": func(s *siege, who int) {
		for nonce := range uint64(8) {
			_ = s.pool.Add(types.MustSignNewTx(key(who), signer, &types.LegacyTx{
				Nonce: nonce, GasPrice: big.NewInt(100 * gwei), Gas: gas, To: &common.Address{1},
				Value: new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(100*gwei*gas)),
			}))
			_ = s.pool.Add(types.MustSignNewTx(key(who), signer, &types.LegacyTx{
				Nonce: nonce, GasPrice: new(big.Int).Lsh(big.NewInt(1), 255), Gas: 2 * gas, To: &common.Address{1}, Value: new(big.Int),
			}))
		}
	},
}

// A balance is spent once, in whatever way the transactions come.
func TestSiegeOverdraft(t *testing.T) {
	for name, way := range overdraftWays {
		t.Run(name, func(t *testing.T) {
			s := besieged(t, 8, nil)
			for i := range 3 {
				way(s, s.rogue(i, overdrawn))
			}
			s.judge(1)
			s.build(txpool.Budget{})
			s.judge(1)
			s.admits(500, 1000)
		})
	}
}

// chain is n transfers from a nonce on; the first moves a value, too.
func chain(i int, from uint64, n int, price, value int64) []*types.Transaction {
	txs := make([]*types.Transaction, n)
	for j := range txs {
		txs[j] = transfer(i, from+uint64(j), price, value)
		value = 0
	}
	return txs
}

func reversed(txs []*types.Transaction) []*types.Transaction {
	for i, j := 0, len(txs)-1; i < j; i, j = i+1, j-1 {
		txs[i], txs[j] = txs[j], txs[i]
	}
	return txs
}

func addAll(s *siege, txs ...*types.Transaction) {
	for _, tx := range txs {
		_ = s.pool.Add(tx)
	}
}
