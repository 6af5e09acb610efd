package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/jamq/jamq/txpool"
)

// ours returns the rows that only jamq has.
func (s *stock) ours(progress func(string)) []row {
	progress("jamq alone")
	var share []float64
	for range 3 * s.rounds { // short, and sensitive to other load
		added, recovered := s.raw()
		share = append(share, 100*added/recovered)
	}
	raw := alone("from raw bytes, share of pure recovery", percent, median(share), 0)
	raw.least = 95
	rows := []row{alone("allocations per Add", count, s.allocations(), 0), raw}
	rows = append(rows, s.growth(progress)...)
	rows = append(rows, s.chainGrowth(progress)...)
	progress("base fee")
	return append(rows, s.baseFeeMove()...)
}

// alone returns a row that only jamq has.
func alone(what string, unit unit, value, most float64) row {
	return row{what: what, unit: unit, values: append(make([]float64, len(contenders)-1), value), most: most}
}

// drain takes the best n transactions by their limits.
func (j *jamq) drain(n int) *txpool.Session {
	s := j.Build(context.Background(), txpool.Budget{Count: n})
	for s.Next() != nil {
		continue
	}
	return s
}

// build takes the best n transactions in a session. Each uses all of its gas.
func (j *jamq) build(n int) *txpool.Session {
	s := j.Build(context.Background(), txpool.Budget{Count: n})
	for tx := s.Next(); tx != nil; tx = s.Next() {
		s.Used(tx.Gas(), tx.Size())
	}
	return s
}

// openJamq returns a pool of jamq that holds the given transactions.
func (s *stock) openJamq(l limits, txs ...*types.Transaction) *jamq {
	return s.open(contender{name: "jamq", open: openJamq}, l, txs...).(*jamq)
}

// firstOut returns the time until a pool that has changed returns its best
// transaction, in nanoseconds. jamq returns it from a snapshot.
func (s *stock) firstOut(c contender) float64 {
	if c.name != "bare" && c.name != "jamq" {
		return 0 // W5 has them
	}
	p := s.open(c, limits{}, s.resident...)
	var times []float64
	for _, tx := range s.fresh[:s.round] {
		p.add(tx)
		began := time.Now()
		if j, is := p.(*jamq); is {
			j.first()
		} else {
			p.best(1)
		}
		times = append(times, float64(time.Since(began).Nanoseconds()))
	}
	return median(times)
}

// session returns the duration of a session of jamq. bare reads the
// transactions instead.
func (s *stock) session(c contender) float64 {
	switch c.name {
	case "bare":
		return s.read(c)
	case "jamq":
		return building(s.openJamq(limits{}, s.resident...), s.best)
	}
	return 0
}

// sessionOfAll returns the duration of a session of jamq that takes all
// transactions. The others read them in the order of a block.
func (s *stock) sessionOfAll(c contender) float64 {
	p := s.open(c, limits{}, s.resident...)
	defer p.close()
	n := len(s.resident)
	if j, is := p.(*jamq); is {
		return building(j, n)
	}
	got := 0
	d := timed(func() { got = p.best(n) })
	if got != n {
		panic(fmt.Sprintf("%s read %d, want %d", c.name, got, n))
	}
	return float64(d.Nanoseconds())
}

// building returns the duration of a session that takes the best n transactions.
func building(j *jamq, n int) float64 {
	var s *txpool.Session
	d := timed(func() { s = j.build(n) })
	if got := len(s.Transactions()); got != n {
		panic(fmt.Sprintf("a session took %d, want %d", got, n))
	}
	return float64(d.Nanoseconds())
}

// allocations returns the number of allocations of an Add.
func (s *stock) allocations() float64 {
	j := s.openJamq(limits{}, s.resident...)
	return allocs(s.round, func(i int) { j.add(s.fresh[i]) })
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
	j := s.openJamq(limits{})
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

// sessionByScore returns the duration of a session of jamq by score. cosmos-sdk's
// pool reads the transactions by priority instead.
func (s *stock) sessionByScore(c contender) float64 {
	switch c.name {
	case "cosmos":
		return s.read(c)
	case "jamq":
		c.open = func(l limits) pool {
			cfg := jamqConfig(l)
			cfg.Score = func(c txpool.Candidate) int64 { return int64(c.Tip>>2) - int64(c.Size) }
			return newJamq(cfg)
		}
		return building(s.open(c, limits{}, s.resident...).(*jamq), s.best)
	}
	return 0
}
