package txpool

import (
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// A rollup brings its own checks, signatures, fees and sizes.
func TestHooks(t *testing.T) {
	seventh := func(tx *types.Transaction) bool { return tx.Nonce() == 7 }
	w := newWorld(t, unless(seventh), func(c *Config) {
		c.Sender = func(tx *types.Transaction) (common.Address, error) {
			if len(tx.Data()) == 0 {
				return common.Address{}, errors.New("no name")
			}
			return common.BytesToAddress(tx.Data()), nil
		}
		c.ExtraCost = func(*types.Transaction) *uint256.Int { return uint256.NewInt(5e17) }
	})
	named := func(nonce uint64, name byte) *types.Transaction {
		return types.NewTx(&types.LegacyTx{Nonce: nonce, GasPrice: gweis(1), Gas: 30_000, To: there, Data: []byte{name}})
	}
	w.refuse(tx(0, 0, 1), ErrInvalidSender, "no name")
	w.refuse(named(7, 1), errTest)
	w.add(named(0, 1), named(0, 2))
	w.refuse(named(1, 1), ErrInsufficientFunds) // twice the extra cost is an ether
}

// TestI8CheapChecksFirst: whatever can be refused without cryptography is, and penalties name no
// sender.
func TestI8CheapChecksFirst(t *testing.T) {
	recoveries := 0
	w := newWorld(t, func(c *Config) {
		c.Sender = func(tx *types.Transaction) (common.Address, error) {
			recoveries++
			return types.Sender(signer, tx)
		}
	})
	first := tx(0, 0, 2)
	w.add(first)
	require.Equal(t, 1, recoveries)
	w.refuse(first, ErrAlreadyKnown, "already known")
	w.refuse(hungry(2, 0, 1, 20_999), ErrIntrinsicGas)
	w.refuse(setCode(2, 0, 2, make([]types.SetCodeAuthorization, 17)...), ErrTooManyAuthorizations)
	require.NoError(t, w.Reject(first.Hash(), errTest))
	w.refuse(first, ErrQuarantined)
	require.Equal(t, 1, recoveries)
	require.True(t, Spam(ErrIntrinsicGas))
	require.False(t, Spam(ErrNonceTooLow), "an honest client can be late")
}

// TestI8PriceFirst: a transaction that does not pay the lowest price, or not the
// floor, is refused before its signature is checked.
func TestI8PriceFirst(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.FloorWindow = 1
		c.Sender = func(*types.Transaction) (common.Address, error) { panic("asked for the sender") }
	})
	w.refuse(tx(0, 0, 0), ErrUnderpriced)
	for range 30 {
		w.tell(paying(100))
	}
	require.Greater(t, w.Stats().Floor, uint64(10*gwei))
	w.refuse(tx(0, 0, 2), ErrUnderpriced)
}

// TestI8AuthoritiesLast: the pool recovers no authorizations of a transaction
// that cannot pay or has a wrong nonce.
func TestI8AuthoritiesLast(t *testing.T) {
	w := newWorld(t)
	w.balance(0, 1)
	w.nonce(2, 5)
	for _, carrier := range []*types.Transaction{setCode(0, 0, 2, delegate(1, 0)), setCode(2, 4, 2, delegate(1, 0)), setCode(3, 1000, 2, delegate(1, 0))} {
		one := []candidate{{tx: carrier}}
		w.examine(one, w.clock().UnixNano())
		require.Error(t, one[0].err)
		require.Nil(t, one[0].entry.authorized)
		_, err := w.core.decide(newAccount(one[0].from, w.accounts.get(one[0].from)), one[0].entry)
		require.EqualError(t, err, one[0].err.Error())
	}
}

// TestI9NoWorkForThePool: the work of an Add does not grow with the pool. It
// reads one account at most.
func TestI9NoWorkForThePool(t *testing.T) {
	w := newWorld(t)
	for i := range 60 {
		w.add(tx(i, 0, 2))
	}
	require.Equal(t, 60, w.reads)
	w.add(tx(0, 1, 2))
	require.Equal(t, 60, w.reads, "known senders are not read again")
}

// TestI10Batch: a batch does exactly what its singles would.
func TestI10Batch(t *testing.T) {
	var txs []*types.Transaction
	for i := range 40 {
		txs = append(txs, tx(i%7, uint64(i*5%11), int64(1+i%4)), tx(i%7, uint64(i*3%11), int64(2+i%9)))
	}
	small := func(c *Config) { c.MaxPending, c.MaxQueued, c.MaxPerSender = 12, 6, 5 }
	one, all := newWorld(t, small), newWorld(t, small)
	errs := all.AddAll(txs)
	for i, tx := range txs {
		err := one.Add(tx)
		require.Equal(t, err == nil, errs[i] == nil, "transaction %d: %v, in a batch %v", i, err, errs[i])
		if err != nil {
			require.Equal(t, err.Error(), errs[i].Error())
		}
	}
	require.Equal(t, one.Stats(), all.Stats())
	all.offers(offered(one)...)
}

// If the state cannot be read, the transaction is refused, and nothing is guessed.
func TestStateErrors(t *testing.T) {
	w := newWorld(t)
	w.breaks(0)
	w.refuse(tx(0, 0, 2), ErrState, "account state unavailable: "+addr(0).Hex()+": no disk")
	errs := w.AddAll([]*types.Transaction{tx(1, 0, 2), tx(0, 0, 2), tx(2, 0, 2)})
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], ErrState)
	require.NoError(t, errs[2])
	w.repairs()
	w.add(tx(0, 0, 2))
	// One that could not be read at a reset is read before it is used again.
	w.breaks(0)
	w.set(0, func(a *Account) { *a = Account{Nonce: 1} })
	w.reset(Head{})
	w.repairs()
	require.ErrorIs(t, w.Add(tx(0, 1, 2)), ErrInsufficientFunds)
	require.Equal(t, 2, w.Size(), "nonce 0 is used up")
}

// Refused senders are not read again and again.
func TestAccountCache(t *testing.T) {
	w := newWorld(t)
	w.balance(0, 1)
	for range 10 {
		w.refuse(tx(0, 0, 2), ErrInsufficientFunds)
	}
	require.Equal(t, 1, w.reads)
	w.balance(0, 1e18)
	w.reset(Head{})
	w.add(tx(0, 0, 2))
}

// A Reset that names an account reads it again, also if the pool has nothing of
// it but the answer of an earlier look.
func TestTouchedAccountIsReadAgain(t *testing.T) {
	w := newWorld(t)
	w.balance(0, 0)
	w.refuse(tx(0, 0, 2), ErrInsufficientFunds)
	w.balance(0, 1e18)
	w.refuse(tx(0, 0, 2), ErrInsufficientFunds)
	w.reset(Head{Touched: []common.Address{addr(0)}})
	w.add(tx(0, 0, 2))
}

// A refused transaction can be added again, and is checked again.
func TestRefusedAgain(t *testing.T) {
	w := newWorld(t, tiny(1, 1))
	w.add(tx(1, 0, 9))
	refused := tx(0, 0, 2)
	w.refuse(refused, ErrPoolFull)
	w.remove(tx(1, 0, 9))
	w.add(refused)
	w.refuse(refused, ErrAlreadyKnown)
}

// A flood of replacements does not make the pool forget what failed in building.
func TestQuarantineOutlastsReplacements(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2))
	require.NoError(t, w.Reject(tx(0, 0, 2).Hash(), errTest))
	for i := range maxQuarantined + 1 {
		w.core.replaced.remember(common.Hash{byte(i), byte(i >> 8)}, struct{}{}, w.cfg.Now().UnixNano())
	}
	w.refuse(tx(0, 0, 2), ErrQuarantined)
}
