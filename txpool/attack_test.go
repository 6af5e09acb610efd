package txpool_test

import (
	"errors"
	"fmt"
	"math/big"
	"sync"
	"testing"

	"crypto/ecdsa"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/txpool"
)

// The attacks are published attacks on mempools: DETER (CCS '21), MemPurge
// (USENIX Security '24), MPFUZZ and saferAd. In all of them, an attacker with
// funded accounts removes the victims' transactions from the pool, or keeps new
// ones out, for much less than they pay. The oracle: the lost fees of the
// victims must not exceed 1/λ of the fees that the attacker's own transactions
// pay, counting those that can run at the end.
const (
	gwei   = 1_000_000_000
	gas    = 21_000
	lambda = 1 // a replacement pays at least this share
)

var (
	chainID = big.NewInt(4359)
	signer  = types.NewPragueSigner(chainID)
	keys    sync.Map
)

func key(i int) *ecdsa.PrivateKey {
	if k, there := keys.Load(i); there {
		return k.(*ecdsa.PrivateKey)
	}
	k, err := crypto.ToECDSA(crypto.Keccak256(fmt.Append(nil, "attack", i)))
	if err != nil {
		panic(err)
	}
	keys.Store(i, k)
	return k
}

func address(i int) common.Address { return crypto.PubkeyToAddress(key(i).PublicKey) }

// arena is a small pool full of honest transactions. Senders from 0 on are victims, from 1000 on
// attackers.
type arena struct {
	t     require.TestingT
	pool  *txpool.Pool
	state map[common.Address]txpool.Account
	mu    sync.Mutex
	// victims are the victims' transactions by hash, with their price in gwei
	// per gas.
	victims map[common.Hash]int64
}

const attacker = 1000

func newArena(t require.TestingT, slots int, change func(*txpool.Config)) *arena {
	a := &arena{t: t, state: make(map[common.Address]txpool.Account), victims: make(map[common.Hash]int64)}
	cfg := txpool.DefaultConfig(chainID)
	cfg.MaxPending, cfg.MaxParked, cfg.MaxQueued = slots, slots, slots
	if change != nil {
		change(&cfg)
	}
	pool, err := txpool.New(cfg, txpool.StateFunc(a.account))
	require.NoError(t, err)
	a.pool = pool
	for i := range slots {
		tip := int64(5 + i%3)
		tx := a.transfer(i, 0, tip, 0)
		require.NoError(t, pool.Add(tx))
		a.victims[tx.Hash()] = tip
	}
	return a
}

func (a *arena) account(who common.Address) (txpool.Account, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if account, there := a.state[who]; there {
		return account, nil
	}
	return txpool.Account{Balance: *uint256.NewInt(1e18)}, nil
}

func (a *arena) fund(i int, wei uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state[address(i)] = txpool.Account{Balance: *uint256.NewInt(wei)}
}

func (a *arena) transfer(i int, nonce uint64, tip int64, value uint64) *types.Transaction {
	return types.MustSignNewTx(key(i), signer, &types.LegacyTx{Nonce: nonce, GasPrice: big.NewInt(tip * gwei), Gas: gas, To: &common.Address{1}, Value: new(big.Int).SetUint64(value)})
}

// judge applies the oracle.
func (a *arena) judge() {
	lost, paid := int64(0), int64(0)
	for hash, tip := range a.victims {
		if a.pool.Get(hash) == nil {
			lost += tip * gas
		}
	}
	for _, tx := range a.pool.Drain(txpool.Budget{}).Transactions() { // the next block
		if _, honest := a.victims[tx.Hash()]; !honest {
			paid += new(big.Int).Div(tx.GasTipCap(), big.NewInt(gwei)).Int64() * int64(tx.Gas())
		}
	}
	require.GreaterOrEqual(a.t, paid, lost*lambda, "the attacker pays %d for fees of %d that are gone", paid, lost)
}

// newcomer checks that an honest transaction that pays a little more than the
// worst one is still admitted.
func (a *arena) newcomer() {
	watermark := a.pool.Stats().Watermark
	require.LessOrEqual(a.t, watermark, uint64(8*gwei), "the door is closed to fair prices")
	tx := types.MustSignNewTx(key(500), signer, &types.LegacyTx{GasPrice: new(big.Int).SetUint64(max(watermark, 8*gwei)), Gas: gas, To: &common.Address{1}})
	require.NoError(a.t, a.pool.Add(tx))
}

func TestAttackFutureNonceFlood(t *testing.T) {
	for name, accounts := range map[string]int{"one account": 1, "thousands of accounts": 3000} {
		t.Run(name, func(t *testing.T) {
			a := newArena(t, 16, nil)
			for i := range accounts {
				for nonce := uint64(1); nonce < 20 && (accounts == 1 || nonce < 2); nonce++ {
					_ = a.pool.Add(a.transfer(attacker+i, nonce, 1000, 0))
				}
			}
			a.newcomer()
			a.judge()
		})
	}
}

func TestAttackOverdraftChains(t *testing.T) {
	for name, send := range map[string]func(*txpool.Pool, []*types.Transaction){
		"one by one": func(p *txpool.Pool, txs []*types.Transaction) {
			for _, tx := range txs {
				_ = p.Add(tx)
			}
		},
		"in a batch": func(p *txpool.Pool, txs []*types.Transaction) { p.AddAll(txs) },
	} {
		t.Run(name, func(t *testing.T) {
			a := newArena(t, 16, nil)
			const balance = 1000 * gwei * gas
			var txs []*types.Transaction
			for i := range 3 {
				a.fund(attacker+i, balance)
				txs = append(txs, a.transfer(attacker+i, 0, 20, balance-20*gwei*gas)) // takes all
				for nonce := uint64(1); nonce < 8; nonce++ {
					txs = append(txs, a.transfer(attacker+i, nonce, 100, 0)) // not funded
				}
			}
			send(a.pool, txs)
			require.LessOrEqual(t, a.pool.Stats().Pending, 16)
			for i := range 3 {
				pending, queued := a.pool.ContentFrom(address(attacker + i))
				require.Len(t, append(pending, queued...), 1)
			}
			a.judge()
		})
	}
}

// The attacker's rich children displace victims; then their parent goes away, and they are worth
// nothing.
func TestAttackParents(t *testing.T) {
	t.Run("eviction", func(t *testing.T) {
		a := newArena(t, 8, nil)
		require.NoError(t, a.pool.Add(a.transfer(attacker, 0, 8, 0)))
		for nonce := uint64(1); nonce < 6; nonce++ {
			_ = a.pool.Add(a.transfer(attacker, nonce, 1000, 0))
		}
		for i := range 8 { // pay more than the parent
			_ = a.pool.Add(a.transfer(attacker+100+i, 0, 9, 0))
		}
		require.Zero(t, a.pool.Stats().Queued)
		a.judge()
	})
	t.Run("replacement", func(t *testing.T) {
		a := newArena(t, 8, nil)
		const balance = 1000 * gwei * gas
		a.fund(attacker, balance)
		for nonce := range uint64(5) {
			require.NoError(t, a.pool.Add(a.transfer(attacker, nonce, 20, 0)))
		}
		// The new parent would take everything, and its children would be overdrafts.
		err := a.pool.Add(a.transfer(attacker, 0, 30, balance-30*gwei*gas))
		require.ErrorIs(t, err, txpool.ErrInsufficientFunds)
		a.judge()
	})
}

// Residents that cannot run must not keep out those that can.
func TestAttackLocking(t *testing.T) {
	a := newArena(t, 8, func(c *txpool.Config) { c.FloorWindow = 1 })
	for i := range 200 {
		_ = a.pool.Add(a.transfer(attacker+i, 3, 10_000, 0)) // behind gaps
		_ = a.pool.Add(types.MustSignNewTx(key(attacker+300+i), signer, capped()))
	}
	a.newcomer()
	a.pool.Reset(txpool.Head{BaseFee: big.NewInt(gwei), Touched: []common.Address{}})
	require.Equal(t, 8, a.pool.Stats().Pending)
	a.judge()
}

// capped pays at most 1 gwei.
func capped() types.TxData {
	return &types.DynamicFeeTx{ChainID: chainID, GasTipCap: big.NewInt(gwei), GasFeeCap: big.NewInt(gwei), Gas: gas, To: &common.Address{1}}
}

// A cheap parent must not be carried, or protected, by dear children.
func TestAttackLowFeeAnchor(t *testing.T) {
	a := newArena(t, 8, nil)
	require.ErrorIs(t, a.pool.Add(a.transfer(attacker, 0, 4, 0)), txpool.ErrUnderpriced)
	require.NoError(t, a.pool.Add(a.transfer(attacker, 1, 1000, 0)), "the child waits behind the gap")
	require.ErrorIs(t, a.pool.Add(a.transfer(attacker, 0, 4, 0)), txpool.ErrUnderpriced)
	require.Equal(t, 8, a.pool.Stats().Pending)
	a.newcomer()
	a.judge()
}

// Replacements cost, and are counted.
func TestAttackReplacementFlood(t *testing.T) {
	a := newArena(t, 8, nil)
	accepted := 0
	for tip := int64(8); tip < 1_000_000; tip += max(tip/8+1, 1) {
		if err := a.pool.Add(a.transfer(attacker, 0, tip, 0)); err == nil {
			accepted++
		} else {
			require.ErrorIs(t, err, txpool.ErrReplaceTooOften)
		}
	}
	require.LessOrEqual(t, accepted, 11)
	a.judge()
}

// authorization returns account i's signed authorization for a nonce.
func authorization(i int, nonce uint64) types.SetCodeAuthorization {
	auth, err := types.SignSetCode(key(i), types.SetCodeAuthorization{ChainID: *uint256.MustFromBig(chainID), Address: common.Address{2}, Nonce: nonce})
	if err != nil {
		panic(err)
	}
	return auth
}

func setCode(i int, nonce uint64, tip uint64, auths ...types.SetCodeAuthorization) *types.Transaction {
	return types.MustSignNewTx(key(i), signer, &types.SetCodeTx{
		ChainID: uint256.MustFromBig(chainID), Nonce: nonce, GasTipCap: uint256.NewInt(tip * gwei), GasFeeCap: uint256.NewInt(tip * gwei),
		Gas: gas + 25_000*uint64(len(auths)), To: common.Address{1}, AuthList: auths,
	})
}

// Many transactions of accounts that one transaction can empty (EIP-7702).
func TestAttackSweep(t *testing.T) {
	t.Run("delegated before", func(t *testing.T) {
		a := newArena(t, 16, nil)
		for i := range 4 {
			a.state[address(attacker+i)] = txpool.Account{Balance: *uint256.NewInt(1e18), Delegated: true}
			for nonce := range uint64(8) {
				_ = a.pool.Add(a.transfer(attacker+i, nonce, 20, 0))
			}
			pending, queued := a.pool.ContentFrom(address(attacker + i))
			require.Len(t, append(pending, queued...), 1)
		}
		a.judge()
	})
	t.Run("delegated by a resident", func(t *testing.T) {
		a := newArena(t, 16, nil)
		for nonce := range uint64(8) {
			_ = a.pool.Add(a.transfer(attacker, nonce, 20, 0))
		}
		require.ErrorIs(t, a.pool.Add(setCode(attacker+1, 0, 20, authorization(attacker, 0))), txpool.ErrAuthorityReserved)
		require.NoError(t, a.pool.Add(setCode(attacker+1, 0, 20, authorization(attacker+2, 0))))
		require.NoError(t, a.pool.Add(a.transfer(attacker+2, 0, 20, 0)))
		require.ErrorIs(t, a.pool.Add(a.transfer(attacker+2, 1, 20, 0)), txpool.ErrDelegatedLimit)
		a.judge()
	})
	t.Run("by one behind a gap", func(t *testing.T) {
		a := newArena(t, 16, nil)
		require.NoError(t, a.pool.Add(setCode(attacker+1, 1, 20, authorization(attacker, 0))))
		for nonce := range uint64(8) {
			require.NoError(t, a.pool.Add(a.transfer(attacker, nonce, 20, 0)), "no reason to throttle yet")
		}
		require.NoError(t, a.pool.Add(a.transfer(attacker+1, 0, 20, 0)))
		require.Equal(t, txpool.StatusUnknown, a.pool.Status(setCode(attacker+1, 1, 20, authorization(attacker, 0)).Hash()))
		a.judge()
	})
}

// A stranger must not be able to restrict an account by old, foreign or idle
// authorizations.
func TestAttackDelegationGriefing(t *testing.T) {
	a := newArena(t, 16, nil)
	const victim = 600
	a.state[address(victim)] = txpool.Account{Nonce: 5, Balance: *uint256.NewInt(1e18)}
	for i, tx := range []*types.Transaction{
		setCode(attacker, 0, 20, authorization(victim, 4)),    // replayed
		setCode(attacker+1, 0, 20, authorization(victim, 99)), // for later, much later
		setCode(attacker+2, 7, 20, authorization(victim, 5)),  // cannot run
		setCode(attacker+3, 0, 20, types.SetCodeAuthorization{Nonce: 5}),
	} {
		require.NoError(t, a.pool.Add(tx), "carrier %d", i)
	}
	for nonce := uint64(5); nonce < 9; nonce++ {
		require.NoError(t, a.pool.Add(a.transfer(victim, nonce, 30, 0)))
	}
}

// Bytes that the pool would hold without counting them.
func TestAttackPadding(t *testing.T) {
	const room = 20_000
	a := newArena(t, 16, func(c *txpool.Config) { c.MaxTxSize, c.MaxBytes = 8000, room })
	for i := range 50 {
		list := make(types.AccessList, 200)
		_ = a.pool.Add(types.MustSignNewTx(key(attacker+i), signer, &types.AccessListTx{
			ChainID: chainID, GasPrice: big.NewInt(100 * gwei), Gas: 600_000, To: &common.Address{1}, AccessList: list,
		}))
		_ = a.pool.Add(setCode(attacker+100+i, 0, 100, make([]types.SetCodeAuthorization, 16)...))
	}
	s := a.pool.Stats()
	require.LessOrEqual(t, s.PendingBytes, uint64(room))
	held := uint64(0)
	for _, tx := range a.pool.Candidates() {
		held += tx.Size() + 40*uint64(len(tx.AccessList())) + 100*uint64(len(tx.SetCodeAuthorizations()))
	}
	require.LessOrEqual(t, held, uint64(room))
	a.judge()
}

// Search: no sequence of an attacker's moves on a pool of 4 to 16 slots gets past the oracle.
// Leases and resets are the host's.
func TestAttackSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newArena(t, rapid.IntRange(4, 16).Draw(t, "slots"), nil)
		const poor = 400 * gwei * gas
		for i := range 4 {
			a.fund(attacker+i, poor)
		}
		for range rapid.IntRange(1, 40).Draw(t, "moves") {
			i := attacker + rapid.IntRange(0, 3).Draw(t, "who")
			tip := rapid.Int64Range(1, 60).Draw(t, "tip")
			next, _ := a.pool.NextNonce(address(i))
			var err error
			switch move := rapid.SampledFrom([]string{"normal", "future", "parent", "child", "overdraft", "replacement", "set code", "lease", "reset"}).Draw(t, "move"); move {
			case "normal":
				err = a.pool.Add(a.transfer(i, next, tip, 0))
			case "future":
				err = a.pool.Add(a.transfer(i, next+rapid.Uint64Range(1, 3).Draw(t, "gap"), 1000, 0))
			case "parent":
				err = a.pool.Add(a.transfer(i, 0, tip, 0))
			case "child":
				err = a.pool.Add(a.transfer(i, next, 100, 0))
			case "overdraft":
				err = a.pool.Add(a.transfer(i, next, tip, poor-uint64(tip)*gwei*gas))
			case "replacement":
				err = a.pool.Add(a.transfer(i, rapid.Uint64Range(0, next).Draw(t, "nonce"), tip*2, rapid.SampledFrom([]uint64{0, poor / 2}).Draw(t, "value")))
			case "set code":
				err = a.pool.Add(setCode(i, next, uint64(tip), authorization(attacker+rapid.IntRange(0, 3).Draw(t, "authority"), rapid.Uint64Range(0, 2).Draw(t, "nonce"))))
			case "lease":
				err = a.pool.Drain(txpool.Budget{Count: 3}).Release()
			case "reset":
				a.pool.Reset(txpool.Head{Included: []txpool.Block{{}}})
			}
			if errors.Is(err, txpool.ErrState) {
				t.Fatal(err)
			}
			if err := a.pool.Check(); err != nil {
				t.Fatal(err)
			}
		}
		a.judge()
	})
}
