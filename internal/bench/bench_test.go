package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// stocked makes the transactions once.
var stocked = sync.OnceValue(func() *stock { return newStock(full) })

// each measures all contenders. It reports the figures of the workloads,
// because the time that go test measures includes filling the pools.
func each(b *testing.B, unit string, f func(*stock, contender) float64) {
	s := stocked()
	for _, c := range contenders {
		b.Run(c.name, func(b *testing.B) {
			sum := 0.0
			for range b.N {
				sum += f(s, c)
			}
			b.ReportMetric(sum/float64(b.N), unit)
			b.ReportMetric(0, "ns/op")
		})
	}
}

func BenchmarkW1One(b *testing.B) {
	for _, n := range full.senders {
		b.Run(fmt.Sprint(n), func(b *testing.B) { each(b, "ns/tx", func(s *stock, c contender) float64 { return s.one(c, n) }) })
	}
}
func BenchmarkW1Batches(b *testing.B) { each(b, "ns/tx", (*stock).batches) }
func BenchmarkW2Chains(b *testing.B)  { each(b, "ns/tx", (*stock).shuffledChains) }
func BenchmarkW3Replace(b *testing.B) { each(b, "ns/tx", (*stock).replace) }
func BenchmarkW4Evict(b *testing.B) {
	each(b, "ns/tx", func(s *stock, c contender) float64 {
		if !c.evicts {
			b.Skip("cosmos-sdk's pool does not evict")
		}
		return s.evict(c)
	})
}
func BenchmarkW5Best(b *testing.B)         { each(b, "ns", (*stock).read) }
func BenchmarkW5SessionOfAll(b *testing.B) { each(b, "ns", (*stock).sessionOfAll) }
func BenchmarkW6Commit(b *testing.B) {
	each(b, "ns", func(s *stock, c contender) float64 { total, _ := s.commit(c); return total })
}
func BenchmarkW7WorstAdd(b *testing.B) {
	each(b, "ns", func(s *stock, c contender) float64 { _, worst := s.commit(c); return worst })
}
func BenchmarkMemory(b *testing.B) { each(b, "B/tx", (*stock).memory) }

// Every workload leaves each contender with the right contents, and the table
// has a row for each workload. The test does not judge the figures.
func TestQuick(t *testing.T) {
	s := quick
	s.senders, s.block, s.few, s.million, s.short, s.long = []int{300}, 100, 200, 500, 16, 64
	s.replaced, s.full, s.evictions, s.chains, s.nonces, s.raw = 300, 200, 50, 20, 10, 200
	text := run(newStock(s), func(string) {}).String()
	for _, want := range []string{"W1", "W2", "W3", "W4", "W5", "W6", "W7", "memory", "raw bytes", "pool of 500", "chain of 64", "end of a block", "base fee", "busy goroutine"} {
		require.Contains(t, text, want)
	}
	require.Len(t, strings.Split(strings.TrimSpace(text), "\n"), 1+5+5+3+2+5+4+2)
}

// bare reads the best transactions in the order of a plain search, after
// arrivals out of order, replacements, evictions and a commit. Otherwise it would
// bound nothing.
func TestBare(t *testing.T) {
	p := newPeople(40)
	chains := p.sign(shuffled(20, 10, 1))
	b := openBare(limits{transactions: len(chains)}).(*bare)
	b.addAll(chains)
	b.requireBest(t)
	for _, tx := range p.sign(dearer(shuffled(10, 10, 1), 2)) {
		if b.senders[sender(tx)] != nil && tx.Nonce() < 5 {
			b.addAll(p.sign([]payment{{slices.Index(p.addresses, sender(tx)), tx.Nonce(), 500 * gwei}}))
		}
	}
	b.requireBest(t)
	b.addAll(p.sign(dearer(once(20, 40, 3), 100)))
	require.Equal(t, len(chains), b.size())
	b.requireBest(t)
	var block []*types.Transaction
	b.bestOf(50, func(tx *bareTx) { block = append(block, tx.tx) })
	b.prepare(block)
	b.commit(block)
	require.Equal(t, len(chains)-50, b.size())
	b.requireBest(t)
}

// requireBest checks that bestOf returns all transactions that can run, each
// the best of the next ones of all senders.
func (b *bare) requireBest(t *testing.T) {
	t.Helper()
	next := make(map[*bareSender]int)
	count := 0
	b.bestOf(len(b.all), func(got *bareTx) {
		count++
		for _, s := range b.senders {
			if i := next[s]; i < len(s.txs) && s.txs[i].nonce == s.nonce+uint64(i) {
				require.LessOrEqual(t, s.txs[i].tip, got.tip)
			}
		}
		require.Same(t, got.sender.txs[next[got.sender]], got)
		next[got.sender]++
	})
	for _, s := range b.senders {
		i := next[s]
		count -= i
		require.False(t, i < len(s.txs) && s.txs[i].nonce == s.nonce+uint64(i), "one that can run was not read")
	}
	require.Zero(t, count)
}

// The trees have the same roots, and the table of statedb has a row for each
// workload. The test does not judge the figures.
func TestQuickStates(t *testing.T) {
	s := quickStates
	s.leaves, s.copied, s.gets, s.sends = 3000, 500, 1000, 50
	text := table{columns: growerNames, rows: runStates(s, func(string) {})}.String()
	for _, want := range []string{"load", "get", "update", "insert", "heap per leaf", "retained", "snapshot", "views", "build", "verify", "size", "transfer"} {
		require.Contains(t, text, want)
	}
	require.Len(t, strings.Split(strings.TrimSpace(text), "\n"), 1+6+3+3+8+1)
}

// The table shows the ratios of the last release, and marks a row if jamq has
// lost beside each peer.
func TestReleased(t *testing.T) {
	h := make(history)
	pools := []string{"geth", "bare", "jamq"}
	h.record("quick", table{columns: pools, rows: []row{{what: "add", unit: count, values: []float64{900, 80, 100}}}})
	for _, c := range []struct {
		values []float64
		cells  []string
	}{
		{[]float64{900, 80, 100}, []string{"9.0× (9.0×)", "1.2× (1.2×)", "ok"}},
		{[]float64{1800, 160, 240}, []string{"7.5× (9.0×)", "1.5× (1.2×)", "ok"}},
		{[]float64{900, 80, 200}, []string{"4.5× (9.0×)", "2.5× (1.2×)", "SLOWER"}},
		{[]float64{300, 80, 100}, []string{"3.0× (9.0×)", "1.2× (1.2×)", "ok"}},
		{[]float64{200, 80, 200}, []string{"1.0× (9.0×)", "2.5× (1.2×)", "MISSED"}},
	} {
		r := row{what: "add", unit: count, ratio: 2, values: c.values}
		cells := table{columns: pools, rows: []row{r}, released: h["quick"]}.cells(r)
		require.Equal(t, c.cells, []string{cells[4], cells[5], cells[7]})
	}
}

// Each recorded workload has a figure of jamq.
func TestReleasedFile(t *testing.T) {
	h := readReleased()
	require.NotEmpty(t, h["full"])
	require.NotEmpty(t, h["quick"])
	for _, rows := range h {
		for what, f := range rows {
			require.Positive(t, f["jamq"], what)
		}
	}
}
