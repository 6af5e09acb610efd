package txpool

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// world is a pool together with everything around it. Tests of one rule use it
// directly. A [siege] adds an attacker, and a [model] adds a random host and a
// naive pool. A world has
//
//   - a chain: the accounts that the pool reads. An account that the test has not
//     set has an ether. include and revert move the chain by blocks, and broken
//     makes the reading of an account fail.
//   - a clock, which advance moves.
//   - a log, the tape. keep appends the changes of the pool. restart ends the process
//     without a shutdown and begins another one from the tape.
//   - the pool itself, which is embedded, so that its methods are those of the
//     world.
//
// The methods that change the pool check all its invariants afterwards.
type world struct {
	*Pool
	t    tester
	tape *tape

	lock     sync.Mutex
	now      time.Time
	accounts ledger
	broken   map[common.Address]error // by the account that cannot be read
	reads    int                      // calls of Account
	onRead   func()                   // called by Account, if not nil
}

// tester is a *testing.T, B or F, or a *rapid.T.
type tester interface {
	require.TestingT
	Helper()
}

// newWorld returns a world whose pool has the default configuration, except that
// its floor does not move and there is no surge, because most tests are about
// something else. Changes of the configuration follow one another.
func newWorld(t tester, changes ...func(*Config)) *world {
	t.Helper()
	w := &world{
		t: t, tape: new(tape), now: time.Unix(1_800_000_000, 0),
		accounts: make(ledger), broken: make(map[common.Address]error),
	}
	cfg := DefaultConfig(chainID)
	cfg.FloorWindow, cfg.SurgeSlope = 0, 0
	cfg.Now, cfg.KeepChanges = w.clock, true
	w.open(cfg, changes)
	return w
}

// open makes a new pool.
func (w *world) open(cfg Config, changes []func(*Config)) {
	w.t.Helper()
	for _, change := range changes {
		change(&cfg)
	}
	p, err := New(cfg, w)
	require.NoError(w.t, err)
	w.Pool = p
}

// Account returns an account of the chain.
func (w *world) Account(a common.Address) (Account, error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.reads++
	if w.onRead != nil {
		w.onRead()
	}
	return w.accounts.get(a), w.broken[a]
}

// set changes the account of sender i. The pool does not know it.
func (w *world) set(i int, change func(*Account)) {
	w.lock.Lock()
	defer w.lock.Unlock()
	account := w.accounts.get(addr(i))
	change(&account)
	w.accounts[addr(i)] = account
}

func (w *world) nonce(i int, nonce uint64) { w.set(i, func(a *Account) { a.Nonce = nonce }) }

func (w *world) balance(i int, wei uint64) {
	w.set(i, func(a *Account) { a.Balance = *uint256.NewInt(wei) })
}

func (w *world) clock() time.Time {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.now
}

func (w *world) advance(d time.Duration) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.now = w.now.Add(d)
}

// run runs transactions on the chain, undo takes the latest ones back. A nonce never
// falls by run and never rises by undo.
func (w *world) run(txs ...*types.Transaction) {
	for _, tx := range txs {
		w.settle(tx, func(a *Account, cost *uint256.Int) {
			a.Nonce = max(a.Nonce, tx.Nonce()+1)
			if !a.Balance.Lt(cost) {
				a.Balance.Sub(&a.Balance, cost)
			}
		})
	}
}

func (w *world) undo(txs ...*types.Transaction) {
	for _, tx := range txs {
		w.settle(tx, func(a *Account, cost *uint256.Int) {
			a.Nonce = min(a.Nonce, tx.Nonce())
			a.Balance.Add(&a.Balance, cost)
		})
	}
}

// settle changes the account of a transaction's sender, given its cost.
func (w *world) settle(tx *types.Transaction, change func(*Account, *uint256.Int)) {
	w.lock.Lock()
	defer w.lock.Unlock()
	from, err := w.cfg.sender(w.signer, tx)
	require.NoError(w.t, err)
	account := w.accounts.get(from)
	change(&account, uint256.MustFromBig(tx.Cost()))
	w.accounts[from] = account
}

// reset calls Reset and checks the invariants.
func (w *world) reset(head Head) []Displaced {
	w.t.Helper()
	displaced := w.Reset(head)
	w.check()
	return displaced
}

// tell tells the pool of blocks. include runs them before.
func (w *world) tell(blocks ...Block) []Displaced {
	w.t.Helper()
	return w.reset(Head{Included: blocks})
}

func (w *world) include(blocks ...Block) []Displaced {
	w.t.Helper()
	for _, b := range blocks {
		w.run(b.Transactions...)
	}
	return w.tell(blocks...)
}

// revert takes blocks back and tells the pool.
func (w *world) revert(blocks ...Block) []Displaced {
	w.t.Helper()
	for _, b := range blocks {
		w.undo(b.Transactions...)
	}
	return w.reset(Head{Reverted: blocks})
}

// baseFee sets the base fee, in gwei. No transaction may leave because of it.
func (w *world) baseFee(price int64) {
	w.t.Helper()
	require.Empty(w.t, w.reset(Head{BaseFee: gweis(price)}))
}

// restart ends the process and begins another one, perhaps with another
// configuration, from the tape.
func (w *world) restart(changes ...func(*Config)) Restored {
	w.t.Helper()
	w.keep()
	w.open(w.cfg, changes)
	restored := w.restore()
	w.check()
	return restored
}

// restore restores the pool from the tape.
func (w *world) restore() Restored {
	for _, record := range w.tape.records {
		w.ReplayChange(record)
	}
	return w.Restore()
}

// offered returns the transactions that a session could take now, best first.
func offered(p interface{ Snapshot() *Snapshot }) []*types.Transaction {
	return slices.Collect(p.Snapshot().All())
}

// keep appends the changes of the pool to the tape.
func (w *world) keep() { w.tape.append(w.TakeChanges()) }

// shorten replaces the records of the tape by those of the content.
func (w *world) shorten() {
	w.keep()
	w.tape.records = w.Records()
}

// observes makes the pool read the account of sender i again, as an addition does after a read that
// has failed.
func (w *world) observes(i int) {
	w.t.Helper()
	w.changeCore(func(c *core) { c.refreshAccount(c.accounts[addr(i)], w.accounts.get(addr(i))) })
	w.check()
}

// check checks all invariants of the pool.
func (w *world) check() {
	w.t.Helper()
	require.NoError(w.t, w.Check())
}

// add adds transactions that must be admitted.
func (w *world) add(txs ...*types.Transaction) {
	w.t.Helper()
	for _, tx := range txs {
		require.NoError(w.t, w.Add(tx))
	}
	w.check()
}

// addPrivate is add for private transactions.
func (w *world) addPrivate(txs ...*types.Transaction) {
	w.t.Helper()
	for _, tx := range txs {
		require.NoError(w.t, w.AddPrivate(tx))
	}
	w.check()
}

// refuse adds a transaction that must be refused, and must change nothing.
func (w *world) refuse(tx *types.Transaction, want error, text ...string) {
	w.t.Helper()
	before := w.Stats()
	err := w.Add(tx)
	require.ErrorIs(w.t, err, want)
	for _, s := range text {
		require.ErrorContains(w.t, err, s)
	}
	require.Equal(w.t, before, w.Stats())
	w.check()
}

// cleanup calls CleanupExpired and returns how many transactions have left.
func (w *world) cleanup() int {
	before := w.Size() + len(w.Held())
	w.CleanupExpired()
	return before - w.Size() - len(w.Held())
}

// remove removes transactions.
func (w *world) remove(txs ...*types.Transaction) {
	w.t.Helper()
	for _, tx := range txs {
		require.NoError(w.t, w.Remove(tx.Hash()))
	}
	w.check()
}

// build begins a session. drain begins one that takes all that fits by its limits.
func (w *world) build(budget Budget) *Session { return w.Build(context.Background(), budget) }

func (w *world) drain(budget Budget) *Session { return drain(w.Pool, budget) }

func drain(p *Pool, budget Budget) *Session {
	s := p.Build(context.Background(), budget)
	for s.Next() != nil {
		continue
	}
	return s
}

// fails makes a block of transactions fail: they come back. The chain no longer shows them.
func (w *world) fails(txs ...*types.Transaction) []Displaced {
	w.t.Helper()
	for _, tx := range txs {
		w.settle(tx, func(a *Account, _ *uint256.Int) { a.Nonce = min(a.Nonce, tx.Nonce()) })
	}
	return w.reset(Head{Reverted: []Block{blockOf(txs...)}})
}

// commit makes a block. The chain shows its nonces, and the balances are as before.
func (w *world) commit(budget Budget) Block {
	w.t.Helper()
	s := w.drain(budget)
	block := blockOf(s.Transactions()...)
	for _, tx := range block.Transactions {
		w.settle(tx, func(a *Account, _ *uint256.Int) { a.Nonce = max(a.Nonce, tx.Nonce()+1) })
	}
	require.Empty(w.t, w.tell(block))
	s.Cancel() // if the block is empty
	return block
}

// returned adds transactions, puts all that can run into a block, and makes it fail: they
// came back and are exempt from the caps.
func (w *world) returned(txs ...*types.Transaction) {
	w.t.Helper()
	w.add(txs...)
	require.Empty(w.t, w.fails(w.commit(Budget{}).Transactions...))
	require.Equal(w.t, len(txs), w.Stats().Exempt)
}

// setAside adds transactions of sender 0 and fails their block while the account
// cannot be read, so that the pool holds all of them aside.
func (w *world) setAside(txs ...*types.Transaction) {
	w.t.Helper()
	w.add(txs...)
	block := w.commit(Budget{})
	require.Len(w.t, block.Transactions, len(txs))
	w.include(block)
	w.breaks(0)
	require.Len(w.t, w.revert(block), len(txs))
	require.Len(w.t, w.Held(), len(txs))
}

// breaks makes the reading of the accounts of senders fail, and repairs ends that
// for all.
func (w *world) breaks(senders ...int) {
	for _, i := range senders {
		w.broken[addr(i)] = errNoDisk
	}
}

func (w *world) repairs() { clear(w.broken) }

// statuses returns the statuses of the nonces of sender i, from 0 on, as one letter
// each: p pending, q queued, k parked, l locked, a dash for none.
func (w *world) statuses(i int, nonces int) string {
	w.Pool.mu.Lock()
	defer w.Pool.mu.Unlock()
	s := bytes.Repeat([]byte{'-'}, nonces)
	if a := w.core.accounts[addr(i)]; a != nil {
		for _, e := range a.txs {
			switch {
			case e.nonce >= uint64(nonces):
			case e.locked:
				s[e.nonce] = 'l'
			default:
				s[e.nonce] = "qkp"[e.status]
			}
		}
	}
	return string(s)
}

// stands checks the statuses of the nonces of sender i.
func (w *world) stands(i int, want string) {
	w.t.Helper()
	require.Equal(w.t, want, w.statuses(i, len(want)))
	w.check()
}

// firsts checks the statuses of nonce 0 of each sender, from 0 on.
func (w *world) firsts(want string) {
	w.t.Helper()
	have := ""
	for i := range want {
		have += w.statuses(i, 1)
	}
	require.Equal(w.t, want, have)
	w.check()
}

// has checks the status of transactions.
func (w *world) has(want Status, txs ...*types.Transaction) {
	w.t.Helper()
	for _, tx := range txs {
		require.Equal(w.t, want, w.Status(tx.Hash()), "nonce %d", tx.Nonce())
	}
}

// departed returns the departure of a transaction, which must have one.
func (w *world) departed(tx *types.Transaction) Departure {
	w.t.Helper()
	d, known := w.Departure(tx.Hash())
	require.True(w.t, known)
	return d
}

// same checks that two lists have the same transactions in the same order.
func same(t tester, want, have []*types.Transaction) {
	t.Helper()
	require.Equal(t, hashes(want), hashes(have))
}

// offers checks the pending transactions, in their order.
func (w *world) offers(want ...*types.Transaction) {
	w.t.Helper()
	same(w.t, want, offered(w))
}

// takes checks which transactions a session takes next.
func (w *world) takes(s *Session, want ...*types.Transaction) {
	w.t.Helper()
	for i, tx := range want {
		have := s.Next()
		require.NotNil(w.t, have, "after %d transactions", i)
		require.Equal(w.t, tx.Hash(), have.Hash(), "transaction %d is nonce %d", i, have.Nonce())
	}
	w.check()
}

// ends checks that a session takes these transactions and then none.
func (w *world) ends(s *Session, want ...*types.Transaction) {
	w.t.Helper()
	w.takes(s, want...)
	require.Nil(w.t, s.Next())
	w.check()
}

// ledger has the accounts of a chain. One that is not there has an ether.
type ledger map[common.Address]Account

func (l ledger) get(who common.Address) Account {
	if account, known := l[who]; known {
		return account
	}
	return Account{Balance: *uint256.NewInt(1e18)}
}

// tape is a log in memory.
type tape struct{ records [][]byte }

var (
	errNoDisk = errors.New("no disk")
	errTest   = errors.New("the test says so")
)

func (m *tape) append(records [][]byte) { m.records = append(m.records, records...) }

// Changes of the configuration.

// tiny sets the caps on the numbers of transactions.
func tiny(pending, others int) func(*Config) {
	return func(c *Config) { c.MaxPending, c.MaxQueued, c.MaxParked = pending, others, others }
}

// narrow sets the caps on bytes.
func narrow(tx, all uint64) func(*Config) {
	return func(c *Config) { c.MaxTxSize, c.MaxBytes = tx, all }
}

// perSender sets the cap of a sender.
func perSender(most int) func(*Config) { return func(c *Config) { c.MaxPerSender = most } }

// forgetful is a pool that keeps no changes.
func forgetful(c *Config) { c.KeepChanges = false }

// by orders the senders by a score.
func by(score func(Candidate) int64) func(*Config) { return func(c *Config) { c.Score = score } }

// observed passes each event to a function.
func observed(observe func(Event)) func(*Config) { return func(c *Config) { c.Observe = observe } }

// unsigned lets the recipient of a transaction be its sender, so that many can be
// made in a short time. plain makes them.
func unsigned(c *Config) {
	c.Sender = func(tx *types.Transaction) (common.Address, error) { return *tx.To(), nil }
	c.MaxPending, c.MaxQueued, c.MaxParked, c.MaxBytes = 1_000_000, 1_000_000, 1_000_000, 1<<32
}

// unless is a Precheck that refuses a transaction while a condition holds.
func unless(refused func(*types.Transaction) bool) func(*Config) {
	return func(c *Config) {
		c.Precheck = func(tx *types.Transaction) error {
			if refused(tx) {
				return errTest
			}
			return nil
		}
	}
}

// Transactions. Prices are in gwei.

var (
	chainID = big.NewInt(4359)
	signer  = types.NewPragueSigner(chainID)
	keys    sync.Map
	there   = &common.Address{1} // the recipient
)

// key returns the key of sender i.
func key(i int) *ecdsa.PrivateKey {
	if k, known := keys.Load(i); known {
		return k.(*ecdsa.PrivateKey)
	}
	k, err := crypto.ToECDSA(crypto.Keccak256(fmt.Append(nil, "sender", i)))
	if err != nil {
		panic(err)
	}
	keys.Store(i, k)
	return k
}

func addr(i int) common.Address { return crypto.PubkeyToAddress(key(i).PublicKey) }

func sign(i int, data types.TxData) *types.Transaction {
	return types.MustSignNewTx(key(i), signer, data)
}

// senderOf returns the sender of a signed transaction.
func senderOf(tx *types.Transaction) common.Address {
	from, err := types.Sender(signer, tx)
	if err != nil {
		panic(err)
	}
	return from
}

// gweis converts gwei to wei.
func gweis(amount int64) *big.Int { return new(big.Int).Mul(big.NewInt(amount), big.NewInt(gwei)) }

// tx makes a transfer of sender i with a tip, which is also its fee cap.
func tx(i int, nonce uint64, tip int64) *types.Transaction { return capped(i, nonce, tip, tip) }

// chain makes n transfers from a nonce on.
func chain(i int, from uint64, n int, tip int64) []*types.Transaction {
	txs := make([]*types.Transaction, n)
	for j := range txs {
		txs[j] = tx(i, from+uint64(j), tip)
	}
	return txs
}

// capped makes a transfer with a tip and a fee cap.
func capped(i int, nonce uint64, tip, feeCap int64) *types.Transaction {
	return heavy(i, nonce, tip, feeCap, 0)
}

// heavy makes a transfer with data of zeros, and padded one with a single price.
// They have as much gas as they need.
func heavy(i int, nonce uint64, tip, feeCap int64, zeros int) *types.Transaction {
	return sign(i, &types.DynamicFeeTx{
		ChainID: chainID, Nonce: nonce, GasTipCap: gweis(tip), GasFeeCap: gweis(feeCap), Gas: txGas + 10*uint64(zeros), To: there, Data: make([]byte, zeros),
	})
}

func padded(i int, nonce uint64, price int64, zeros int) *types.Transaction {
	return legacy(i, nonce, gweis(price), txGas+10*uint64(zeros), zeros)
}

// hungry makes a transfer that may use much gas.
func hungry(i int, nonce uint64, price int64, gas uint64) *types.Transaction {
	return legacy(i, nonce, gweis(price), gas, 0)
}

// legacy makes a transfer with a price in wei, a gas limit and data of zeros.
func legacy(i int, nonce uint64, wei *big.Int, gas uint64, zeros int) *types.Transaction {
	return sign(i, &types.LegacyTx{Nonce: nonce, GasPrice: wei, Gas: gas, To: there, Data: make([]byte, zeros)})
}

// creation makes a transaction that creates a contract.
func creation(i int, code []byte, gas uint64) *types.Transaction {
	return sign(i, &types.LegacyTx{GasPrice: gweis(2), Gas: gas, Data: code})
}

// listing makes a transaction with a list of addresses and of keys of the last one.
func listing(i int, nonce uint64, price int64, addresses, keys int) *types.Transaction {
	list := make(types.AccessList, addresses)
	list[addresses-1].StorageKeys = make([]common.Hash, keys)
	gas := txGas + accessAddressGas*uint64(addresses) + accessKeyGas*uint64(keys)
	return sign(i, &types.AccessListTx{ChainID: chainID, Nonce: nonce, GasPrice: gweis(price), Gas: gas, To: there, AccessList: list})
}

// carrier makes a transaction by which others delegate themselves (EIP-7702), and
// setCode one with a single price.
func carrier(i int, nonce uint64, tip, feeCap int64, auths ...types.SetCodeAuthorization) *types.Transaction {
	return sign(i, &types.SetCodeTx{
		ChainID: uint256.MustFromBig(chainID), Nonce: nonce, GasTipCap: uint256.MustFromBig(gweis(tip)), GasFeeCap: uint256.MustFromBig(gweis(feeCap)),
		Gas: txGas + authorizationGas*uint64(len(auths)), To: *there, AuthList: auths,
	})
}

func setCode(i int, nonce uint64, tip int64, auths ...types.SetCodeAuthorization) *types.Transaction {
	return carrier(i, nonce, tip, tip, auths...)
}

// delegate is the authorization by i at its nonce, and delegateOn for another
// chain.
func delegate(i int, nonce uint64) types.SetCodeAuthorization {
	return delegateOn(i, nonce, chainID.Uint64())
}

func delegateOn(i int, nonce, chain uint64) types.SetCodeAuthorization {
	auth, err := types.SignSetCode(key(i), types.SetCodeAuthorization{ChainID: *uint256.NewInt(chain), Address: common.Address{2}, Nonce: nonce})
	if err != nil {
		panic(err)
	}
	return auth
}

// plain makes a transaction of sender i for a pool that is configured unsigned.
func plain(i int, nonce, gas uint64, tip int64) *types.Transaction {
	to := common.BigToAddress(big.NewInt(int64(i) + 1))
	return types.NewTx(&types.DynamicFeeTx{ChainID: chainID, Nonce: nonce, GasTipCap: gweis(tip), GasFeeCap: gweis(tip), Gas: gas, To: &to})
}

// unit is the cost of tx(i, n, 10) in wei.
const unit = 10 * gwei * txGas

// blockOf returns a block of some transactions.
func blockOf(txs ...*types.Transaction) Block { return Block{Transactions: txs} }

func hashes(txs []*types.Transaction) []common.Hash {
	out := make([]common.Hash, len(txs))
	for i, tx := range txs {
		out[i] = tx.Hash()
	}
	return out
}

// weigh returns what transactions take in memory.
func weigh(txs ...*types.Transaction) (bytes uint64) {
	for _, tx := range txs {
		bytes += memoryOf(tx)
	}
	return bytes
}
