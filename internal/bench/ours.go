package main

import (
	"encoding/binary"
	"math/big"
	"runtime"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/jamq/jamq/txpool"
)

// The following workloads measure jamq only.

func (j *jamq) drainLease(n int) *txpool.Lease { return j.Drain(txpool.Budget{Count: n}) }

// drains returns the duration of a drain of the best transactions, and the time
// until a snapshot returns its first transaction, in nanoseconds.
func (s *stock) drains() (drain, first float64) {
	j := s.open(contenders[len(contenders)-1], limits{}, s.resident...).(*jamq)
	var firsts []float64
	for _, tx := range s.fresh[:s.round] { // each snapshot is of a pool that changed since the last
		j.add(tx)
		began := time.Now()
		j.first()
		firsts = append(firsts, float64(time.Since(began).Nanoseconds()))
	}
	first = median(firsts)
	var l *txpool.Lease
	drain = float64(timed(func() { l = j.drainLease(s.best) }).Nanoseconds())
	if n := len(l.Transactions()); n != s.best {
		panic(n)
	}
	return drain, first
}

// allocations returns the numbers of allocations of an Add and of an
// AddPrepared.
func (s *stock) allocations() (add, prepared float64) {
	j := s.open(contenders[len(contenders)-1], limits{}, s.resident...).(*jamq)
	n := s.round
	add = allocs(n, func(i int) { j.add(s.fresh[i]) })
	ready := make([]txpool.Prepared, n)
	for i := range ready {
		var err error
		ready[i], err = j.Prepare(s.fresh[n+i])
		must(err)
	}
	prepared = allocs(n, func(i int) { must(j.AddPrepared(ready[i])) })
	return add, prepared
}

func allocs(n int, f func(int)) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range n {
		f(i)
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n)
}

// growth returns the cost of an Add at the usual size and at a million
// transactions, in nanoseconds. The data of the transactions name the senders,
// because a million signatures would take a minute.
func (s *stock) growth() (usual, million float64) {
	const rounds = 20
	open := func(n int) float64 {
		cfg := jamqConfig(limits{transactions: 2*n + rounds*s.round, perSender: 16})
		cfg.Sender = func(tx *types.Transaction) (common.Address, error) { return common.BytesToAddress(tx.Data()), nil }
		j := newJamq(cfg)
		j.addAll(named(0, n))
		var spent time.Duration
		runtime.GC()
		for r := range rounds {
			fresh := named(n+r*s.round, s.round)
			for _, tx := range fresh {
				tx.Cost()
			}
			began := time.Now()
			for _, tx := range fresh {
				j.add(tx)
			}
			spent += time.Since(began)
		}
		return per(spent, rounds*s.round)
	}
	return open(s.largest()), open(s.million)
}

// named returns unsigned transactions.
func named(from, n int) []*types.Transaction {
	txs := make([]*types.Transaction, n)
	parallel(n, func(i int) {
		id := uint64(from + i)
		tip := int64(2*gwei + id*2_654_435_761%(98*gwei))
		txs[i] = types.NewTx(&types.DynamicFeeTx{
			ChainID: chainID, GasTipCap: big.NewInt(tip), GasFeeCap: big.NewInt(2 * tip), Gas: 30_000, To: &common.Address{1},
			Value: big.NewInt(1), Data: binary.BigEndian.AppendUint64(nil, id),
		})
		txs[i].Hash()
		txs[i].Size()
	})
	return txs
}

// raw returns transactions per second from their encodings into the pool, and
// signatures per second that the CPUs can recover.
func (s *stock) raw() (added, recovered float64) {
	raws := make([][]byte, s.scale.raw)
	for i := range raws {
		var err error
		raws[i], err = s.resident[i%len(s.resident)].MarshalBinary()
		must(err)
	}
	raws = raws[:min(len(raws), len(s.resident))]
	j := s.open(contenders[len(contenders)-1], limits{}).(*jamq)
	d := timed(func() {
		for at := 0; at < len(raws); at += s.batch {
			_, errs := j.AddAllRaw(raws[at:min(at+s.batch, len(raws))])
			for _, err := range errs {
				must(err)
			}
		}
	})
	holds(j, len(raws))
	decoded := make([]*types.Transaction, len(raws))
	for i := range raws {
		decoded[i] = new(types.Transaction)
		must(decoded[i].UnmarshalBinary(raws[i]))
	}
	alone := timed(func() { parallel(len(decoded), func(i int) { sender(decoded[i]) }) })
	return float64(len(raws)) / d.Seconds(), float64(len(raws)) / alone.Seconds()
}
