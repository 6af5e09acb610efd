package txpool

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// Every refusal has geth's words where geth has the case, says the facts, and changes nothing.
func TestRefusals(t *testing.T) {
	fee, price := gweis(2), uint256.NewInt(2*gwei)
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
		"tip above cap":           {capped(2, 0, 3, 2), ErrTipAboveFeeCap, "max priority fee per gas higher than max fee per gas: maxPriorityFeePerGas: 3000000000, maxFeePerGas: 2000000000"},
		"gas too low":             {hungry(2, 0, 2, 20_999), ErrIntrinsicGas, "intrinsic gas too low: gas 20999, minimum needed 21000"},
		"creation gas":            {creation(2, make([]byte, 33), 53_000), ErrIntrinsicGas, "gas 53000, minimum needed 53136"},
		"access list gas":         {sign(2, &types.AccessListTx{ChainID: chainID, GasPrice: fee, Gas: 25_299, To: there, AccessList: types.AccessList{{StorageKeys: []common.Hash{{}}}}}), ErrIntrinsicGas, "gas 25299, minimum needed 25300"},
		"authorization gas":       {sign(2, &types.SetCodeTx{ChainID: uint256.NewInt(4359), GasTipCap: price, GasFeeCap: price, Gas: 45_999, AuthList: []types.SetCodeAuthorization{delegate(3, 0)}}), ErrIntrinsicGas, "gas 45999, minimum needed 46000"},
		"data floor":              {sign(2, &types.LegacyTx{GasPrice: fee, Gas: 21_000 + 16*uint64(len(text)), To: there, Data: text}), ErrFloorDataGas, "insufficient gas for floor data gas cost"},
		"gas limit":               {hungry(2, 0, 2, 30_000_001), ErrGasLimit, "exceeds block gas limit: gas 30000001, limit 30000000"},
		"EIP-7825":                {hungry(2, 0, 2, 1<<24+1), ErrTxGasLimit, "transaction gas limit too high (cap: 16777216, tx: 16777217)"},
		"size":                    {creation(2, make([]byte, 32*1024), 10_000_000), ErrOversized, "oversized data"},
		"no authorizations":       {sign(2, &types.SetCodeTx{ChainID: uint256.NewInt(4359), GasTipCap: price, GasFeeCap: price, Gas: 100_000}), ErrEmptyAuthorizations, "set code tx needs at least one authorization"},
		"too many authorizations": {setCode(2, 0, 2, make([]types.SetCodeAuthorization, 17)...), ErrTooManyAuthorizations, "too many authorizations: 17, limit 16"},
		"other chain":             {types.MustSignNewTx(key(2), types.NewPragueSigner(big.NewInt(1)), &types.DynamicFeeTx{ChainID: big.NewInt(1), GasTipCap: fee, GasFeeCap: fee, Gas: txGas, To: there}), ErrInvalidChainID, "invalid chain id for signer: have 1 want 4359"},
		"other chain, legacy":     {types.MustSignNewTx(key(2), types.NewPragueSigner(big.NewInt(1)), &types.LegacyTx{GasPrice: fee, Gas: txGas, To: there}), ErrInvalidChainID, "have 1 want 4359"},
		"unprotected":             {types.MustSignNewTx(key(2), types.HomesteadSigner{}, &types.LegacyTx{GasPrice: fee, Gas: txGas, To: there}), ErrUnprotected, "only replay-protected (EIP-155) transactions allowed over RPC"},
		"blob":                    {sign(2, &types.BlobTx{ChainID: uint256.NewInt(4359), GasTipCap: price, GasFeeCap: price, Gas: txGas, BlobFeeCap: uint256.NewInt(1), BlobHashes: []common.Hash{{1}}}), ErrTypeNotSupported, "transaction type not supported"},
		"no signature":            {types.NewTx(&types.DynamicFeeTx{ChainID: chainID, GasTipCap: fee, GasFeeCap: fee, Gas: txGas, To: there}), ErrInvalidSender, "invalid sender"},
		"more than 256 bits":      {sign(2, &types.DynamicFeeTx{ChainID: chainID, GasTipCap: fee, GasFeeCap: big257, Gas: txGas, To: there}), ErrFeeCapTooHigh, "max fee per gas higher than 2^256-1"},
		"tip above 256 bits":      {sign(2, &types.DynamicFeeTx{ChainID: chainID, GasTipCap: big257, GasFeeCap: fee, Gas: txGas, To: there}), ErrTipTooHigh, "max priority fee per gas higher than 2^256-1"},
		"negative value":          {types.NewTx(&types.LegacyTx{GasPrice: fee, Gas: txGas, To: there, Value: big.NewInt(-1), V: big.NewInt(8753), R: big.NewInt(1), S: big.NewInt(1)}), ErrNegativeValue, "negative value: value -1"},
		"cost overflow":           {sign(2, &types.LegacyTx{GasPrice: fee, Gas: txGas, To: there, Value: new(big.Int).Sub(big257, big.NewInt(1))}), ErrInsufficientFunds, "the cost exceeds 2^256-1 wei"},
		"cost just fits":          {sign(2, &types.LegacyTx{GasPrice: fee, Gas: txGas, To: there, Value: new(big.Int).Rsh(big257, 1)}), ErrInsufficientFunds, "have 1000000000000000000 want"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.nonce(0, 5)
			w.balance(1, 1000)
			w.refuse(c.tx, c.want, c.text)
		})
	}
}

// A transaction with a negative number in its signature or chain id has no encoding,
// so the pool refuses it, although go-ethereum or the host finds a sender.
func TestNegativeSignature(t *testing.T) {
	plain := types.MustSignNewTx(key(0), types.HomesteadSigner{}, &types.LegacyTx{GasPrice: gweis(2), Gas: txGas, To: there})
	v, r, s := plain.RawSignatureValues()
	negative := types.NewTx(&types.LegacyTx{GasPrice: gweis(2), Gas: txGas, To: there, V: new(big.Int).Neg(v), R: r, S: s})
	require.Equal(t, addr(0), senderOf(negative))
	w := newWorld(t, func(c *Config) { c.AcceptUnprotected = true })
	w.refuse(negative, ErrMalformed)
	w.add(plain)

	w = newWorld(t, unsigned)
	w.refuse(types.NewTx(&types.DynamicFeeTx{ChainID: big.NewInt(-1), GasTipCap: gweis(2), GasFeeCap: gweis(2), Gas: txGas, To: there}), ErrMalformed)
	w.refuse(types.NewTx(&types.LegacyTx{GasPrice: gweis(2), Gas: txGas, To: there, R: big.NewInt(-1)}), ErrMalformed)
}

// Types that are off by default can be turned on.
func TestConfiguredTypes(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.AcceptBlobs, c.AcceptUnprotected = true, true })
	blob := func(nonce uint64, hashes ...common.Hash) *types.Transaction {
		return sign(0, &types.BlobTx{ChainID: uint256.NewInt(4359), Nonce: nonce, GasTipCap: uint256.NewInt(2 * gwei), GasFeeCap: uint256.NewInt(2 * gwei), Gas: txGas, BlobFeeCap: uint256.NewInt(gwei), BlobHashes: hashes})
	}
	w.refuse(blob(0), ErrMissingBlobHashes)
	w.add(blob(0, common.Hash{1}))
	w.refuse(tx(0, 0, 100), ErrReplaceUnderpriced, "blob transactions only replace each other")
	w.add(types.MustSignNewTx(key(1), types.HomesteadSigner{}, &types.LegacyTx{GasPrice: gweis(2), Gas: txGas, To: there}))
	// The blob's fee belongs to its cost.
	w = newWorld(t, func(c *Config) { c.AcceptBlobs = true })
	w.balance(0, txGas*2*gwei+131072*gwei-1)
	w.refuse(blob(0, common.Hash{1}), ErrInsufficientFunds)
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
		"MaxPerSender":   perSender(0),
		"MaxDelegated":   func(c *Config) { c.MaxDelegated = 0 },
		"Fork":           func(c *Config) { c.Fork = London + 1 },
		"PriceBump":      func(c *Config) { c.PriceBump = 10_001 },
		"Lifetime":       func(c *Config) { c.Lifetime = 0 },
		"QuarantineTime": func(c *Config) { c.QuarantineTime = -1 },
		"FloorWindow":    func(c *Config) { c.FloorWindow = 2000 },
	} {
		c := DefaultConfig(chainID)
		change(&c)
		err := c.Validate()
		require.ErrorIs(t, err, ErrInvalidConfig, field)
		require.ErrorContains(t, err, field)
		_, err = New(c, StateFunc(nil))
		require.ErrorIs(t, err, ErrInvalidConfig)
	}
	_, err := New(good, nil)
	require.ErrorIs(t, err, ErrInvalidConfig)
	good.ChainID, good.MaxPending, good.Lifetime = nil, 0, -1
	for _, field := range []string{"ChainID is <nil>", "MaxPending is 0, want 1 to", "Lifetime is -1ns"} {
		require.ErrorContains(t, good.Validate(), field, "every violation is named")
	}
}

// An underpriced transaction is one that pays less than the floor or than the
// transaction that it would replace. It is no spam, and a transaction that loses
// against others in a full pool is neither.
func TestUnderpriced(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxPending, c.MinGasPrice = 2, 2*gwei })
	w.add(tx(0, 0, 3), tx(1, 0, 4))
	for name, x := range map[string]struct {
		err, is     error
		underpriced bool
	}{
		"below the floor":       {w.Add(tx(2, 0, 1)), ErrUnderpriced, true},
		"replacement":           {w.Add(capped(0, 0, 3, 4)), ErrReplaceUnderpriced, true},
		"worst of a full pool":  {w.Add(tx(2, 0, 2)), ErrUnderpriced, false},
		"known":                 {w.Add(tx(0, 0, 3)), ErrAlreadyKnown, false},
		"invalid":               {w.Add(hungry(2, 0, 2, txGas-1)), ErrIntrinsicGas, false},
		"wrapped by the caller": {fmt.Errorf("send: %w", ErrReplaceUnderpriced), ErrReplaceUnderpriced, true},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, x.err, x.is)
			require.Equal(t, x.underpriced, Underpriced(x.err))
			require.False(t, x.underpriced && Spam(x.err))
		})
	}
	require.False(t, Underpriced(nil))
}

// The lower one of MaxTxGas and the gas limit of a block bounds a transaction.
func TestMaxTxGas(t *testing.T) {
	for most, limit := range map[uint64]uint64{0: 50_000, 30_000: 30_000, 60_000: 50_000} {
		w := newWorld(t, func(c *Config) { c.BlockGasLimit, c.MaxTxGas = 50_000, most })
		want := ErrTxGasLimit
		if limit == 50_000 {
			want = ErrGasLimit
		}
		w.refuse(hungry(0, 0, 2, limit+1), want)
		w.add(hungry(0, 0, 2, limit))
		require.Equal(t, limit, w.cfg.GreatestGas())
	}
}

// The gas of init code and of data follows the fork rules of the configuration.
func TestForkRules(t *testing.T) {
	code := make([]byte, 33) // zeros, two words
	const intrinsic, words = txGas + createGas + 33*zeroByteGas, 2 * initCodeWordGas
	w := newWorld(t)
	w.refuse(creation(0, code, intrinsic+words-1), ErrIntrinsicGas)
	w.add(creation(0, code, intrinsic+words))
	w.refuse(legacy(1, 0, gweis(2), txGas+10*100-1, 100), ErrFloorDataGas)

	w = newWorld(t, func(c *Config) { c.Fork = London })
	w.refuse(creation(0, code, intrinsic-1), ErrIntrinsicGas)
	w.add(creation(0, code, intrinsic))
	w.add(legacy(1, 0, gweis(2), txGas+zeroByteGas*100, 100))
}

// MaxInitCodeSize bounds creations only, and none before Shanghai.
func TestMaxInitCodeSize(t *testing.T) {
	const enough = 1_000_000
	for _, fork := range []Fork{Prague, Shanghai} {
		w := newWorld(t, func(c *Config) { c.Fork, c.MaxTxSize = fork, 1<<20 })
		w.refuse(creation(0, make([]byte, MaxInitCodeSize+1), enough), ErrMaxInitCodeSize)
		w.add(creation(0, make([]byte, MaxInitCodeSize), enough))
		w.add(legacy(1, 0, gweis(2), enough, MaxInitCodeSize+1))
	}
	w := newWorld(t, func(c *Config) { c.Fork, c.MaxTxSize = London, 1<<20 })
	w.add(creation(0, make([]byte, MaxInitCodeSize+1), enough))
}

// TestI15SizeAccounting: access lists and authorizations count as they lie in memory.
func TestI15SizeAccounting(t *testing.T) {
	w := newWorld(t)
	want := uint64(0)
	for _, c := range []struct {
		tx     *types.Transaction
		memory uint64
	}{
		{tx(0, 0, 2), txMemory},
		{listing(1, 0, 2, 100, 0), txMemory + 100*accessTupleMemory},
		{setCode(2, 0, 2, delegate(3, 0)), txMemory + delegatingMemory + authorizationMemory + authorityMemory},
	} {
		w.add(c.tx)
		want += c.memory
		require.Equal(t, want, w.Stats().PendingBytes)
	}
	require.Equal(t, memoryOf(listing(0, 0, 2, 1, 1))+9*common.HashLength, memoryOf(listing(0, 0, 2, 1, 10)), "storage keys")
}

func TestAddRaw(t *testing.T) {
	w := newWorld(t)
	raw, err := tx(0, 0, 2).MarshalBinary()
	require.NoError(t, err)
	hash, err := w.AddRaw(raw)
	require.NoError(t, err)
	require.Equal(t, tx(0, 0, 2).Hash(), hash)
	_, err = w.AddRaw([]byte{1, 2, 3})
	require.ErrorIs(t, err, ErrMalformed)
	_, err = w.AddRaw(make([]byte, 33*1024))
	require.ErrorIs(t, err, ErrOversized)
	raw2, err := tx(1, 0, 2).MarshalBinary()
	require.NoError(t, err)
	got, errs := w.AddAllRaw([][]byte{raw, nil, raw2})
	require.ErrorIs(t, errs[0], ErrAlreadyKnown)
	require.ErrorIs(t, errs[1], ErrMalformed)
	require.NoError(t, errs[2])
	require.Equal(t, []common.Hash{{}, {}, tx(1, 0, 2).Hash()}, got)
}

// Whatever comes over the wire is an error or a transaction, and never a panic.
func FuzzAddRaw(f *testing.F) {
	for _, tx := range []*types.Transaction{tx(0, 0, 2), capped(0, 3, 2, 9), setCode(0, 0, 2, delegate(1, 0)), listing(1, 0, 2, 1, 1)} {
		raw, err := tx.MarshalBinary()
		require.NoError(f, err)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		w := newWorld(t)
		hash, err := w.AddRaw(raw)
		if (err == nil) != (w.Get(hash) != nil) {
			t.Fatalf("AddRaw said %v, stored: %v", err, w.Get(hash) != nil)
		}
		w.check()
	})
}
