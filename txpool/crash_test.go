package txpool_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/txpool"
)

var (
	crashSeeds = flag.Uint64("crash.seeds", 2000, "how many seeds TestCrashAtAnyAppend runs")
	crashSeed  = flag.Uint64("crash.seed", 1, "the first seed of TestCrashAtAnyAppend")
)

// errCrash is the panic by which the process of the pool ends.
var errCrash = errors.New("crash")

// torn is a journal whose writes fail, and whose process ends in a write. It then
// has a prefix of the records, of any length.
type torn struct {
	random  *rand.Rand
	records [][]byte
	faults  int // per cent of the writes
}

func (j *torn) Append(records ...[]byte) error {
	fate := j.random.IntN(100)
	if fate >= j.faults {
		j.keep(records)
		return nil
	}
	j.keep(records[:j.random.IntN(len(records)+1)])
	if fate%2 == 0 {
		panic(errCrash)
	}
	return errors.New("no disk")
}

func (j *torn) keep(records [][]byte) {
	for _, r := range records {
		j.records = append(j.records, bytes.Clone(r))
	}
}

func (j *torn) replay(f func([]byte) error) error {
	for _, r := range slices.Clone(j.records) {
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

// coin is a transaction of the machine, made once for all seeds.
type coin struct {
	*types.Transaction
	from int
}

const (
	crashSenders = 3
	crashNonces  = 6
)

// coins are transfers of each sender and nonce, at three prices.
var coins, coinOf = mint()

func mint() (all [crashSenders][crashNonces][3]coin, of map[common.Hash]coin) {
	of = make(map[common.Hash]coin)
	for i := range all {
		for n := range all[i] {
			for price := range all[i][n] {
				c := coin{transfer(i, uint64(n), int64(2<<price), 0), i}
				all[i][n][price], of[c.Hash()] = c, c
			}
		}
	}
	return all, of
}

// bundle has the transactions of a lease. The host's queue has it from the call
// of Commit on.
type bundle []*types.Transaction

// crasher is a host that does random things to a pool until its process ends, and
// then continues with the parts that are durable: the journal, its bundles, and
// the answers that users have received.
type crasher struct {
	random  *rand.Rand
	journal *torn
	pool    *txpool.Pool
	now     time.Time
	chain   [crashSenders]uint64 // nonces that the state shows

	bundles []bundle // enqueued, oldest first
	undone  []bundle // failed; the journal may not know it
	open    []*txpool.Session
	stuck   *txpool.Lease // its commit was refused

	acked map[common.Hash]bool
	fine  map[common.Hash]bool // left for a reason that is true
}

func (h *crasher) Account(a common.Address) (txpool.Account, error) {
	for i := range h.chain {
		if a == address(i) {
			return txpool.Account{Nonce: h.chain[i], Balance: *uint256.NewInt(1e18)}, nil
		}
	}
	return txpool.Account{}, nil
}

func (h *crasher) config() txpool.Config {
	cfg := txpool.DefaultConfig(chainID)
	cfg.Journal, cfg.FloorWindow, cfg.SurgeSlope = h.journal, 0, 0
	cfg.QuarantineTime = 0
	cfg.Now = func() time.Time { return h.now }
	cfg.Sender = func(tx *types.Transaction) (common.Address, error) { return address(coinOf[tx.Hash()].from), nil }
	cfg.Precheck = nil
	return cfg
}

// restart opens the pool again, as a process that begins. The host's state shows
// all bundles that are enqueued.
func (h *crasher) restart() error {
	for {
		again, err := h.tryRestart()
		if !again {
			return err
		}
	}
}

func (h *crasher) tryRestart() (again bool, err error) {
	defer h.died(&again)
	h.open, h.stuck = nil, nil
	h.show()
	if h.pool, err = txpool.New(h.config(), h); err != nil {
		return false, err
	}
	if _, err := h.pool.Restore(h.journal.replay); err != nil && !errors.Is(err, txpool.ErrJournal) {
		return false, err
	}
	for _, l := range h.pool.Leases() {
		if h.enqueued(l.Transactions()) {
			err = l.Commit()
		} else {
			err = l.Release()
		}
		if errors.Is(err, txpool.ErrJournal) {
			return true, nil // the host gives up and starts again
		} else if err != nil {
			return false, err
		}
	}
	h.revert()
	return false, nil
}

// died reports whether the call that ends has ended the process.
func (h *crasher) died(crashed *bool) {
	if r := recover(); r == errCrash {
		*crashed = true
	} else if r != nil {
		panic(r)
	}
}

// enqueued reports whether a bundle has one of the transactions.
func (h *crasher) enqueued(txs []*types.Transaction) bool {
	return slices.ContainsFunc(h.bundles, func(b bundle) bool {
		return slices.ContainsFunc(b, func(tx *types.Transaction) bool {
			return slices.ContainsFunc(txs, func(other *types.Transaction) bool { return other.Hash() == tx.Hash() })
		})
	})
}

// show makes the state show all bundles.
func (h *crasher) show() {
	h.chain = [crashSenders]uint64{}
	for _, b := range h.bundles {
		for _, tx := range b {
			h.chain[coinOf[tx.Hash()].from] = tx.Nonce() + 1
		}
	}
}

// revert tells the pool of the blocks that have failed.
func (h *crasher) revert() {
	h.show()
	if len(h.undone) == 0 {
		return
	}
	var head txpool.Head
	for _, b := range h.undone {
		head.Reverted = append(head.Reverted, txpool.Block{Transactions: b})
	}
	h.pool.Reset(head)
	if h.pool.Flush() == nil {
		h.undone = nil
	}
}

// add offers a transaction. Its sender knows that the pool has it if Add returns
// nil.
func (h *crasher) add() {
	i := h.random.IntN(crashSenders)
	next, known := h.pool.NextNonce(address(i))
	if !known {
		next = h.chain[i]
	}
	n := min(next, crashNonces-1)
	if h.random.IntN(3) == 0 { // a replacement, or one that came too late
		n = uint64(h.random.IntN(crashNonces))
	}
	c := coins[i][n][h.random.IntN(3)]
	if h.enqueued([]*types.Transaction{c.Transaction}) {
		return
	}
	if h.pool.Status(c.Hash()) == txpool.StatusUnknown {
		delete(h.acked, c.Hash()) // it left before, and the new answer counts
	}
	if h.pool.Add(c.Transaction) == nil {
		h.acked[c.Hash()] = true
		delete(h.fine, c.Hash())
	}
}

// build takes transactions into a session, and now and then seals it.
func (h *crasher) build() error {
	s := h.pool.Build(context.Background(), txpool.Budget{})
	h.open = append(h.open, s)
	for range h.random.IntN(6) {
		tx := s.Next()
		switch {
		case tx == nil:
			return nil
		case h.enqueued([]*types.Transaction{tx}):
			return fmt.Errorf("%s is built twice", tx.Hash())
		case h.random.IntN(8) == 0:
			h.fine[tx.Hash()] = true
			s.Fail(nil)
		case h.random.IntN(8) == 0:
			s.Later()
		}
	}
	if h.random.IntN(2) == 0 {
		_, _ = s.Seal() // the session has ended even if the journal fails
	}
	return nil
}

// take returns one of the open sessions, which the host then no longer has.
func (h *crasher) take() *txpool.Session {
	if len(h.open) == 0 {
		return nil
	}
	i := h.random.IntN(len(h.open))
	s := h.open[i]
	h.open = slices.Delete(h.open, i, i+1)
	return s
}

// runs reports whether transactions can run after the bundles.
func (h *crasher) runs(txs []*types.Transaction) bool {
	h.show()
	next := h.chain
	for _, tx := range txs {
		i := coinOf[tx.Hash()].from
		if tx.Nonce() != next[i] {
			return false
		}
		next[i]++
	}
	return true
}

// commit enqueues the oldest session's transactions as a bundle, if they can run
// after those before it.
func (h *crasher) commit() error {
	if len(h.open) == 0 || h.stuck != nil {
		return nil
	}
	s := h.open[0]
	h.open = h.open[1:]
	txs := s.Lease().Transactions()
	if !h.runs(txs) {
		return ignoreClosed(s.Lease().Release())
	}
	h.bundles = append(h.bundles, txs)
	return h.settle(s.Lease())
}

func (h *crasher) settle(l *txpool.Lease) error {
	h.stuck = nil
	err := l.Commit()
	if errors.Is(err, txpool.ErrJournal) {
		h.stuck = l
		return nil
	}
	h.undone = nil // the journal has what came before
	return err
}

// ignoreClosed returns err, unless it is ErrLeaseClosed.
func ignoreClosed(err error) error {
	if errors.Is(err, txpool.ErrLeaseClosed) {
		return nil
	}
	return err
}

// resolve commits the lease of a refused commit again, or gives its bundle up.
func (h *crasher) resolve() error {
	l := h.stuck
	if l == nil {
		return nil
	}
	if h.random.IntN(2) == 0 {
		return h.settle(l)
	}
	h.stuck, h.bundles = nil, h.bundles[:len(h.bundles)-1]
	for _, tx := range l.Transactions() {
		var err error
		switch h.random.IntN(6) {
		case 0:
			h.fine[tx.Hash()] = true
			err = l.Reject(tx.Hash(), errors.New("reverted"))
		case 1:
			err = l.Return(tx.Hash())
		}
		if err != nil && !errors.Is(err, txpool.ErrJournal) { // it has left the lease nevertheless
			return err
		}
	}
	return l.Release()
}

// fail gives the last bundle up, although its commit was acknowledged.
func (h *crasher) fail() {
	last := len(h.bundles) - 1
	if last < 0 || h.stuck != nil || len(h.open) > 0 {
		return
	}
	h.undone = append(h.undone, h.bundles[last])
	h.bundles = h.bundles[:last]
	h.revert()
}

// step does one random thing. It reports whether the process has ended.
func (h *crasher) step() (crashed bool, err error) {
	defer h.died(&crashed)
	switch h.random.IntN(14) {
	case 0, 1, 2, 3:
		h.add()
	case 4, 5:
		err = h.build()
	case 6, 7:
		err = h.commit()
	case 8:
		err = h.resolve()
	case 9:
		if s := h.take(); s != nil {
			_ = s.Lease().Release()
		}
	case 10:
		h.fail()
	case 11:
		if h.stuck == nil {
			h.show()
			h.pool.Reset(txpool.Head{})
		}
	case 12:
		next := &torn{random: h.random, faults: h.journal.faults}
		if h.pool.Rotate(next) == nil {
			h.journal = next
		}
	case 13:
		h.shorten()
	}
	return false, err
}

// shorten replaces the journal by the content of the pool and those of its last records
// that were appended while the host made the new one.
func (h *crasher) shorten() {
	if h.pool.Flush() != nil {
		return
	}
	began := h.random.IntN(len(h.journal.records) + 1)
	h.journal.records = append(h.pool.Records(), h.journal.records[began:]...)
}

// check finds all acknowledged transactions.
func (h *crasher) check() error {
	if err := h.pool.Check(); err != nil {
		return err
	}
	for hash := range h.acked {
		c := coinOf[hash]
		if h.accounted(hash) {
			continue
		}
		if _, gone := h.pool.Departure(hash); gone && c.Nonce() < h.chain[c.from] {
			delete(h.acked, hash) // another transaction has its nonce
			continue
		}
		d, _ := h.pool.Departure(hash)
		return fmt.Errorf("sender %d, nonce %d is lost; the pool says: %v %v", c.from, c.Nonce(), d.Kind, d.Reason)
	}
	return nil
}

// accounted reports whether a transaction is in the pool, in a bundle, or left for
// a reason that is true, or whether this holds for the one that replaced it.
func (h *crasher) accounted(hash common.Hash) bool {
	for {
		if h.pool.Status(hash) != txpool.StatusUnknown || h.enqueued([]*types.Transaction{coinOf[hash].Transaction}) || h.fine[hash] {
			return true
		}
		d, gone := h.pool.Departure(hash)
		if !gone || d.Kind != txpool.Replaced {
			return false
		}
		hash = d.By
	}
}

// crashRun plays a seed.
func crashRun(seed uint64) error {
	random := rand.New(rand.NewPCG(seed, 0))
	h := &crasher{
		random: random, journal: &torn{random: random, faults: 10 + random.IntN(30)}, now: time.Unix(1_800_000_000, 0),
		acked: make(map[common.Hash]bool), fine: make(map[common.Hash]bool),
	}
	if err := h.restart(); err != nil {
		return err
	}
	for i := range 30 {
		crashed, err := h.step()
		if err == nil && (crashed || i%10 == 9) {
			err = h.restart()
		}
		if err == nil {
			err = h.check()
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// The process ends in any write to the journal, or the write fails, and the
// journal has a prefix of it. No transaction that the pool has acknowledged is
// lost, and none is built twice.
func TestCrashAtAnyAppend(t *testing.T) {
	for seed := *crashSeed; seed < *crashSeed+*crashSeeds; seed++ {
		if err := crashRun(seed); err != nil {
			t.Fatalf("go test ./txpool -run TestCrashAtAnyAppend -crash.seeds 1 -crash.seed %d: %v", seed, err)
		}
	}
}

// oneCommit returns a host whose journal refuses the commit of its only
// transaction, and has kept the given number of its records.
func oneCommit(t *testing.T, keep int) (*host, *txpool.Session, *types.Transaction) {
	t.Helper()
	h := newHost(t, func(c *txpool.Config) { c.QuarantineTime = 0 })
	tx := transfer(0, 0, 5, 0)
	require.NoError(t, h.pool.Add(tx))
	s := h.pool.Build(context.Background(), txpool.Budget{})
	require.NotNil(t, s.Next())
	h.tape.fail, h.tape.keep = true, keep
	require.ErrorIs(t, s.Commit(), txpool.ErrJournal)
	h.tape.fail = false
	return h, s, tx
}

// A commit that was not acknowledged is harmless, whatever the journal kept of it.
func TestTornCommitIsHarmless(t *testing.T) {
	for _, keep := range []int{0, 1, 2, 3} {
		h, s, tx := oneCommit(t, keep)
		require.NoError(t, s.Lease().Release())
		require.Equal(t, txpool.StatusPending, h.pool.Status(tx.Hash()))
		require.Empty(t, h.restart().Displaced)
		require.Equal(t, txpool.StatusPending, h.pool.Status(tx.Hash()), "the restart lost it; %d records were kept", keep)
	}
}

// After a commit that was not acknowledged, a rejected transaction frees its
// nonce, and the next one with that nonce is not lost.
func TestTornCommitFreesItsNonce(t *testing.T) {
	for _, keep := range []int{0, 1, 2, 3} {
		h, s, old := oneCommit(t, keep)
		require.NoError(t, s.Lease().Reject(old.Hash(), nil))
		require.NoError(t, s.Lease().Release())
		next := types.MustSignNewTx(key(0), signer, &types.LegacyTx{GasPrice: big.NewInt(5 * gwei), Gas: gas, To: &common.Address{2}})
		require.NoError(t, h.pool.Add(next))
		h.restart()
		require.Equal(t, txpool.StatusPending, h.pool.Status(next.Hash()), "the restart lost it; %d records were kept", keep)
	}
}
