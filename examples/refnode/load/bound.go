package load

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Shares above which something is what bounds.
const (
	busy     = 0.9
	crowded  = 0.5
	fellBack = time.Second
)

// delay is how long a transaction, sent at a time, took to two of the tags.
type delay struct {
	sent            time.Time
	pending, latest time.Duration
}

// bound says what kept it from being quicker.
func (f *findings) bound(cpu float64, w *watcher, r *runner) string {
	var by []string
	if cpu > busy*float64(runtime.NumCPU()) {
		by = append(by, "the processors")
	}
	if w.fullShare() > crowded {
		by = append(by, "JAM: its cores took no more bundles")
	}
	if f.full > busy {
		by = append(by, "the gas of a block")
	}
	if len(by) == 0 && r.overran > fellBack {
		by = append(by, "the sender, which waits for answers")
	}
	if len(by) == 0 {
		by = append(by, f.behind(w.fullShare() > 0))
	}
	return strings.Join(by, ", and ")
}

// behind says what did not keep up with the rate, if anything: then what was sent last took much longer than what was sent first. queueWasFull
// tells a node that waited for JAM from one that is slow itself.
func (f *findings) behind(queueWasFull bool) string {
	first, last := f.drift(func(d delay) time.Duration { return d.latest })
	if last-first < max(fellBack, first/2) {
		return "the rate that was asked for"
	}
	who := "JAM"
	executedFirst, executedLast := f.drift(func(d delay) time.Duration { return d.pending })
	if !queueWasFull && executedLast-executedFirst > (last-first)/2 {
		who = "the node's execution"
	}
	return fmt.Sprintf("%s, slower than the rate: what was sent last took %.1fs to latest, what was sent first %.1fs", who, last.Seconds(), first.Seconds())
}

// drift returns the median of the quarter that was sent first, and of the one that was sent last.
func (f *findings) drift(of func(delay) time.Duration) (first, last time.Duration) {
	slices.SortFunc(f.delays, func(a, b delay) int { return a.sent.Compare(b.sent) })
	quarter := (len(f.delays) + 3) / 4
	return median(f.delays[:quarter], of), median(f.delays[len(f.delays)-quarter:], of)
}

func median(delays []delay, of func(delay) time.Duration) time.Duration {
	if len(delays) == 0 {
		return 0
	}
	all := make([]time.Duration, len(delays))
	for i, d := range delays {
		all[i] = of(d)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func (w *watcher) fullShare() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return float64(w.full) / float64(max(w.looks, 1))
}
