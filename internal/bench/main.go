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
	keep := flag.Bool("record", false, "write the figures to "+releasedFile+", as a release does")
	grower := flag.Int("tree", -1, "measure one tree of statedb's, as the program asks itself to")
	flag.Parse()
	s, states, scale := full, fullStates, "full"
	if *small {
		s, states, scale = quick, quickStates, "quick"
	}
	if *grower >= 0 {
		must(json.NewEncoder(os.Stdout).Encode(states.tree(growers[*grower]())))
		return
	}
	progress := func(what string) { fmt.Fprintln(os.Stderr, what) }
	progress(fmt.Sprintf("%d processors", runtime.GOMAXPROCS(0)))
	halves := map[string]func() table{
		"txpool":  func() table { return run(newStock(s), progress) },
		"statedb": func() table { return table{columns: growerNames, rows: runStates(states, progress)} },
	}
	if *only != "" && halves[*only] == nil {
		fmt.Fprintf(os.Stderr, "bench: -only %s: want txpool or statedb\n", *only)
		os.Exit(2)
	}
	released := readReleased()
	for _, name := range slices.Sorted(maps.Keys(halves)) {
		if *only == "" || *only == name {
			t := halves[name]()
			t.released = released[scale]
			fmt.Println(name)
			fmt.Print(t.String())
			if *keep {
				released.record(scale, t)
			}
		}
	}
	if *keep {
		must(released.write())
	}
}

// run measures all workloads, with the contenders in turns, and takes medians.
func run(s *stock, progress func(string)) table {
	var rows []row
	measure := func(r row, f func(contender) float64) {
		progress(r.what)
		r.values = medians(s.rounds, f)
		rows = append(rows, r)
	}
	s.arrivals(measure)
	measure(row{what: fmt.Sprintf("W5 best %d of %d", s.best, s.largest()), unit: milliseconds, ratio: 80, bare: 2}, s.read)
	measure(row{what: fmt.Sprintf("W5 session of %d", s.best), unit: milliseconds, bare: 2}, s.session)
	measure(row{what: fmt.Sprintf("W5 session of %d by score", s.best), unit: milliseconds, cosmos: 1}, s.sessionByScore)
	measure(row{what: fmt.Sprintf("W5 session of all %d", s.largest()), unit: milliseconds, ratio: 3, bare: 3}, s.sessionOfAll)
	measure(row{what: "W5 first transaction out", unit: nanoseconds, bare: 2}, s.firstOut)
	var worsts []float64
	measure(row{what: fmt.Sprintf("W6 commit %d of %d", s.block, s.largest()), unit: milliseconds, ratio: 40, bare: 2}, func(c contender) float64 {
		total, worst := s.commit(c)
		worsts = append(worsts, worst)
		return total
	})
	worst := row{what: "W7 worst Add meanwhile", unit: milliseconds, bare: 1}
	for i := range contenders {
		var values []float64
		for r := range s.rounds {
			values = append(values, worsts[r*len(contenders)+i])
		}
		worst.values = append(worst.values, median(values))
	}
	rows = append(rows, worst)
	measure(row{what: "memory per transaction besides it", unit: bytes, bare: 2}, s.memory)
	return table{columns: columns(), rows: append(rows, s.ours(progress)...)}
}

// arrivals measures W1 to W4.
func (s *stock) arrivals(measure func(row, func(contender) float64)) {
	n := s.largest()
	for _, senders := range s.senders {
		r := row{what: fmt.Sprintf("W1 one Add, %d senders", senders), unit: nanoseconds, bare: 2}
		if senders == n {
			r.ratio = 300
		}
		measure(r, func(c contender) float64 { return s.one(c, senders) })
	}
	measure(row{what: fmt.Sprintf("W1 batches of %d, %d senders", s.batch, n), unit: nanoseconds, ratio: 10, bare: 2}, s.batches)
	measure(row{what: fmt.Sprintf("W2 %d × %d nonces, shuffled", s.scale.chains, s.nonces), unit: nanoseconds, bare: 2}, s.shuffledChains)
	measure(row{what: fmt.Sprintf("W3 replace %d", s.replaced), unit: nanoseconds, bare: 2}, s.replace)
	measure(row{what: fmt.Sprintf("W4 full pool of %d, each Add evicts", s.full), unit: nanoseconds, ratio: 80, bare: 2}, func(c contender) float64 {
		if !c.evicts {
			return 0
		}
		return s.evict(c)
	})
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
