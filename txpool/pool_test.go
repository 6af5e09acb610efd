package txpool

import (
	"crypto/ecdsa"
	"errors"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

const gwei = 1_000_000_000

// world is a chain of accounts with keys, as the pool's host.
type world struct {
	mu     sync.Mutex
	nonce  map[common.Address]uint64
	wealth map[common.Address]*uint256.Int
	broken error
}

func (w *world) Account(a common.Address) (uint64, *uint256.Int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.wealth[a]; b != nil {
		return w.nonce[a], new(uint256.Int).Set(b), w.broken
	}
	return w.nonce[a], uint256.NewInt(1e18), w.broken
}

func (w *world) set(a common.Address, nonce uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nonce[a] = nonce
}

// key is the i-th test key.
func key(i int) *ecdsa.PrivateKey {
	k, err := crypto.ToECDSA(crypto.Keccak256([]byte{byte(i), byte(i >> 8)}))
	if err != nil {
		panic(err)
	}
	return k
}

func addr(i int) common.Address { return crypto.PubkeyToAddress(key(i).PublicKey) }

var (
	chainID = big.NewInt(4359)
	signer  = types.NewPragueSigner(chainID)
)

// tx makes a transfer of sender i with a tip in gwei.
func tx(i int, nonce uint64, tip int64) *types.Transaction {
	return sign(i, &types.DynamicFeeTx{ChainID: chainID, Nonce: nonce, GasTipCap: big.NewInt(tip * gwei), GasFeeCap: big.NewInt(tip * gwei), Gas: txGas, To: &common.Address{1}})
}

func sign(i int, data types.TxData) *types.Transaction {
	return types.MustSignNewTx(key(i), signer, data)
}

func newWorld() *world {
	return &world{nonce: make(map[common.Address]uint64), wealth: make(map[common.Address]*uint256.Int)}
}

func newPool(t testing.TB, w *world, change func(*Config)) *Pool {
	t.Helper()
	cfg := DefaultConfig(chainID)
	if change != nil {
		change(&cfg)
	}
	p, err := New(cfg, w)
	require.NoError(t, err)
	return p
}

func hashes(txs []*types.Transaction) []common.Hash {
	out := make([]common.Hash, len(txs))
	for i, tx := range txs {
		out[i] = tx.Hash()
	}
	return out
}

func TestRefusals(t *testing.T) {
	w := newWorld()
	w.nonce[addr(0)] = 5
	w.wealth[addr(1)] = uint256.NewInt(1000)
	fee := big.NewInt(2 * gwei)
	to := &common.Address{1}
	big257 := new(big.Int).Lsh(big.NewInt(1), 256)
	for name, c := range map[string]struct {
		tx   *types.Transaction
		want error
		text string
	}{
		"nonce too low":      {tx(0, 4, 2), ErrNonceTooLow, "nonce too low: address " + addr(0).Hex() + ", tx: 4 state: 5"},
		"nonce too high":     {tx(0, 69, 2), ErrNonceTooHigh, "nonce too high"},
		"funds":              {tx(1, 0, 2), ErrInsufficientFunds, "insufficient funds for gas * price + value: address " + addr(1).Hex() + " have 1000 want 42000000000000"},
		"underpriced":        {tx(2, 0, 0), ErrUnderpriced, "transaction underpriced"},
		"tip above cap":      {sign(2, &types.DynamicFeeTx{ChainID: chainID, GasTipCap: big.NewInt(3 * gwei), GasFeeCap: fee, Gas: txGas, To: to}), ErrTipAboveFeeCap, "max priority fee per gas higher than max fee per gas"},
		"gas too low":        {sign(2, &types.LegacyTx{GasPrice: fee, Gas: 20_999, To: to}), ErrIntrinsicGas, "intrinsic gas too low: gas 20999, minimum needed 21000"},
		"data floor":         {sign(2, &types.LegacyTx{GasPrice: fee, Gas: 21_000 + 16*uint64(len(longText)), To: to, Data: []byte(longText)}), ErrFloorDataGas, "insufficient gas for floor data gas cost"},
		"gas limit":          {sign(2, &types.LegacyTx{GasPrice: fee, Gas: 30_000_001, To: to}), ErrGasLimit, "exceeds block gas limit"},
		"initcode":           {sign(2, &types.LegacyTx{GasPrice: fee, Gas: 10_000_000, Data: make([]byte, 49_153)}), ErrOversized, "oversized data"},
		"no authorizations":  {sign(2, &types.SetCodeTx{ChainID: uint256.NewInt(4359), GasTipCap: uint256.NewInt(2 * gwei), GasFeeCap: uint256.NewInt(2 * gwei), Gas: 100_000}), ErrEmptyAuthorizations, "set code tx needs at least one authorization"},
		"other chain":        {types.MustSignNewTx(key(2), types.NewPragueSigner(big.NewInt(1)), &types.DynamicFeeTx{ChainID: big.NewInt(1), GasTipCap: fee, GasFeeCap: fee, Gas: txGas, To: to}), ErrInvalidChainID, "invalid chain id for signer: have 1 want 4359"},
		"unprotected":        {types.MustSignNewTx(key(2), types.HomesteadSigner{}, &types.LegacyTx{GasPrice: fee, Gas: txGas, To: to}), ErrUnprotected, "only replay-protected (EIP-155) transactions allowed over RPC"},
		"blob":               {sign(2, &types.BlobTx{ChainID: uint256.NewInt(4359), GasTipCap: uint256.NewInt(2 * gwei), GasFeeCap: uint256.NewInt(2 * gwei), Gas: txGas, BlobFeeCap: uint256.NewInt(1), BlobHashes: []common.Hash{{1}}}), ErrTypeNotSupported, "transaction type not supported"},
		"no signature":       {types.NewTx(&types.DynamicFeeTx{ChainID: chainID, GasTipCap: fee, GasFeeCap: fee, Gas: txGas, To: to}), ErrInvalidSender, "invalid sender"},
		"more than 256 bits": {sign(2, &types.DynamicFeeTx{ChainID: chainID, GasTipCap: fee, GasFeeCap: big257, Gas: txGas, To: to}), ErrFeeTooHigh, "max fee per gas higher than 2^256-1"},
		"value overflow":     {sign(2, &types.LegacyTx{GasPrice: fee, Gas: txGas, To: to, Value: new(big.Int).Sub(big257, big.NewInt(1))}), ErrFeeTooHigh, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, w, nil)
			err := p.Add(c.tx)
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.text)
			require.Zero(t, p.Size())
			require.NoError(t, p.core.check())
		})
	}
}

const longText = "a hundred bytes of text, none of them zero, cost more as data than as intrinsic gas: forty for each one"

func TestKnownAndReplacement(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	require.NoError(t, p.Add(tx(0, 0, 8)))
	require.ErrorIs(t, p.Add(tx(0, 0, 8)), ErrAlreadyKnown)
	err := p.Add(sign(0, &types.LegacyTx{GasPrice: big.NewInt(9*gwei - 1), Gas: txGas, To: &common.Address{1}}))
	require.ErrorIs(t, err, ErrReplaceUnderpriced)
	require.ErrorContains(t, err, "want at least 9000000000")
	better := tx(0, 0, 9)
	require.NoError(t, p.Add(better))
	require.Equal(t, 1, p.Size())
	require.NotNil(t, p.Get(better.Hash()))

	lease := p.Drain(Budget{})
	require.ErrorIs(t, p.Add(tx(0, 0, 100)), ErrInBundle)
	require.NoError(t, lease.Release())
	require.NoError(t, p.Add(tx(0, 0, 100)))
}

// T1: gaps hold later nonces back, and filling them sets those free.
func TestT1NoGap(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	for _, nonce := range []uint64{3, 1, 0} {
		require.NoError(t, p.Add(tx(0, nonce, 2)))
	}
	stats := p.Stats()
	require.Equal(t, 2, stats.Pending)
	require.Equal(t, 1, stats.Queued)
	next, known := p.NextNonce(addr(0))
	require.True(t, known)
	require.Equal(t, uint64(2), next)
	require.NoError(t, p.Add(tx(0, 2, 2)))
	require.Equal(t, 4, p.Stats().Pending)
	require.NoError(t, p.Remove(tx(0, 1, 2).Hash(), errors.New("unwanted")))
	pending, queued := p.Content()
	require.Len(t, pending[addr(0)], 1)
	require.Len(t, queued[addr(0)], 2)

	// An account that moved on elsewhere takes its old nonces along.
	w.set(addr(0), 2)
	p.Refresh([]common.Address{addr(0)})
	require.Equal(t, 2, p.Stats().Pending)
	require.NoError(t, p.core.check())
}

// T3: equal pools give equal drains, by tip, then by arrival, and by nonce within a sender.
func TestT3Deterministic(t *testing.T) {
	drain := func() []common.Hash {
		p := newPool(t, newWorld(), nil)
		for i, tip := range []int64{5, 9, 5, 7} {
			require.NoError(t, p.Add(tx(i, 0, tip)))
		}
		require.NoError(t, p.Add(tx(1, 1, 2)))
		require.NoError(t, p.Add(tx(3, 1, 50)))
		return hashes(p.Drain(Budget{}).Transactions())
	}
	want := hashes([]*types.Transaction{tx(1, 0, 9), tx(3, 0, 7), tx(3, 1, 50), tx(0, 0, 5), tx(2, 0, 5), tx(1, 1, 2)})
	for range 3 {
		require.Equal(t, want, drain())
	}
}

// T4: a lease gives back what was not committed; what was committed is gone; and the nonces go on after it.
func TestT4NoLoss(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	for nonce := range uint64(6) {
		require.NoError(t, p.Add(tx(0, nonce, 2)))
	}
	first := p.Drain(Budget{Count: 2})
	second := p.Drain(Budget{Count: 2})
	require.Equal(t, uint64(2), second.Transactions()[0].Nonce(), "the overlay goes on after the first lease")
	require.NoError(t, second.Return(second.Transactions()[1].Hash()))
	require.ErrorIs(t, second.Return(tx(9, 0, 2).Hash()), ErrNotLeased)
	w.set(addr(0), 2)
	require.NoError(t, first.Commit())
	require.ErrorIs(t, first.Commit(), ErrLeaseClosed)
	require.ErrorIs(t, first.Release(), ErrLeaseClosed)
	require.NoError(t, second.Release())
	require.Equal(t, 4, p.Size())
	require.Equal(t, uint64(2), p.Pending()[0].Nonce())

	// The blocks are thrown away: their transactions come back through the front door.
	w.set(addr(0), 0)
	for _, err := range p.Reset(first2(t)) {
		require.NoError(t, err)
	}
	require.Len(t, p.Pending(), 6)
	require.NoError(t, p.core.check())
}

func first2(t *testing.T) []*types.Transaction {
	t.Helper()
	return []*types.Transaction{tx(0, 0, 2), tx(0, 1, 2)}
}

func TestRejectInALease(t *testing.T) {
	var events []Event
	p := newPool(t, newWorld(), func(c *Config) { c.Observe = func(e Event) { events = append(events, e) } })
	require.NoError(t, p.Add(tx(0, 0, 2)))
	require.NoError(t, p.Add(tx(0, 1, 2)))
	lease := p.Drain(Budget{})
	bad := errors.New("out of luck")
	require.NoError(t, lease.Reject(tx(0, 0, 2).Hash(), bad))
	require.NoError(t, lease.Return(tx(0, 1, 2).Hash()))
	require.NoError(t, lease.Commit())
	require.Equal(t, 1, p.Stats().Queued, "its successor waits for the nonce")
	require.Equal(t, Dropped, events[2].Kind)
	require.ErrorIs(t, events[2].Reason, bad)
}

func TestDrainBudget(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	require.NoError(t, p.Add(sign(0, &types.LegacyTx{GasPrice: big.NewInt(9 * gwei), Gas: 100_000, To: &common.Address{1}})))
	require.NoError(t, p.Add(tx(1, 0, 8)))
	require.NoError(t, p.Add(tx(2, 0, 2)))
	lease := p.Drain(Budget{Gas: 60_000, BaseFee: uint256.NewInt(3 * gwei)})
	require.Equal(t, hashes([]*types.Transaction{tx(1, 0, 8)}), hashes(lease.Transactions()))
	skipped := lease.Skipped()
	require.Equal(t, "gas", skipped[0].Reason)
	require.Equal(t, Skip{tx(2, 0, 2).Hash(), "base fee"}, skipped[1])
	require.Len(t, p.Drain(Budget{Bytes: 1}).Transactions(), 0)
}

// T2: caps hold; only tails go, only for better ones; gapped ones displace nobody.
func TestT2Bounded(t *testing.T) {
	var gone []common.Hash
	p := newPool(t, newWorld(), func(c *Config) {
		c.MaxPending, c.MaxQueued, c.MaxPerSender = 4, 2, 3
		c.Observe = func(e Event) {
			if e.Kind == Dropped {
				gone = append(gone, e.Tx.Hash())
			}
		}
	})
	require.NoError(t, p.Add(tx(0, 0, 2)))  // a poor parent
	require.NoError(t, p.Add(tx(0, 1, 50))) // with a rich child: ranked 2
	require.NoError(t, p.Add(tx(1, 0, 5)))
	require.NoError(t, p.Add(tx(2, 0, 6)))
	require.ErrorIs(t, p.Add(tx(3, 0, 2)), ErrPoolFull, "not strictly better than the worst")
	require.NoError(t, p.Add(tx(3, 0, 3)))
	require.Equal(t, []common.Hash{tx(0, 1, 50).Hash()}, gone, "the tail of the chain that is worth least")
	require.NoError(t, p.Add(tx(3, 1, 4)))
	require.Equal(t, tx(0, 0, 2).Hash(), gone[1])
	require.ErrorIs(t, p.Add(tx(3, 2, 100)), ErrPoolFull, "ranked by its parents, and never in their place")

	require.NoError(t, p.Add(tx(5, 7, 900)))
	require.NoError(t, p.Add(tx(6, 7, 900)))
	require.ErrorIs(t, p.Add(tx(7, 7, 900)), ErrPoolFull)
	require.ErrorIs(t, p.Add(tx(3, 9, 5)), ErrPoolFull)
	require.Equal(t, 4, p.Stats().Pending, "no gapped one took the place of one that can run")
	require.NoError(t, p.core.check())
}

func TestSenderLimitAndFundsOfTheWholeChain(t *testing.T) {
	w := newWorld()
	w.wealth[addr(0)] = uint256.NewInt(2 * txGas * 2 * gwei)
	p := newPool(t, w, func(c *Config) { c.MaxPerSender = 3 })
	require.NoError(t, p.Add(tx(0, 0, 2)))
	require.NoError(t, p.Add(tx(0, 5, 2)))
	require.ErrorIs(t, p.Add(tx(0, 1, 2)), ErrInsufficientFunds, "queued ones count too")
	for nonce := range uint64(3) {
		require.NoError(t, p.Add(tx(1, nonce, 2)))
	}
	require.ErrorIs(t, p.Add(tx(1, 3, 2)), ErrSenderLimit)
	w.wealth[addr(0)] = uint256.NewInt(txGas * 2 * gwei)
	p.Refresh([]common.Address{addr(0)})
	require.NotNil(t, p.Get(tx(0, 0, 2).Hash()))
	require.Nil(t, p.Get(tx(0, 5, 2).Hash()), "the end of the chain goes first")
}

func TestCleanupExpired(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	p := newPool(t, newWorld(), func(c *Config) { c.Now = func() time.Time { return now } })
	require.NoError(t, p.Add(tx(0, 0, 2)))
	lease := p.Drain(Budget{})
	now = now.Add(59 * time.Minute)
	require.NoError(t, p.Add(tx(1, 0, 2)))
	require.Zero(t, p.CleanupExpired(), "the lease is over its time, the transaction is not")
	require.ErrorIs(t, lease.Commit(), ErrLeaseClosed)
	now = now.Add(time.Minute)
	require.Equal(t, 1, p.CleanupExpired())
	require.Equal(t, 1, p.Size())
}

func TestStateErrors(t *testing.T) {
	w := newWorld()
	w.broken = errors.New("disk on fire")
	p := newPool(t, w, nil)
	err := p.Add(tx(0, 0, 2))
	require.ErrorIs(t, err, ErrState)
	require.ErrorIs(t, err, w.broken)
}

func TestConfigValidate(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"ChainID":           func(c *Config) { c.ChainID = nil },
		"BlockGasLimit":     func(c *Config) { c.BlockGasLimit = 20_000 },
		"MaxPending":        func(c *Config) { c.MaxPending = 0 },
		"MaxQueuedBytes":    func(c *Config) { c.MaxQueuedBytes = 1 },
		"PriceBumpPermille": func(c *Config) { c.PriceBumpPermille = 1 << 40 },
		"Lifetime":          func(c *Config) { c.Lifetime = 0 },
	} {
		cfg := DefaultConfig(chainID)
		change(&cfg)
		err := cfg.Validate()
		require.ErrorIs(t, err, ErrInvalidConfig)
		require.ErrorContains(t, err, name)
	}
	_, err := New(DefaultConfig(chainID), nil)
	require.ErrorIs(t, err, ErrInvalidConfig)
}

// Sixty-four goroutines at once, for the race detector; the invariants hold afterwards.
func TestConcurrent(t *testing.T) {
	w := newWorld()
	var p *Pool
	p = newPool(t, w, func(c *Config) { c.Observe = func(e Event) { p.Get(e.Tx.Hash()) } })
	var group sync.WaitGroup
	for i := range 64 {
		group.Go(func() {
			for nonce := range uint64(4) {
				_ = p.Add(tx(i, nonce, int64(2+i%5)))
			}
			lease := p.Drain(Budget{Count: 3})
			if i%2 == 0 {
				_ = lease.Release()
			} else {
				for _, tx := range lease.Transactions() {
					from, _ := types.Sender(signer, tx)
					w.set(from, max(tx.Nonce()+1, tx.Nonce()))
				}
				_ = lease.Commit()
			}
			p.Stats()
			p.PendingLimit(5)
			if i%16 == 0 {
				p.Reset(nil)
				p.CleanupExpired()
			}
		})
	}
	group.Wait()
	require.NoError(t, p.core.check())
}
