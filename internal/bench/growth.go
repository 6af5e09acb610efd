package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/jamq/jamq/txpool"
)

// The workloads of this file measure how the cost of an operation of jamq grows
// with the pool or with the chain of one sender. An operation may cost at most
// twice as much in the larger pool. The data of the transactions name the
// senders, because a million signatures would take a minute.

// maxGrowth is the greatest allowed growth of the cost of one operation.
const maxGrowth = 2

// cycles is the number of times that growthAt repeats its operations.
const cycles = 20

// costs are the costs of some operations in nanoseconds.
type costs map[string]float64

// growth returns the rows of a pool of s.few and of s.million transactions.
func (s *stock) growth(progress func(string)) []row {
	operations := []string{"Add", "evicting Add", "session", "Reset with Touched", "Next at the end of a block"}
	return s.compare(operations, s.few, s.million, "pool of %d: %s, per transaction", progress, s.growthAt)
}

// chainGrowth returns the rows of a chain of one sender.
func (s *stock) chainGrowth(progress func(string)) []row {
	operations := []string{"Add in order", "Add shuffled", "session", "commit and Reset"}
	return s.compare(operations, s.short, s.long, "chain of %d: %s, per transaction", progress, s.chainAt)
}

// compare measures operations at two sizes in turns. Each row has the median at
// the greater size and requires at most maxGrowth times that of the smaller.
func (s *stock) compare(operations []string, few, many int, what string, progress func(string), at func(int) costs) (rows []row) {
	samples := map[int]map[string][]float64{few: {}, many: {}}
	for range s.rounds {
		for _, n := range []int{few, many} {
			progress(fmt.Sprintf("growth, %d transactions", n))
			for operation, cost := range at(n) {
				samples[n][operation] = append(samples[n][operation], cost)
			}
		}
	}
	for _, operation := range operations {
		rows = append(rows, alone(fmt.Sprintf(what, many, operation), nanoseconds,
			median(samples[many][operation]), maxGrowth*median(samples[few][operation])))
	}
	return rows
}

// stopwatch adds up the durations of operations.
type stopwatch struct {
	spent map[string]time.Duration
	count map[string]int
}

func newStopwatch() *stopwatch {
	return &stopwatch{make(map[string]time.Duration), make(map[string]int)}
}

// time measures n operations.
func (w *stopwatch) time(operation string, n int, f func()) {
	began := time.Now()
	f()
	w.spent[operation] += time.Since(began)
	w.count[operation] += n
}

// costs returns the mean cost of each operation.
func (w *stopwatch) costs() costs {
	c := make(costs)
	for operation, spent := range w.spent {
		c[operation] = per(spent, w.count[operation])
	}
	return c
}

// openNamed returns a pool of jamq for transactions whose data name the sender.
func openNamed(capacity, perSender int) *jamq {
	cfg := jamqConfig(limits{transactions: capacity, perSender: perSender})
	cfg.Sender = namedSender
	return newJamq(cfg)
}

func namedSender(tx *types.Transaction) (common.Address, error) {
	return common.BytesToAddress(tx.Data()), nil
}

// growthAt measures operations on a pool that holds n transactions and is full.
// Each cycle takes some transactions out in a block, adds as many, and evicts
// as many, so that the pool's size stays the same.
func (s *stock) growthAt(n int) costs {
	j := openNamed(n, 16)
	j.addAll(named(0, n, 0))
	runtime.GC()
	w := newStopwatch()
	for cycle := range cycles {
		next := n + 2*cycle*s.round
		var session *txpool.Session
		w.time("session", s.round, func() { session = j.build(s.round) })
		block := session.Transactions()
		touched := j.run(block)
		w.time("Reset with Touched", len(block), func() {
			j.Reset(txpool.Head{Included: []txpool.Block{{Transactions: block}}, Touched: touched})
		})
		w.time("Next at the end of a block", 1, j.missAll)
		fresh, dear := named(next, s.round, 0), named(next+s.round, s.round, 200*gwei)
		warm(fresh, dear)
		w.time("Add", s.round, func() { j.addEach(fresh) })
		holds(j, n)
		w.time("evicting Add", s.round, func() { j.addEach(dear) })
		holds(j, n)
	}
	return w.costs()
}

// missAll calls Next of a session with gas left that no transaction fits into.
func (j *jamq) missAll() {
	s := j.Build(context.Background(), txpool.Budget{Gas: namedGas - 1})
	if s.Next() != nil {
		panic("a session took a transaction that does not fit")
	}
	s.Cancel()
}

// run executes a block on the host's state and returns the senders.
func (j *jamq) run(block []*types.Transaction) (touched []common.Address) {
	nonces := make(map[common.Address]uint64)
	for a, nonce := range *j.nonces.Load() {
		nonces[a] = nonce
	}
	for _, tx := range block {
		from, _ := namedSender(tx)
		nonces[from] = tx.Nonce() + 1
		touched = append(touched, from)
	}
	j.nonces.Store(&nonces)
	return touched
}

func (j *jamq) addEach(txs []*types.Transaction) {
	for _, tx := range txs {
		j.add(tx)
	}
}

// warm loads transactions into the CPU's cache.
func warm(batches ...[]*types.Transaction) {
	for _, txs := range batches {
		for _, tx := range txs {
			tx.Cost()
		}
	}
}

// chainAt measures operations on the chain of one sender. It uses several pools
// if the chain is short, so that each duration can be measured.
func (s *stock) chainAt(n int) costs {
	w := newStopwatch()
	runtime.GC()
	for range max(1, s.long/n/4) {
		txs := chainOf(n)
		warm(txs)
		j := openNamed(n, n)
		w.time("Add in order", n, func() { j.addEach(txs) })
		shuffled := chainOf(n)
		r := rand.New(rand.NewPCG(5, 0))
		r.Shuffle(n, func(i, k int) { shuffled[i], shuffled[k] = shuffled[k], shuffled[i] })
		warm(shuffled)
		j = openNamed(n, n)
		w.time("Add shuffled", n, func() { j.addEach(shuffled) })
		var session *txpool.Session
		w.time("session", n, func() { session = j.build(n) })
		block := session.Transactions()
		if len(block) != n {
			panic(fmt.Sprintf("a session took %d of %d", len(block), n))
		}
		touched := j.run(block)[:1]
		w.time("commit and Reset", n, func() {
			j.Reset(txpool.Head{Included: []txpool.Block{{Transactions: block}}, Touched: touched})
		})
		holds(j, 0)
	}
	return w.costs()
}

// baseFeeMove returns the rows of a base fee that rises so that half of a large
// pool no longer pays it: the longest time that an Add or a reader waits
// meanwhile, and the same beside a goroutine that only computes. The machine
// causes the latter, so it is allowed if it exceeds 60 ms. geth's pool takes more
// than a second.
func (s *stock) baseFeeMove() []row {
	const price, allowed = 104 * gwei, 60e6 // fee caps are even from 4 to 200 gwei
	var worsts, idle []float64
	for range s.rounds {
		n := s.largest()
		j := openNamed(2*n, 16)
		j.addAll(named(0, n, 0))
		worst, took := j.worstBeside(named(n, n/20, 100*gwei), func() {
			j.Reset(txpool.Head{BaseFee: big.NewInt(price), Touched: []common.Address{}})
		})
		if parked := j.Stats().Parked; parked < n*45/100 || parked > n*55/100 {
			panic(fmt.Sprintf("a base fee parked %d of %d", parked, n))
		}
		worsts = append(worsts, worst)
		worst, _ = j.worstBeside(named(2*n, n/20, 100*gwei), func() {
			for began := time.Now(); time.Since(began) < took; {
				continue
			}
		})
		idle = append(idle, worst)
	}
	floor := alone("  the same beside a busy goroutine", milliseconds, median(idle), 0)
	what := fmt.Sprintf("base fee parks half of %d: worst Add or read", s.largest())
	return []row{alone(what, milliseconds, median(worsts), max(allowed, median(idle))), floor}
}

// worstBeside calls f and meanwhile adds and reads transactions. It returns the
// duration of the slowest call in nanoseconds, and that of f.
func (j *jamq) worstBeside(txs []*types.Transaction, f func()) (worst float64, took time.Duration) {
	warm(txs)
	runtime.GC()
	done := make(chan struct{})
	go func() {
		defer close(done)
		began := time.Now()
		f()
		took = time.Since(began)
	}()
	worst = j.worstUntil(txs, done)
	return worst, took
}

// worstUntil adds and reads one transaction after another until done is closed.
// It returns the duration of the slowest call in nanoseconds.
func (j *jamq) worstUntil(txs []*types.Transaction, done <-chan struct{}) float64 {
	var worst time.Duration
	for _, tx := range txs {
		began := time.Now()
		j.add(tx)
		added := time.Now()
		if j.Get(tx.Hash()) == nil {
			panic("an added transaction is not in the pool")
		}
		j.first()
		worst = max(worst, added.Sub(began), time.Since(added))
		select {
		case <-done:
			return float64(worst.Nanoseconds())
		default:
		}
	}
	<-done
	return float64(worst.Nanoseconds())
}

// named returns unsigned transactions, each of another sender, at prices that
// look random from more+2 to more+100 gwei.
func named(from, n int, more int64) []*types.Transaction {
	txs := make([]*types.Transaction, n)
	parallel(n, func(i int) {
		id := uint64(from + i)
		txs[i] = unsigned(id, 0, more+int64(2*gwei+id*2_654_435_761%(98*gwei)))
	})
	return txs
}

// chainOf returns n unsigned transactions of one sender.
func chainOf(n int) []*types.Transaction {
	txs := make([]*types.Transaction, n)
	parallel(n, func(i int) { txs[i] = unsigned(1, uint64(i), int64(2*gwei+uint64(i)*2_654_435_761%(98*gwei))) })
	return txs
}

// namedGas is the gas limit of a transaction whose data name the sender.
const namedGas = 30_000

// unsigned returns a transaction whose data name the sender.
func unsigned(sender, nonce uint64, tip int64) *types.Transaction {
	tx := types.NewTx(&types.DynamicFeeTx{
		ChainID: chainID, Nonce: nonce, GasTipCap: big.NewInt(tip), GasFeeCap: big.NewInt(2 * tip), Gas: namedGas, To: &common.Address{1},
		Value: big.NewInt(1), Data: binary.BigEndian.AppendUint64(nil, sender),
	})
	tx.Hash()
	tx.Size()
	return tx
}
