package txpool

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// siege is a world with an attacker, for the tests of published attacks on
// mempools: DETER (CCS '21), MemPurge (USENIX Security '24), MPFUZZ and saferAd.
// In all of them, an attacker with funded accounts removes the victims'
// transactions from the pool, or keeps new ones out, for much less than they pay.
//
// The chain of a siege executes transactions, so that the attacker pays the gas
// that it uses and not its gas limits. The victims are the senders from 0 on, and
// the attacker has those from attacker on: rogue funds them, and offer adds their
// transactions, which the pool may refuse. honour adds those of the victims.
// produce, session and force make blocks. judge is the oracle.
type siege struct {
	*world
	price  int64                              // base fee, gwei
	honest map[common.Hash]*types.Transaction // of the victims, not in a block yet
	mine   map[common.Address]bool            // the attacker's accounts
	paid   float64                            // by the attacker above the base fee, gwei
}

const (
	attacker = 1000
	rich     = 1_000_000 * txGas // gwei: enough for everything here
)

// newSiege returns a siege of a pool with a number of slots for each kind of
// transactions.
func newSiege(t tester, slots int, changes ...func(*Config)) *siege {
	surge := func(c *Config) { c.SurgeSlope = DefaultConfig(chainID).SurgeSlope }
	return &siege{
		world:  newWorld(t, append([]func(*Config){tiny(slots, slots), surge}, changes...)...),
		honest: make(map[common.Hash]*types.Transaction), mine: make(map[common.Address]bool),
	}
}

// besieged is a siege of a pool that victims filled with transfers for 5 to 7 gwei.
func besieged(t tester, slots int, changes ...func(*Config)) *siege {
	s := newSiege(t, slots, changes...)
	s.honour(fair(slots)...)
	return s
}

// fair makes transfers of n victims for 5 to 7 gwei.
func fair(n int) []*types.Transaction {
	txs := make([]*types.Transaction, n)
	for i := range txs {
		txs[i] = tx(i, 0, int64(5+i%3))
	}
	return txs
}

// fill adds victims until their transactions take a number of bytes.
func (s *siege) fill(bytes uint64) {
	for i := 0; s.Stats().PendingBytes < bytes; i++ {
		s.honour(tx(i, 0, int64(5+i%3)))
	}
}

// roomy removes the limits that a test is not about.
func roomy(c *Config) { c.SurgeSlope, c.MaxBytes = 0, 1<<30 }

// honour adds victims' transactions, which must be admitted.
func (s *siege) honour(txs ...*types.Transaction) {
	for _, tx := range txs {
		require.NoError(s.t, s.Add(tx), "an honest newcomer; watermark %d", s.Stats().Watermark)
		s.honest[tx.Hash()] = tx
	}
}

// admits checks that a victim is admitted at a fair price.
func (s *siege) admits(i int, price int64) {
	s.honour(tx(i, s.accounts.get(addr(i)).Nonce, price))
}

// rogue gives the attacker an account with a balance in gwei and returns its
// number.
func (s *siege) rogue(i int, balance int64) int {
	who := attacker + i
	s.mine[addr(who)] = true
	s.set(who, func(a *Account) { *a = Account{Balance: *uint256.MustFromBig(gweis(balance))} })
	return who
}

// delegated makes an account one that others can empty.
func (s *siege) delegated(i int) { s.set(i, func(a *Account) { a.Delegated = true }) }

// offer adds transactions, which may be refused. It returns how many were
// admitted.
func (s *siege) offer(txs ...*types.Transaction) (admitted int) {
	for _, tx := range txs {
		if s.Add(tx) == nil {
			admitted++
		}
	}
	return admitted
}

// offerAll is offer in one batch.
func (s *siege) offerAll(txs ...*types.Transaction) (admitted int) {
	for _, err := range s.AddAll(txs) {
		if err == nil {
			admitted++
		}
	}
	return admitted
}

// produce makes a block of the transactions of a drain. It returns how many ran.
func (s *siege) produce(budget Budget) int {
	b := s.drain(budget)
	var block []*types.Transaction
	for _, tx := range b.Transactions() {
		if s.run(tx) != nil {
			_ = s.Reject(tx.Hash(), errTest) // and its successors
			continue
		}
		block = append(block, tx)
	}
	s.head(blockOf(block...))
	b.Cancel()
	return len(block)
}

// session makes a block by a session. A transaction fails if it does not run, or
// if fails reports so; after is called after each failure. session returns the
// block and the number of transactions that Next returned.
func (s *siege) session(budget Budget, fails func(*types.Transaction) bool, after func()) (block []*types.Transaction, offered int) {
	b := s.build(budget)
	gasUsed := uint64(0)
	for tx := b.Next(); tx != nil; tx = b.Next() {
		offered++
		if fails != nil && fails(tx) || s.run(tx) != nil {
			b.Fail(errTest)
			if after != nil {
				after()
			}
			continue
		}
		b.Used(used(tx), tx.Size())
		gasUsed += used(tx)
		block = append(block, tx)
	}
	s.head(Block{Transactions: block, GasUsed: gasUsed, GasLimit: budget.Gas})
	b.Cancel()
	return block, offered
}

// force puts transactions into a block past the pool, such as by a forced inclusion.
func (s *siege) force(txs ...*types.Transaction) {
	for _, tx := range txs {
		require.NoError(s.t, s.run(tx))
	}
	s.head(blockOf(txs...))
}

// head makes a block the new head.
func (s *siege) head(block Block) {
	s.advance(6 * time.Second)
	block.BaseFee = gweis(s.price)
	s.Reset(Head{Included: []Block{block}, BaseFee: block.BaseFee})
}

// setBaseFee makes an empty block with another base fee, in gwei.
func (s *siege) setBaseFee(price int64) {
	s.price = price
	s.head(Block{})
}

// run runs a transaction on the chain and counts what it pays.
func (s *siege) run(tx *types.Transaction) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	fee, err := s.accounts.run(tx, s.price)
	if err != nil {
		return err
	}
	if s.mine[senderOf(tx)] {
		s.paid += fee
	}
	delete(s.honest, tx.Hash())
	return nil
}

// sweep empties all delegated accounts of the attacker, as one transaction of
// another account can, and charges for it: a call with a value into cold
// delegated code, 11,900 gas each (EIP-2929, EIP-7702), at the given price in
// gwei.
func (s *siege) sweep(price int64) {
	s.paid += float64(txGas * price)
	for who := range s.mine {
		if account := s.accounts.get(who); account.Delegated {
			account.Balance.Clear()
			s.accounts[who] = account
			s.paid += float64(11_900 * price)
		}
	}
	s.head(Block{})
}

// inLine is how many transactions of a sender can run.
func (s *siege) inLine(i int) int {
	pending, _ := s.ContentFrom(addr(i))
	return len(pending)
}

// lost returns the fees of the victims' transactions that are gone, in gwei, and
// their number.
func (s *siege) lost() (fees float64, gone int) {
	for hash, tx := range s.honest {
		if s.Get(hash) == nil {
			fees += fee(tx, 0)
			gone++
		}
	}
	return fees, gone
}

// bundle returns all transactions that are in the session or could be.
func (s *siege) bundle() (all []*types.Transaction) {
	if open := s.core.session; open != nil {
		all = open.Transactions()
	}
	return append(all, offered(s)...)
}

// judge is the oracle: the fees that the attacker has paid, and would pay if all
// pending transactions ran, are at least a share of those that the victims lost.
func (s *siege) judge(share float64) {
	s.check()
	lost, gone := s.lost()
	dry, paid := maps.Clone(s.accounts), s.paid
	for _, tx := range s.bundle() {
		if fee, err := dry.run(tx, s.price); err == nil && s.mine[senderOf(tx)] {
			paid += fee
		}
	}
	require.GreaterOrEqual(s.t, paid, share*lost, "of %d victims' transactions %d are gone, worth %.0f gwei; the attacker pays %.0f", len(s.honest), gone, lost, paid)
}

// run runs a transaction as a chain with a base fee in gwei does. It returns the
// amount that the sender paid above the base fee, in gwei.
func (l ledger) run(tx *types.Transaction, baseFee int64) (paid float64, err error) {
	from := senderOf(tx)
	account, base := l.get(from), gweis(baseFee)
	price := new(big.Int).Add(tx.EffectiveGasTipValue(base), base)
	switch cost := tx.Cost(); {
	case tx.Nonce() != account.Nonce:
		return 0, fmt.Errorf("nonce %d, the account's is %d", tx.Nonce(), account.Nonce)
	case account.Balance.ToBig().Cmp(cost) < 0:
		return 0, fmt.Errorf("costs %v of %v", cost, &account.Balance)
	case tx.GasFeeCap().Cmp(base) < 0:
		return 0, errors.New("does not pay the base fee")
	}
	spent := new(big.Int).Add(price.Mul(price, new(big.Int).SetUint64(used(tx))), tx.Value())
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
	return fee(tx, baseFee), nil
}

// used returns the gas that a transaction to an account without code uses, which
// is its cost before the first instruction.
func used(tx *types.Transaction) uint64 {
	zeros := uint64(bytes.Count(tx.Data(), []byte{0}))
	others := uint64(len(tx.Data())) - zeros
	list := tx.AccessList()
	all := txGas + 4*zeros + 16*others + 2400*uint64(len(list)) + 1900*uint64(list.StorageKeys()) + 25_000*uint64(len(tx.SetCodeAuthorizations()))
	return max(all, txGas+10*zeros+40*others) // EIP-7623
}

// fee returns the amount that a transaction pays above a base fee, in gwei.
func fee(tx *types.Transaction, baseFee int64) float64 {
	tip, _ := new(big.Float).SetInt(tx.EffectiveGasTipValue(gweis(baseFee))).Float64()
	return tip * float64(used(tx)) / gwei
}

func backwards(txs []*types.Transaction) []*types.Transaction {
	txs = slices.Clone(txs)
	slices.Reverse(txs)
	return txs
}

// valued makes a transfer that moves a value, in gwei.
func valued(i int, nonce uint64, price, value int64) *types.Transaction {
	return sign(i, &types.LegacyTx{Nonce: nonce, GasPrice: gweis(price), Gas: txGas, To: there, Value: gweis(value)})
}
