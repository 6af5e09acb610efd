package txpool

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// heavy makes a transfer of sender i with data of zeros.
func heavy(i int, nonce uint64, tip, feeCap int64, zeros int) *types.Transaction {
	return sign(i, &types.DynamicFeeTx{
		ChainID: chainID, Nonce: nonce, GasTipCap: weiOf(tip), GasFeeCap: weiOf(feeCap), Gas: txGas + 10*uint64(zeros),
		To: &common.Address{1}, Data: make([]byte, zeros),
	})
}

// If one place becomes free, the best waiting transaction gets it, whatever its
// size.
func TestBestWaitingComesIn(t *testing.T) {
	p := newPool(t, newWorld(), tiny(1, 5))
	p.Reset(Head{BaseFee: weiOf(30)})
	add(t, p, tx(0, 0, 50), capped(1, 0, 5, 20), heavy(2, 0, 9, 20, 3000))
	require.Empty(t, p.Reset(Head{BaseFee: weiOf(1)}))
	require.Equal(t, "kk", statuses(p, 1, 1)+statuses(p, 2, 1))
	require.NoError(t, p.Remove(tx(0, 0, 50).Hash()))
	require.NoError(t, p.Check())
	require.Equal(t, "kp", statuses(p, 1, 1)+statuses(p, 2, 1))
}

// If there is no place, the best waiting transaction displaces a worse one. It
// does not come after a smaller one, which it would then displace.
func TestBestWaitingDisplaces(t *testing.T) {
	p := newPool(t, newWorld(), tiny(1, 5))
	p.Reset(Head{BaseFee: weiOf(30)})
	add(t, p, capped(0, 0, 2, 60), capped(1, 0, 5, 20), heavy(2, 0, 9, 20, 3000))
	p.Reset(Head{BaseFee: weiOf(1)})
	require.NoError(t, p.Check())
	require.Equal(t, "-kp", statuses(p, 0, 1)+statuses(p, 1, 1)+statuses(p, 2, 1))
}

// If more transactions are parked than may be, those that wait for room go too.
func TestWaitingIsCapped(t *testing.T) {
	p := newPool(t, newWorld(), tiny(1, 1))
	p.Reset(Head{BaseFee: weiOf(30)})
	add(t, p, tx(0, 0, 50), capped(1, 0, 5, 20))
	require.Empty(t, p.Reset(Head{BaseFee: weiOf(1)}))
	require.Equal(t, "k", statuses(p, 1, 1))
	add(t, p, tx(2, 1, 7), tx(2, 0, 99))
	require.NoError(t, p.Check())
	require.Equal(t, "-", statuses(p, 0, 1))
	require.Equal(t, "-pk", statuses(p, 1, 1)+statuses(p, 2, 2))
}

// If more transactions wait for room than may be parked, the worst one goes,
// whatever its size.
func TestWorstWaitingGoes(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { tiny(1, 1)(c); c.MaxParked = 2 })
	p.Reset(Head{BaseFee: weiOf(30)})
	add(t, p, tx(0, 0, 50), capped(1, 0, 6, 20), heavy(3, 0, 5, 20, 3000))
	require.Empty(t, p.Reset(Head{BaseFee: weiOf(1)}))
	require.Equal(t, "kk", statuses(p, 1, 1)+statuses(p, 3, 1))
	add(t, p, tx(2, 1, 7), tx(2, 0, 99))
	require.Equal(t, "pk", statuses(p, 2, 2))
	require.Equal(t, "k-", statuses(p, 1, 1)+statuses(p, 3, 1))
}

// A large waiting transaction that may displace no others keeps no smaller one
// waiting that may.
func TestSmallerWaitingDisplaces(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { tiny(4, 5)(c); c.MaxTxSize, c.MaxBytes = 6000, 6000 })
	p.Reset(Head{BaseFee: weiOf(30)})
	add(t, p, tx(0, 0, 50), tx(1, 0, 51), tx(2, 0, 52), capped(3, 0, 2, 60))
	add(t, p, heavy(4, 0, 9, 20, 3000), capped(5, 0, 8, 20))
	p.Reset(Head{BaseFee: weiOf(1)})
	require.NoError(t, p.Check())
	require.Equal(t, "ppp-", statuses(p, 0, 1)+statuses(p, 1, 1)+statuses(p, 2, 1)+statuses(p, 3, 1))
	require.Equal(t, "kp", statuses(p, 4, 1)+statuses(p, 5, 1))
}

// A transaction that came back needs no room to run again.
func TestReturnedRunsAboveTheCap(t *testing.T) {
	p := newPool(t, newWorld(), tiny(1, 2))
	returned(t, p, capped(0, 0, 2, 2))
	p.Reset(Head{BaseFee: weiOf(3)})
	add(t, p, tx(1, 0, 8))
	require.Empty(t, p.Reset(Head{BaseFee: weiOf(1)}))
	require.Equal(t, "pp", statuses(p, 0, 1)+statuses(p, 1, 1))
}

// Transactions that wait for room are parked when the floor rises above them.
func TestFloorParksWaiting(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { tiny(1, 2)(c); c.FloorWindow, c.BlockGasLimit = 1, txGas })
	p.Reset(Head{BaseFee: weiOf(8)})
	add(t, p, tx(0, 0, 200), capped(1, 0, 2, 2))
	require.Empty(t, p.Reset(Head{BaseFee: weiOf(0)}))
	require.Equal(t, "pk", statuses(p, 0, 1)+statuses(p, 1, 1))
	for range 12 {
		require.Empty(t, p.Reset(Head{Included: []Block{blockOf(tx(5, 0, 100))}}))
		require.NoError(t, p.Check())
	}
	require.Greater(t, p.Stats().Floor, uint64(2*gwei))
}

// A leased transaction whose nonce the state shows leaves no gap.
func TestUsedNonceInALease(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 2), tx(0, 1, 2))
	l := p.Drain(Budget{Count: 1})
	w.nonce(0, 1)
	require.Empty(t, p.Reset(Head{}))
	require.Equal(t, "lp", statuses(p, 0, 2))
	require.NoError(t, l.Return(tx(0, 0, 2).Hash()))
	require.Equal(t, "-p", statuses(p, 0, 2))
	require.NoError(t, p.Check())
}

// A leased transaction parks none after it, whatever it pays: it is in a block.
func TestLeasedParksNone(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	add(t, p, capped(0, 0, 2, 5), capped(0, 1, 2, 50))
	p.Drain(Budget{Count: 1})
	p.Reset(Head{BaseFee: weiOf(10)})
	require.NoError(t, p.Check())
	require.Equal(t, "lp", statuses(p, 0, 2))
}

// When a lease is released, each of its transactions gets its place, also behind
// one that was returned before.
func TestReleaseAfterReturn(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	add(t, p, tx(0, 0, 9), tx(0, 1, 2), tx(0, 2, 9))
	l := p.Drain(Budget{})
	require.NoError(t, l.Return(tx(0, 1, 2).Hash()))
	require.NoError(t, p.Check())
	require.NoError(t, l.Release())
	require.NoError(t, p.Check())
	require.Equal(t, "ppp", statuses(p, 0, 3))
}

// A leased transaction after one that was removed stays leased.
func TestRemovedBeforeALease(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	add(t, p, tx(0, 0, 9), tx(0, 1, 9))
	l := p.Drain(Budget{})
	require.NoError(t, l.Return(tx(0, 0, 9).Hash()))
	require.NoError(t, p.Remove(tx(0, 0, 9).Hash()))
	require.NoError(t, p.Check())
	require.Len(t, l.Transactions(), 1)
}

// An eviction does not move leased transactions.
func TestEvictedBeforeALease(t *testing.T) {
	p := newPool(t, newWorld(), tiny(2, 2))
	add(t, p, tx(0, 0, 2), tx(0, 1, 2))
	l := p.Drain(Budget{})
	require.NoError(t, l.Return(tx(0, 0, 2).Hash()))
	add(t, p, tx(1, 0, 9), tx(2, 0, 9))
	require.Equal(t, "-lpp", statuses(p, 0, 2)+statuses(p, 1, 1)+statuses(p, 2, 1))
	require.Len(t, l.Transactions(), 1)
}

// When a leased transaction fails, the balance that it had pays for the sender's
// earlier one.
func TestRejectedPaysForAnEarlierOne(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	w.balance(0, 2*unit)
	add(t, p, tx(0, 0, 10), tx(0, 1, 10))
	require.NoError(t, p.Drain(Budget{Count: 1}).Commit())
	l := p.Drain(Budget{Count: 1})
	w.balance(0, unit)
	require.Empty(t, p.Reset(Head{Reverted: []Block{blockOf(tx(0, 0, 10))}}))
	require.Equal(t, "kl", statuses(p, 0, 2))
	require.NoError(t, l.Reject(tx(0, 1, 10).Hash(), errNoDisk))
	require.NoError(t, p.Check())
	require.Equal(t, "p-", statuses(p, 0, 2))
}

// A new balance must cover committed transactions that the state does not show.
// One that just covers everything drops nothing.
func TestNewBalanceCoversCommitted(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	w.balance(0, 3*unit)
	add(t, p, tx(0, 0, 10), tx(0, 1, 10))
	require.NoError(t, p.Drain(Budget{Count: 1}).Commit())
	w.balance(0, 2*unit)
	require.Empty(t, p.Reset(Head{}))
	require.Equal(t, "-p", statuses(p, 0, 2))
	w.balance(0, unit)
	require.Len(t, p.Reset(Head{}), 1)
	require.Equal(t, "--", statuses(p, 0, 2))
}

// A balance that does not cover the last transaction drops no other.
func TestNewBalanceDropsTheLast(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 10), tx(0, 1, 10), tx(0, 2, 10))
	w.balance(0, 2*unit)
	require.Len(t, p.Reset(Head{}), 1)
	require.Equal(t, "pp-", statuses(p, 0, 3))
}

// A leased transaction stays in its lease whatever the state shows.
func TestStateLeavesLeases(t *testing.T) {
	for name, change := range map[string]func(*Account){
		"nonce":   func(a *Account) { a.Nonce = 1 },
		"balance": func(a *Account) { a.Balance.Clear() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			p := newPool(t, w, nil)
			add(t, p, tx(0, 0, 10))
			l := p.Drain(Budget{})
			w.set(0, change)
			require.Empty(t, p.Reset(Head{}))
			require.Len(t, l.Transactions(), 1)
			require.NoError(t, p.Check())
		})
	}
}

// A transaction that comes back behind another one, for which the balance then
// suffices, does not make that one exempt.
func TestReturnedBehindAnother(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	w.balance(0, unit)
	w.broken[addr(0)] = errNoDisk
	require.Len(t, p.Reset(Head{Reverted: []Block{blockOf(tx(0, 1, 10))}}), 1)
	delete(w.broken, addr(0))
	add(t, p, tx(0, 0, 10))
	require.Zero(t, p.CleanupExpired())
	require.Equal(t, "pk", statuses(p, 0, 2))
	require.Equal(t, 1, p.Stats().Exempt)
}

// A transaction that the host returns from a lease while the balance does not
// cover it stays.
func TestReturnedIntoAShortBalance(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 10), tx(0, 1, 10))
	l := p.Drain(Budget{})
	w.balance(0, unit)
	require.Empty(t, p.Reset(Head{}))
	require.NoError(t, l.Return(tx(0, 1, 10).Hash()))
	require.Equal(t, "lk", statuses(p, 0, 2))
	w.balance(0, unit+1)
	require.Empty(t, p.Reset(Head{}))
	require.Equal(t, "lk", statuses(p, 0, 2))
}

// A newcomer displaces none if it, or one before it, cannot pay the next base
// fee.
func TestNextBaseFee(t *testing.T) {
	p := newPool(t, newWorld(), tiny(2, 5))
	p.Reset(Head{BaseFee: weiOf(16)})
	add(t, p, capped(0, 0, 0, 30), capped(1, 0, 1, 17))
	refuse(t, p, capped(2, 0, 1, 17), ErrPoolFull, "cannot pay the next base fee")
	refuse(t, p, capped(1, 1, 5, 40), ErrPoolFull, "cannot pay the next base fee")
	add(t, p, capped(2, 0, 1, 19))
}

// A replacement displaces no later transaction of the same sender.
func TestReplacementKeepsItsSuccessors(t *testing.T) {
	first, second := padded(0, 0, 100), padded(0, 1, 100)
	p := newPool(t, newWorld(), func(c *Config) { c.MaxTxSize, c.MaxBytes = 300, weigh(first, second) })
	add(t, p, first, second)
	grown := sign(0, &types.LegacyTx{GasPrice: weiOf(9), Gas: 40_000, To: &common.Address{1}, Data: make([]byte, 120)})
	refuse(t, p, grown, ErrPoolFull, "none of 2 transactions can be displaced")
}

// The memory of a transaction grows with its storage keys.
func TestStorageKeysTakeMemory(t *testing.T) {
	list := func(keys int) *types.Transaction {
		return sign(0, &types.AccessListTx{ChainID: chainID, GasPrice: weiOf(2), Gas: 100_000, To: &common.Address{1},
			AccessList: types.AccessList{{StorageKeys: make([]common.Hash, keys)}}})
	}
	require.Equal(t, memoryOf(list(1))+9*common.HashLength, memoryOf(list(10)))
}

// creation makes a transaction of sender i that creates a contract.
func creation(i int, code []byte, gas uint64) *types.Transaction {
	return sign(i, &types.LegacyTx{GasPrice: weiOf(2), Gas: gas, Data: code})
}

// The lower one of MaxTxGas and the gas limit of a block bounds a transaction.
func TestMaxTxGas(t *testing.T) {
	gas := func(i int, gas uint64) *types.Transaction {
		return sign(i, &types.LegacyTx{GasPrice: weiOf(2), Gas: gas, To: &common.Address{1}})
	}
	for most, limit := range map[uint64]uint64{0: 50_000, 30_000: 30_000, 60_000: 50_000} {
		p := newPool(t, newWorld(), func(c *Config) { c.BlockGasLimit, c.MaxTxGas = 50_000, most })
		want := ErrTxGasLimit
		if limit == 50_000 {
			want = ErrGasLimit
		}
		refuse(t, p, gas(0, limit+1), want)
		add(t, p, gas(0, limit))
		require.Equal(t, limit, p.cfg.GreatestGas())
	}
}

// The gas of init code and of data follows the fork rules of the configuration.
func TestForkRules(t *testing.T) {
	code := make([]byte, 33) // zeros, two words
	const intrinsic, words = txGas + createGas + 33*zeroByteGas, 2 * initCodeWordGas
	p := newPool(t, newWorld(), nil)
	refuse(t, p, creation(0, code, intrinsic+words-1), ErrIntrinsicGas)
	add(t, p, creation(0, code, intrinsic+words))
	refuse(t, p, sign(1, &types.LegacyTx{GasPrice: weiOf(2), Gas: txGas + 10*100 - 1, To: &common.Address{1}, Data: make([]byte, 100)}), ErrFloorDataGas)

	p = newPool(t, newWorld(), func(c *Config) { c.Fork = London })
	refuse(t, p, creation(0, code, intrinsic-1), ErrIntrinsicGas)
	add(t, p, creation(0, code, intrinsic))
	add(t, p, sign(1, &types.LegacyTx{GasPrice: weiOf(2), Gas: txGas + zeroByteGas*100, To: &common.Address{1}, Data: make([]byte, 100)}))
}

// MaxInitCodeSize bounds creations only, and none before Shanghai.
func TestMaxInitCodeSize(t *testing.T) {
	const enough = 1_000_000
	for _, fork := range []Fork{Prague, Shanghai} {
		p := newPool(t, newWorld(), func(c *Config) { c.Fork, c.MaxTxSize = fork, 1<<20 })
		refuse(t, p, creation(0, make([]byte, MaxInitCodeSize+1), enough), ErrMaxInitCodeSize)
		add(t, p, creation(0, make([]byte, MaxInitCodeSize), enough))
		call := &types.LegacyTx{GasPrice: weiOf(2), Gas: enough, To: &common.Address{1}, Data: make([]byte, MaxInitCodeSize+1)}
		add(t, p, sign(1, call))
	}
	p := newPool(t, newWorld(), func(c *Config) { c.Fork, c.MaxTxSize = London, 1<<20 })
	add(t, p, creation(0, make([]byte, MaxInitCodeSize+1), enough))
}

// A replacement may grow by a quarter.
func TestMaxSizeGrowth(t *testing.T) {
	sized := func(price int64, zeros int) *types.Transaction {
		return sign(0, &types.LegacyTx{GasPrice: weiOf(price), Gas: 100_000, To: &common.Address{1}, Data: make([]byte, zeros)})
	}
	old := sized(2, 100)
	largest := 100
	for sized(3, largest+1).Size() <= old.Size()+old.Size()/4 {
		largest++
	}
	p := newPool(t, newWorld(), nil)
	require.Equal(t, old.Size()+old.Size()/4, sized(3, largest).Size())
	add(t, p, old)
	refuse(t, p, sized(3, largest+1), ErrReplaceOversized)
	add(t, p, sized(3, largest))
}

// A replacement pays at least 1 wei more, also without a bump.
func TestReplacementPaysMore(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { c.PriceBump = 0 })
	add(t, p, tx(0, 0, 2))
	same := sign(0, &types.DynamicFeeTx{ChainID: chainID, GasTipCap: weiOf(2), GasFeeCap: weiOf(2), Gas: txGas, To: &common.Address{2}})
	refuse(t, p, same, ErrReplaceUnderpriced)
}

// A restart takes back transactions that are larger than the configuration now
// allows.
func TestRestartWithSmallerTransactions(t *testing.T) {
	for name, smaller := range map[string]func(*Config){
		"size": func(c *Config) { c.MaxTxSize = 300 },
		"gas":  func(c *Config) { c.MaxTxGas = 30_000 },
	} {
		t.Run(name, func(t *testing.T) {
			w, m := newWorld(), new(memory)
			add(t, newPool(t, w, journaled(m)), creation(0, make([]byte, 500), 100_000))
			p := newPool(t, w, func(c *Config) { journaled(m)(c); smaller(c) })
			restored, err := p.Restore(m.replay)
			require.NoError(t, err)
			require.Equal(t, Restored{Transactions: 1}, restored)
		})
	}
}

// A new base fee lets the best come in first: those whose tip has changed, and those
// that pay the floor again.
func TestBaseFeeLetsTheBestIn(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { c.MinGasPrice, c.MaxPending = 10*gwei, 2 })
	p.Reset(Head{BaseFee: weiOf(8)})
	worse, better := capped(0, 0, 2, 100), capped(1, 0, 4, 11)
	add(t, p, worse, better)
	p.Reset(Head{BaseFee: weiOf(5)})
	require.Equal(t, "kk", statuses(p, 0, 1)+statuses(p, 1, 1))
	add(t, p, capped(2, 0, 20, 100))
	p.Reset(Head{BaseFee: weiOf(8)})
	require.Equal(t, "kp", statuses(p, 0, 1)+statuses(p, 1, 1))
}

// A parked newcomer does not displace a transaction whose successors have a higher tip (I3).
func TestParkedParentKeepsItsPlace(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { c.MinGasPrice, c.MaxParked = 1, 16 })
	p.Reset(Head{BaseFee: weiOf(10)})
	add(t, p, capped(0, 0, 1, 5))
	for n := range uint64(15) {
		add(t, p, capped(0, n+1, 50, 100))
	}
	require.Equal(t, 16, p.Stats().Parked)
	require.ErrorIs(t, p.Add(capped(1, 0, 2, 6)), ErrPoolFull)
	require.Equal(t, 16, p.Stats().Parked)
	add(t, p, capped(1, 0, 6, 6)) // more than the chain can ever pay
	require.Equal(t, StatusUnknown, p.Status(capped(0, 15, 50, 100).Hash()))
	require.Equal(t, StatusParked, p.Status(capped(0, 14, 50, 100).Hash()))
}
