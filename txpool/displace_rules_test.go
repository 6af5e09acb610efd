package txpool

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// priced makes a transfer of sender i with a price in wei and data of zeros.
func priced(i int, wei int64, zeros int) *types.Transaction {
	return sign(i, &types.LegacyTx{GasPrice: big.NewInt(wei), Gas: 100_000, To: &common.Address{1}, Data: make([]byte, zeros)})
}

// work returns the least gas of a transfer with data of zeros.
func work(zeros int64) int64 { return txGas + floorGasPerToken*zeros }

// A newcomer that takes the place of two transactions must be worth more than
// both together.
func TestNewcomerIsWorthMoreThanBoth(t *testing.T) {
	const small, large = 10, 1000
	price := 65_000 * work(large) // about 2 gwei
	first, second := priced(0, price, small), priced(1, price, small)
	p := newPool(t, newWorld(), func(c *Config) { c.MaxTxSize, c.MaxBytes = 1200, weigh(first, second) })
	add(t, p, first, second)
	same := 2 * price * work(small) / work(large)
	require.Equal(t, 2*price*work(small), same*work(large))
	refuse(t, p, priced(2, same, large), ErrPoolFull, "to displace 2 transactions")
	add(t, p, priced(2, same+1, large))
	require.Equal(t, 1, p.Size())
}

// A replacement that grew, and displaces another transaction, must add more than
// that one is worth.
func TestGrownReplacementAddsMore(t *testing.T) {
	const small, grown = 100, 120
	first, second := priced(0, 2*gwei, small), priced(1, 2*gwei, small)
	p := newPool(t, newWorld(), func(c *Config) { c.MaxTxSize, c.MaxBytes = 300, weigh(first, second) })
	add(t, p, first, second)
	sum := 2 * 2 * gwei * work(small) // of the replaced one and the victim
	enough := sum/work(grown) + 1
	refuse(t, p, priced(0, enough-1, grown), ErrPoolFull, "to displace 1 transactions")
	add(t, p, priced(0, enough, grown))
	require.Equal(t, "p-", statuses(p, 0, 1)+statuses(p, 1, 1))
}

// A large transaction that finds no room does not keep a smaller one waiting.
func TestSmallerWaitingComesIn(t *testing.T) {
	rich := tx(0, 0, 99)
	p := newPool(t, newWorld(), func(c *Config) {
		c.MaxTxSize = 5000
		c.MaxBytes = 5000 + 2*weigh(tx(1, 0, 2))
	})
	p.Reset(Head{BaseFee: weiOf(30)})
	add(t, p, rich, heavy(1, 0, 80, 99, 3000), capped(2, 0, 5, 20), heavy(3, 0, 9, 20, 4000))
	require.Empty(t, p.Reset(Head{BaseFee: weiOf(1)}))
	require.NoError(t, p.Check())
	require.Equal(t, "ppk", statuses(p, 1, 1)+statuses(p, 2, 1)+statuses(p, 3, 1))
}
