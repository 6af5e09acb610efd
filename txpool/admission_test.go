package txpool

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// Every refusal has geth's words where geth has the case, says the facts, and changes nothing.
func TestRefusals(t *testing.T) {
	w := newWorld()
	w.nonce(0, 5)
	w.balance(1, 1000)
	fee := big.NewInt(2 * gwei)
	to := &common.Address{1}
	big257 := new(big.Int).Lsh(big.NewInt(1), 256)
	text := []byte(strings.Repeat("long text ", 300))
	for name, c := range map[string]struct {
		tx   *types.Transaction
		want error
		text string
	}{
		"nil":                     {nil, ErrMalformed, "malformed transaction"},
		"nonce too low":           {tx(0, 4, 2), ErrNonceTooLow, "nonce too low: address " + addr(0).Hex() + ", tx: 4 state: 5"},
		"nonce too high":          {tx(0, 70, 2), ErrNonceTooHigh, "nonce too high: address " + addr(0).Hex() + ", tx: 70 state: 5, want ≤ 69"},
		"nonce max":               {tx(2, math.MaxUint64, 2), ErrNonceMax, "nonce has max value"},
		"funds":                   {tx(1, 0, 2), ErrInsufficientFunds, "insufficient funds for gas * price + value: address " + addr(1).Hex() + " have 1000 want 42000000000000"},
		"underpriced":             {tx(2, 0, 0), ErrUnderpriced, "transaction underpriced: maxFeePerGas 0 wei, want ≥ 1000000000"},
		"no tip":                  {capped(2, 0, 0, 5), ErrUnderpriced, "transaction underpriced"},
		"tip above cap":           {sign(2, &types.DynamicFeeTx{ChainID: chainID, GasTipCap: big.NewInt(3 * gwei), GasFeeCap: fee, Gas: txGas, To: to}), ErrTipAboveFeeCap, "max priority fee per gas higher than max fee per gas: maxPriorityFeePerGas: 3000000000, maxFeePerGas: 2000000000"},
		"gas too low":             {sign(2, &types.LegacyTx{GasPrice: fee, Gas: 20_999, To: to}), ErrIntrinsicGas, "intrinsic gas too low: gas 20999, minimum needed 21000"},
		"creation gas":            {sign(2, &types.LegacyTx{GasPrice: fee, Gas: 53_000, Data: make([]byte, 33)}), ErrIntrinsicGas, "gas 53000, minimum needed 53136"},
		"access list gas":         {sign(2, &types.AccessListTx{ChainID: chainID, GasPrice: fee, Gas: 25_299, To: to, AccessList: types.AccessList{{StorageKeys: []common.Hash{{}}}}}), ErrIntrinsicGas, "gas 25299, minimum needed 25300"},
		"authorization gas":       {sign(2, &types.SetCodeTx{ChainID: uint256.NewInt(4359), GasTipCap: uint256.NewInt(2 * gwei), GasFeeCap: uint256.NewInt(2 * gwei), Gas: 45_999, AuthList: []types.SetCodeAuthorization{delegate(3, 0)}}), ErrIntrinsicGas, "gas 45999, minimum needed 46000"},
		"data floor":              {sign(2, &types.LegacyTx{GasPrice: fee, Gas: 21_000 + 16*uint64(len(text)), To: to, Data: text}), ErrFloorDataGas, "insufficient gas for floor data gas cost"},
		"gas limit":               {sign(2, &types.LegacyTx{GasPrice: fee, Gas: 30_000_001, To: to}), ErrGasLimit, "exceeds block gas limit: gas 30000001, limit 30000000"},
		"EIP-7825":                {sign(2, &types.LegacyTx{GasPrice: fee, Gas: 1<<24 + 1, To: to}), ErrTxGasLimit, "transaction gas limit too high (cap: 16777216, tx: 16777217)"},
		"size":                    {sign(2, &types.LegacyTx{GasPrice: fee, Gas: 10_000_000, Data: make([]byte, 32*1024)}), ErrOversized, "oversized data"},
		"no authorizations":       {sign(2, &types.SetCodeTx{ChainID: uint256.NewInt(4359), GasTipCap: uint256.NewInt(2 * gwei), GasFeeCap: uint256.NewInt(2 * gwei), Gas: 100_000}), ErrEmptyAuthorizations, "set code tx needs at least one authorization"},
		"too many authorizations": {setCode(2, 0, 2, make([]types.SetCodeAuthorization, 17)...), ErrTooManyAuthorizations, "too many authorizations: 17, limit 16"},
		"other chain":             {types.MustSignNewTx(keys[2], types.NewPragueSigner(big.NewInt(1)), &types.DynamicFeeTx{ChainID: big.NewInt(1), GasTipCap: fee, GasFeeCap: fee, Gas: txGas, To: to}), ErrInvalidChainID, "invalid chain id for signer: have 1 want 4359"},
		"other chain, legacy":     {types.MustSignNewTx(keys[2], types.NewPragueSigner(big.NewInt(1)), &types.LegacyTx{GasPrice: fee, Gas: txGas, To: to}), ErrInvalidChainID, "have 1 want 4359"},
		"unprotected":             {types.MustSignNewTx(keys[2], types.HomesteadSigner{}, &types.LegacyTx{GasPrice: fee, Gas: txGas, To: to}), ErrUnprotected, "only replay-protected (EIP-155) transactions allowed over RPC"},
		"blob":                    {sign(2, &types.BlobTx{ChainID: uint256.NewInt(4359), GasTipCap: uint256.NewInt(2 * gwei), GasFeeCap: uint256.NewInt(2 * gwei), Gas: txGas, BlobFeeCap: uint256.NewInt(1), BlobHashes: []common.Hash{{1}}}), ErrTypeNotSupported, "transaction type not supported"},
		"no signature":            {types.NewTx(&types.DynamicFeeTx{ChainID: chainID, GasTipCap: fee, GasFeeCap: fee, Gas: txGas, To: to}), ErrInvalidSender, "invalid sender"},
		"more than 256 bits":      {sign(2, &types.DynamicFeeTx{ChainID: chainID, GasTipCap: fee, GasFeeCap: big257, Gas: txGas, To: to}), ErrFeeCapTooHigh, "max fee per gas higher than 2^256-1"},
		"tip above 256 bits":      {sign(2, &types.DynamicFeeTx{ChainID: chainID, GasTipCap: big257, GasFeeCap: fee, Gas: txGas, To: to}), ErrTipTooHigh, "max priority fee per gas higher than 2^256-1"},
		"negative value":          {types.NewTx(&types.LegacyTx{GasPrice: fee, Gas: txGas, To: to, Value: big.NewInt(-1), V: big.NewInt(8753), R: big.NewInt(1), S: big.NewInt(1)}), ErrNegativeValue, "negative value: value -1"},
		"cost overflow":           {sign(2, &types.LegacyTx{GasPrice: fee, Gas: txGas, To: to, Value: new(big.Int).Sub(big257, big.NewInt(1))}), ErrInsufficientFunds, "the cost exceeds 2^256-1 wei"},
		"cost just fits":          {sign(2, &types.LegacyTx{GasPrice: fee, Gas: txGas, To: to, Value: new(big.Int).Rsh(big257, 1)}), ErrInsufficientFunds, "have 1000000000000000000 want"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, w, nil)
			refuse(t, p, c.tx, c.want, c.text)
		})
	}
}

// Init code that is too long is refused for this reason if the size limit does
// not apply first.
func TestInitCodeLimit(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) {
		c.MaxTxSize = 128 * 1024
	})
	refuse(t, p, sign(2, &types.LegacyTx{GasPrice: big.NewInt(2 * gwei), Gas: 10_000_000, Data: make([]byte, 49_153)}), ErrMaxInitCodeSize, "code size 49153, limit 49152")
}

// Types that are off by default can be turned on.
func TestConfiguredTypes(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { c.AcceptBlobs, c.AcceptUnprotected = true, true })
	blob := func(nonce uint64, hashes ...common.Hash) *types.Transaction {
		return sign(0, &types.BlobTx{ChainID: uint256.NewInt(4359), Nonce: nonce, GasTipCap: uint256.NewInt(2 * gwei), GasFeeCap: uint256.NewInt(2 * gwei), Gas: txGas, BlobFeeCap: uint256.NewInt(gwei), BlobHashes: hashes})
	}
	refuse(t, p, blob(0), ErrMissingBlobHashes)
	add(t, p, blob(0, common.Hash{1}))
	refuse(t, p, tx(0, 0, 100), ErrReplaceUnderpriced, "blob transactions only replace each other")
	add(t, p, types.MustSignNewTx(keys[1], types.HomesteadSigner{}, &types.LegacyTx{GasPrice: big.NewInt(2 * gwei), Gas: txGas, To: &common.Address{1}}))
	// The blob's fee belongs to its cost.
	poor := newWorld()
	poor.balance(0, txGas*2*gwei+131072*gwei-1)
	p = newPool(t, poor, func(c *Config) { c.AcceptBlobs = true })
	refuse(t, p, blob(0, common.Hash{1}), ErrInsufficientFunds)
}

// A rollup brings its own checks, signatures, fees and sizes.
func TestHooks(t *testing.T) {
	w := newWorld()
	bad := errors.New("not on Sundays")
	p := newPool(t, w, func(c *Config) {
		c.Precheck = func(tx *types.Transaction) error {
			if tx.Nonce() == 7 {
				return bad
			}
			return nil
		}
		c.Sender = func(tx *types.Transaction) (common.Address, error) {
			if len(tx.Data()) == 0 {
				return common.Address{}, errors.New("no name")
			}
			return common.BytesToAddress(tx.Data()), nil
		}
		c.ExtraCost = func(*types.Transaction) *uint256.Int { return uint256.NewInt(5e17) }
		c.DASize = func(tx *types.Transaction) uint64 { return 1000 }
	})
	named := func(nonce uint64, name byte) *types.Transaction {
		return types.NewTx(&types.LegacyTx{Nonce: nonce, GasPrice: big.NewInt(gwei), Gas: 30_000, To: &common.Address{1}, Data: []byte{name}})
	}
	refuse(t, p, tx(0, 0, 1), ErrInvalidSender, "no name")
	refuse(t, p, named(7, 1), bad)
	add(t, p, named(0, 1), named(0, 2))
	refuse(t, p, named(1, 1), ErrInsufficientFunds) // twice the extra cost is an ether
	l := p.Drain(Budget{DABytes: 1999})
	require.Len(t, l.Transactions(), 1)
	require.Equal(t, []Skip{{named(0, 2), SkipDABytes}}[0].Reason, l.Skipped()[0].Reason)
}

// TestI8CheapChecksFirst: whatever can be refused without cryptography is, and penalties name no
// sender.
func TestI8CheapChecksFirst(t *testing.T) {
	recoveries := 0
	p := newPool(t, newWorld(), func(c *Config) {
		c.Sender = func(tx *types.Transaction) (common.Address, error) {
			recoveries++
			return types.Sender(signer, tx)
		}
	})
	first := tx(0, 0, 2)
	add(t, p, first)
	require.Equal(t, 1, recoveries)
	refuse(t, p, first, ErrAlreadyKnown, "already known")
	refuse(t, p, sign(2, &types.LegacyTx{GasPrice: big.NewInt(gwei), Gas: 20_999, To: &common.Address{1}}), ErrIntrinsicGas)
	refuse(t, p, setCode(2, 0, 2, make([]types.SetCodeAuthorization, 17)...), ErrTooManyAuthorizations)
	require.NoError(t, p.Reject(first.Hash(), errors.New("reverted")))
	refuse(t, p, first, ErrQuarantined)
	require.Equal(t, 1, recoveries)
	require.True(t, Spam(ErrIntrinsicGas))
	require.False(t, Spam(ErrNonceTooLow), "an honest client can be late")
}

// TestI6Replacement: both caps, by an eighth, rounded up, at least 1 wei, and not much longer.
func TestI6Replacement(t *testing.T) {
	w := newWorld()
	priced := func(tip, feeCap int64, data int) *types.Transaction {
		return sign(0, &types.DynamicFeeTx{ChainID: chainID, GasTipCap: big.NewInt(tip), GasFeeCap: big.NewInt(feeCap), Gas: 50_000, To: &common.Address{1}, Data: make([]byte, data)})
	}
	for name, c := range map[string]struct {
		old, new *types.Transaction
		want     error
		text     string
	}{
		"enough":       {priced(2*gwei, 4*gwei, 0), priced(2.25*gwei, 4.5*gwei, 0), nil, ""},
		"tip too low":  {priced(2*gwei, 4*gwei, 0), priced(2.25*gwei-1, 5*gwei, 0), ErrReplaceUnderpriced, "replacement transaction underpriced: maxPriorityFeePerGas 2249999999, want ≥ 2250000000"},
		"cap too low":  {priced(2*gwei, 4*gwei, 0), priced(3*gwei, 4.5*gwei-1, 0), ErrReplaceUnderpriced, "maxFeePerGas 4499999999, want ≥ 4500000000"},
		"rounded up":   {priced(gwei+1, gwei+1, 0), priced(1_125_000_001, 1_125_000_002, 0), ErrReplaceUnderpriced, "want ≥ 1125000002"},
		"same":         {priced(2*gwei, 4*gwei, 0), priced(2*gwei, 4*gwei, 1), ErrReplaceUnderpriced, ""},
		"a bit longer": {priced(2*gwei, 4*gwei, 0), priced(3*gwei, 6*gwei, 20), nil, ""},
		"much longer":  {priced(2*gwei, 4*gwei, 0), priced(3*gwei, 6*gwei, 100), ErrReplaceOversized, "replacement transaction oversized"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, w, nil)
			add(t, p, c.old)
			if c.want == nil {
				add(t, p, c.new)
				require.Nil(t, p.Get(c.old.Hash()))
				return
			}
			refuse(t, p, c.new, c.want, c.text)
			require.NotNil(t, p.Get(c.old.Hash()))
		})
	}
	t.Run("at least 1 wei", func(t *testing.T) {
		cfg := DefaultConfig(chainID)
		require.Equal(t, big.NewInt(1), cfg.bumped(new(big.Int)))
		require.Equal(t, big.NewInt(2), cfg.bumped(big.NewInt(1)))
		cfg.PriceBump = 0
		require.Equal(t, big.NewInt(101), cfg.bumped(big.NewInt(100)))
	})
	t.Run("the chain stays affordable", func(t *testing.T) {
		w := newWorld()
		w.balance(0, 10*txGas*gwei)
		p := newPool(t, w, nil)
		add(t, p, tx(0, 0, 2), tx(0, 1, 5))
		refuse(t, p, tx(0, 0, 6), ErrInsufficientFunds)
		add(t, p, tx(0, 0, 5))
	})
}

// A nonce can be replaced so often within a while; the replaced one does not come back.
func TestReplacementLimitAndTombstone(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	first, next := tx(0, 0, 20), tx(0, 0, 999)
	add(t, p, first)
	price := int64(20)
	for range maxReplacements {
		price += price/8 + 1
		add(t, p, tx(0, 0, price))
	}
	refuse(t, p, next, ErrReplaceTooOften, "nonce 0 was replaced 10 times, try again in 1m0s")
	w.advance(time.Minute)
	add(t, p, next)
	require.NoError(t, p.Remove(next.Hash()))
	w.advance(8 * time.Minute)
	refuse(t, p, first, ErrReplaced, "try again in 1m0s")
	w.advance(time.Minute)
	add(t, p, first)
}

// TestI2Overdraft: the balance covers everything a sender has here at once: pending, queued,
// parked, leased, and of the same batch.
func TestI2Overdraft(t *testing.T) {
	w := newWorld()
	w.balance(0, 10*txGas*gwei)
	p := newPool(t, w, nil)
	errs := p.AddAll([]*types.Transaction{tx(0, 0, 4), tx(0, 2, 4), tx(0, 1, 4), tx(0, 1, 2)})
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	require.ErrorIs(t, errs[2], ErrInsufficientFunds)
	require.NoError(t, errs[3])
	l := p.Drain(Budget{})
	refuse(t, p, tx(0, 3, 1), ErrInsufficientFunds, "have 210000000000000 want 231000000000000, including 210000000000000 for other transactions")
	// A committed transaction still counts until the host's state shows it.
	require.NoError(t, l.Commit())
	refuse(t, p, tx(0, 3, 1), ErrInsufficientFunds)
	w.set(0, func(a *Account) { a.Nonce, a.Balance = 3, *uint256.NewInt(txGas * gwei) })
	p.Reset(Head{Touched: []common.Address{addr(0)}})
	add(t, p, tx(0, 3, 1))
}

// When a balance falls, the end of the chain goes first.
func TestBalanceDrift(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 2), tx(0, 1, 2), tx(0, 2, 2))
	w.balance(0, 5*txGas*gwei)
	p.Reset(Head{})
	require.NoError(t, p.Check())
	require.Equal(t, hashes([]*types.Transaction{tx(0, 0, 2), tx(0, 1, 2)}), hashes(p.Candidates()))
}

// TestI10Batch: a batch does exactly what its singles would.
func TestI10Batch(t *testing.T) {
	var txs []*types.Transaction
	for i := range 40 {
		txs = append(txs, tx(i%7, uint64(i*5%11), int64(1+i%4)), tx(i%7, uint64(i*3%11), int64(2+i%9)))
	}
	small := func(c *Config) { c.MaxPending, c.MaxQueued, c.MaxPerSender = 12, 6, 5 }
	one, all := newPool(t, newWorld(), small), newPool(t, newWorld(), small)
	errs := all.AddAll(txs)
	for i, tx := range txs {
		err := one.Add(tx)
		require.Equal(t, err == nil, errs[i] == nil, "transaction %d: %v, in a batch %v", i, err, errs[i])
		if err != nil {
			require.Equal(t, err.Error(), errs[i].Error())
		}
	}
	require.Equal(t, one.Stats(), all.Stats())
	require.Equal(t, hashes(one.Candidates()), hashes(all.Candidates()))
}

// If the state cannot be read, the transaction is refused, and nothing is guessed.
func TestStateErrors(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	w.broken[addr(0)] = errors.New("no disk")
	refuse(t, p, tx(0, 0, 2), ErrState, "account state unavailable: "+addr(0).Hex()+": no disk")
	errs := p.AddAll([]*types.Transaction{tx(1, 0, 2), tx(0, 0, 2), tx(2, 0, 2)})
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], ErrState)
	require.NoError(t, errs[2])
	delete(w.broken, addr(0))
	add(t, p, tx(0, 0, 2))
	// One that could not be read at a reset is read before it is used again.
	w.broken[addr(0)] = errors.New("no disk")
	w.accounts[addr(0)] = Account{Nonce: 1}
	p.Reset(Head{})
	delete(w.broken, addr(0))
	refuse2 := p.Add(tx(0, 1, 2))
	require.ErrorIs(t, refuse2, ErrInsufficientFunds)
	require.Equal(t, 2, p.Size(), "nonce 0 is used up")
}

// Refused senders are not read again and again.
func TestAccountCache(t *testing.T) {
	w := newWorld()
	w.balance(0, 1)
	p := newPool(t, w, nil)
	for range 10 {
		refuse(t, p, tx(0, 0, 2), ErrInsufficientFunds)
	}
	require.Equal(t, 1, w.reads)
	w.balance(0, 1e18)
	p.Reset(Head{})
	add(t, p, tx(0, 0, 2))
}

func TestAddRaw(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	raw, err := tx(0, 0, 2).MarshalBinary()
	require.NoError(t, err)
	hash, err := p.AddRaw(raw)
	require.NoError(t, err)
	require.Equal(t, tx(0, 0, 2).Hash(), hash)
	_, err = p.AddRaw([]byte{1, 2, 3})
	require.ErrorIs(t, err, ErrMalformed)
	_, err = p.AddRaw(make([]byte, 33*1024))
	require.ErrorIs(t, err, ErrOversized)
	raw2, _ := tx(1, 0, 2).MarshalBinary()
	got, errs := p.AddAllRaw([][]byte{raw, nil, raw2})
	require.ErrorIs(t, errs[0], ErrAlreadyKnown)
	require.ErrorIs(t, errs[1], ErrMalformed)
	require.NoError(t, errs[2])
	require.Equal(t, []common.Hash{{}, {}, tx(1, 0, 2).Hash()}, got)
}

// A refused transaction can be added again, and is checked again.
func TestRefusedAgain(t *testing.T) {
	p := newPool(t, newWorld(), tiny(1, 1))
	add(t, p, tx(1, 0, 9))
	refused := tx(0, 0, 2)
	refuse(t, p, refused, ErrPoolFull)
	require.NoError(t, p.Remove(tx(1, 0, 9).Hash()))
	add(t, p, refused)
	refuse(t, p, refused, ErrAlreadyKnown)
}

func TestConfigValidate(t *testing.T) {
	good := DefaultConfig(chainID)
	require.NoError(t, good.Validate())
	for field, change := range map[string]func(*Config){
		"ChainID":        func(c *Config) { c.ChainID = nil },
		"BlockGasLimit":  func(c *Config) { c.BlockGasLimit = 20_999 },
		"MaxTxSize":      func(c *Config) { c.MaxTxSize = 0 },
		"MaxPending ":    func(c *Config) { c.MaxPending = 0 },
		"MaxParked ":     func(c *Config) { c.MaxParked = 0 },
		"MaxQueued ":     func(c *Config) { c.MaxQueued = -1 },
		"MaxBytes":       func(c *Config) { c.MaxBytes = 1 },
		"MaxPerSender":   func(c *Config) { c.MaxPerSender = 0 },
		"MaxDelegated":   func(c *Config) { c.MaxDelegated = 0 },
		"Fork":           func(c *Config) { c.Fork = London + 1 },
		"PriceBump":      func(c *Config) { c.PriceBump = 10_001 },
		"Lifetime":       func(c *Config) { c.Lifetime = 0 },
		"LeaseLifetime":  func(c *Config) { c.LeaseLifetime = 0 },
		"QuarantineTime": func(c *Config) { c.QuarantineTime = -1 },
		"FloorWindow":    func(c *Config) { c.FloorWindow = 2000 },
	} {
		c := DefaultConfig(chainID)
		change(&c)
		err := c.Validate()
		require.ErrorIs(t, err, ErrInvalidConfig, field)
		require.ErrorContains(t, err, field)
		_, err = New(c, newWorld())
		require.ErrorIs(t, err, ErrInvalidConfig)
	}
	_, err := New(good, nil)
	require.ErrorIs(t, err, ErrInvalidConfig)
	good.ChainID, good.MaxPending, good.Lifetime = nil, 0, -1
	for _, field := range []string{"ChainID is <nil>", "MaxPending is 0, want 1 to", "Lifetime is -1ns"} {
		require.ErrorContains(t, good.Validate(), field, "every violation is named")
	}
}

// TestI8PriceFirst: a transaction that can never pay the lowest price is
// refused before its signature is checked.
func TestI8PriceFirst(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) {
		c.Sender = func(*types.Transaction) (common.Address, error) { panic("asked for the sender") }
	})
	refuse(t, p, tx(0, 0, 0), ErrUnderpriced)
}

// Refusals are counted on all ways in.
func TestRefusalsAreCounted(t *testing.T) {
	counted := make(map[string]int)
	w := newWorld()
	w.balance(0, 0)
	p := newPool(t, w, func(c *Config) {
		c.Metrics.Count = func(counter Counter, reason string) {
			if counter == CountRejected {
				counted[reason]++
			}
		}
	})
	_, err := p.AddRaw([]byte{9})
	require.ErrorIs(t, err, ErrMalformed)
	require.ErrorIs(t, p.Add(tx(0, 0, 0)), ErrUnderpriced)
	require.ErrorIs(t, p.AddAll([]*types.Transaction{tx(0, 0, 2)})[0], ErrInsufficientFunds)
	require.Equal(t, map[string]int{label(ErrMalformed): 1, label(ErrUnderpriced): 1, label(ErrInsufficientFunds): 1}, counted)
}

// A flood of replacements does not make the pool forget what failed in building.
func TestQuarantineOutlastsReplacements(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	add(t, p, tx(0, 0, 2))
	require.NoError(t, p.Reject(tx(0, 0, 2).Hash(), errTest))
	for i := range maxQuarantined + 1 {
		p.core.replaced.put(common.Hash{byte(i), byte(i >> 8)}, struct{}{}, p.cfg.Now().UnixNano())
	}
	refuse(t, p, tx(0, 0, 2), ErrQuarantined)
}
