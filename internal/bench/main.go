package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
)

func main() {
	small := flag.Bool("quick", false, "small and rough")
	only := flag.String("only", "", "measure only `package`: txpool or statedb")
	grower := flag.Int("tree", -1, "measure one tree of statedb's, as the program asks itself to")
	flag.Parse()
	s, states := full, fullStates
	if *small {
		s, states = quick, quickStates
	}
	if *grower >= 0 {
		must(json.NewEncoder(os.Stdout).Encode(states.tree(growers[*grower]())))
		return
	}
	progress := func(what string) { fmt.Fprintln(os.Stderr, what) }
	progress(fmt.Sprintf("%d processors", runtime.GOMAXPROCS(0)))
	halves := map[string]func() []row{
		"txpool":  func() []row { return run(newStock(s), progress) },
		"statedb": func() []row { return runStates(states, progress) },
	}
	if *only != "" && halves[*only] == nil {
		fmt.Fprintf(os.Stderr, "bench: -only %s: want txpool or statedb\n", *only)
		os.Exit(2)
	}
	for _, name := range slices.Sorted(maps.Keys(halves)) {
		if *only == "" || *only == name {
			fmt.Println(name)
			fmt.Print(table{rows: halves[name]()}.String())
		}
	}
}

// run measures all workloads, with the contenders in turns, and takes medians.
func run(s *stock, progress func(string)) []row {
	n := s.largest()
	var rows []row
	measure := func(r row, f func(contender) float64) {
		progress(r.what)
		r.values = medians(s.rounds, f)
		rows = append(rows, r)
	}
	for _, senders := range s.senders {
		r := row{what: fmt.Sprintf("W1 one Add, %d senders", senders), unit: nanoseconds}
		if senders == n {
			r.ratio, r.most = 300, 1200
		}
		measure(r, func(c contender) float64 { return s.one(c, senders) })
	}
	measure(row{what: fmt.Sprintf("W1 batches of %d, %d senders", s.batch, n), unit: nanoseconds, ratio: 10}, s.batches)
	measure(row{what: fmt.Sprintf("W2 %d × %d nonces, shuffled", s.scale.chains, s.nonces), unit: nanoseconds, ratio: 8}, s.shuffledChains)
	measure(row{what: fmt.Sprintf("W3 replace %d", s.replaced), unit: nanoseconds, ratio: 15}, s.replace)
	measure(row{what: fmt.Sprintf("W4 full pool of %d, each Add evicts", s.full), unit: nanoseconds, ratio: 80}, func(c contender) float64 {
		if !c.evicts {
			return 0
		}
		return s.evict(c)
	})
	measure(row{what: fmt.Sprintf("W5 best %d of %d", s.best, n), unit: milliseconds, ratio: 80, most: 2e6}, s.read)
	worst := row{what: "W7 worst Add meanwhile", unit: milliseconds, most: 1e6}
	var worsts [][]float64
	measure(row{what: fmt.Sprintf("W6 commit %d of %d", s.block, n), unit: milliseconds, most: 15e6}, func(c contender) float64 {
		total, w := s.commit(c)
		worsts = append(worsts, []float64{w})
		return total
	})
	for i := range contenders {
		var values []float64
		for r := range s.rounds {
			values = append(values, worsts[r*len(contenders)+i][0])
		}
		worst.values = append(worst.values, median(values))
	}
	rows = append(rows, worst)
	measure(row{what: "memory per transaction besides it", unit: bytes, most: 450}, s.memory)
	return append(rows, ours(s, progress)...)
}

// ours returns the rows that only jamq has.
func ours(s *stock, progress func(string)) []row {
	progress("jamq alone")
	var drain, first, usual, million, share []float64
	for range s.rounds {
		d, f := s.drains()
		u, m := s.growth()
		added, recovered := s.raw()
		drain, first, usual, million = append(drain, d), append(first, f), append(usual, u), append(million, m)
		share = append(share, 100*added/recovered)
	}
	add, prepared := s.allocations()
	alone := func(what string, unit unit, value, most float64) row {
		return row{what: what, unit: unit, values: []float64{0, 0, value}, most: most}
	}
	raw := alone("from raw bytes, share of pure recovery", percent, median(share), 0)
	raw.least = 95
	return []row{
		alone(fmt.Sprintf("W5 drain %d into a lease", s.best), milliseconds, median(drain), 2e6),
		alone("W5 first transaction out", nanoseconds, median(first), 10_000),
		alone("allocations per AddPrepared", count, prepared, 1.2),
		alone("allocations per Add", count, add, 0),
		alone(fmt.Sprintf("one Add, %d transactions", s.largest()), nanoseconds, median(usual), 0),
		alone(fmt.Sprintf("one Add, %d transactions", s.million), nanoseconds, median(million), 2*median(usual)),
		raw,
	}
}

// medians measures each contender the given number of times, in turns.
func medians(rounds int, f func(contender) float64) []float64 {
	values := make([][]float64, len(contenders))
	for range rounds {
		for i, c := range contenders {
			values[i] = append(values[i], f(c))
		}
	}
	out := make([]float64, len(contenders))
	for i := range values {
		out[i] = median(values[i])
	}
	return out
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
