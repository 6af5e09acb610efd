package txpool

import (
	"crypto/ecdsa"
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

// world is the pool's host: a chain of accounts, and a clock.
type world struct {
	mu       sync.Mutex
	accounts map[common.Address]Account
	broken   map[common.Address]error
	reads    int
	now      time.Time
}

func newWorld() *world {
	return &world{accounts: make(map[common.Address]Account), broken: make(map[common.Address]error), now: time.Unix(1_800_000_000, 0)}
}

// Account returns an account; one that was not set has an ether.
func (w *world) Account(a common.Address) (Account, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	return w.get(a), w.broken[a]
}

func (w *world) get(a common.Address) Account {
	if account, there := w.accounts[a]; there {
		return account
	}
	return Account{Balance: *uint256.NewInt(1e18)}
}

// set changes an account.
func (w *world) set(i int, change func(*Account)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	account := w.get(addr(i))
	change(&account)
	w.accounts[addr(i)] = account
}

func (w *world) nonce(i int, nonce uint64) { w.set(i, func(a *Account) { a.Nonce = nonce }) }

func (w *world) balance(i int, wei uint64) {
	w.set(i, func(a *Account) { a.Balance = *uint256.NewInt(wei) })
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

var (
	chainID = big.NewInt(4359)
	signer  = types.NewPragueSigner(chainID)
	keys    = makeKeys(64)
)

func makeKeys(n int) []*ecdsa.PrivateKey {
	keys := make([]*ecdsa.PrivateKey, n)
	for i := range keys {
		k, err := crypto.ToECDSA(crypto.Keccak256([]byte{byte(i), byte(i >> 8)}))
		if err != nil {
			panic(err)
		}
		keys[i] = k
	}
	return keys
}

func addr(i int) common.Address { return crypto.PubkeyToAddress(keys[i].PublicKey) }

func sign(i int, data types.TxData) *types.Transaction {
	return types.MustSignNewTx(keys[i], signer, data)
}

// tx makes a transfer of sender i with a tip in gwei.
func tx(i int, nonce uint64, tip int64) *types.Transaction { return capped(i, nonce, tip, tip) }

// capped makes a transfer with a tip and a fee cap in gwei.
func capped(i int, nonce uint64, tip, feeCap int64) *types.Transaction {
	return sign(i, &types.DynamicFeeTx{ChainID: chainID, Nonce: nonce, GasTipCap: big.NewInt(tip * gwei), GasFeeCap: big.NewInt(feeCap * gwei), Gas: txGas, To: &common.Address{1}})
}

// setCode makes a transaction of sender i by which others delegate themselves (EIP-7702).
func setCode(i int, nonce uint64, tip uint64, auths ...types.SetCodeAuthorization) *types.Transaction {
	return sign(i, &types.SetCodeTx{
		ChainID: uint256.MustFromBig(chainID), Nonce: nonce, GasTipCap: uint256.NewInt(tip * gwei), GasFeeCap: uint256.NewInt(tip * gwei),
		Gas: txGas + authorizationGas*uint64(len(auths)), To: common.Address{1}, AuthList: auths,
	})
}

// delegate is the authorization by i at its nonce.
func delegate(i int, nonce uint64) types.SetCodeAuthorization {
	auth, err := types.SignSetCode(keys[i], types.SetCodeAuthorization{ChainID: *uint256.MustFromBig(chainID), Address: common.Address{2}, Nonce: nonce})
	if err != nil {
		panic(err)
	}
	return auth
}

// newPool returns a pool without floor movement or surge, unless change says otherwise: most tests
// are about something else.
func newPool(t testing.TB, w *world, change func(*Config)) *Pool {
	t.Helper()
	cfg := DefaultConfig(chainID)
	cfg.Now = w.clock
	cfg.FloorWindow, cfg.SurgeSlope = 0, 0
	if change != nil {
		change(&cfg)
	}
	p, err := New(cfg, w)
	require.NoError(t, err)
	return p
}

// add adds transactions that must be admitted.
func add(t testing.TB, p *Pool, txs ...*types.Transaction) {
	t.Helper()
	for _, tx := range txs {
		require.NoError(t, p.Add(tx))
	}
	require.NoError(t, p.Check())
}

// refuse adds a transaction that must be refused, and must change nothing.
func refuse(t testing.TB, p *Pool, tx *types.Transaction, want error, text ...string) {
	t.Helper()
	before := p.Stats()
	err := p.Add(tx)
	require.ErrorIs(t, err, want)
	for _, s := range text {
		require.ErrorContains(t, err, s)
	}
	require.Equal(t, before, p.Stats())
	require.NoError(t, p.Check())
}

func hashes(txs []*types.Transaction) []common.Hash {
	out := make([]common.Hash, len(txs))
	for i, tx := range txs {
		out[i] = tx.Hash()
	}
	return out
}

// signedWithTooLittleGas is spam.
func signedWithTooLittleGas(nonce uint64) types.TxData {
	return &types.LegacyTx{Nonce: nonce, GasPrice: big.NewInt(2 * gwei), Gas: txGas - 1, To: &common.Address{1}}
}

func weiOf(tip int64) *big.Int { return big.NewInt(tip * gwei) }

// padded makes a transfer of sender i with data of zeros.
func padded(i int, nonce uint64, zeros int) *types.Transaction {
	return sign(i, &types.LegacyTx{Nonce: nonce, GasPrice: weiOf(2), Gas: txGas + 10*uint64(zeros), To: &common.Address{1}, Data: make([]byte, zeros)})
}
