package load

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Thresholds above which a resource counts as the bottleneck.
const (
	busy     = 0.9
	crowded  = 0.5
	fellBack = time.Second
)

// delay is the time that a transaction took from sending to two of the tags.
type delay struct {
	sent            time.Time
	pending, latest time.Duration
}

// bound returns the bottleneck in words.
func (f *findings) bound(cpu float64, w *watcher, r *runner) string {
	var by []string
	if cpu > busy*float64(runtime.NumCPU()) {
		by = append(by, "the processors")
	}
	if w.fullShare() > crowded {
		by = append(by, "JAM: its cores accepted no more bundles")
	}
	if f.full > busy {
		by = append(by, "the gas limit of a block")
	}
	if len(by) == 0 && r.overran > fellBack {
		by = append(by, "the sender, which waits for answers")
	}
	if len(by) == 0 {
		by = append(by, f.behind(w.fullShare() > 0))
	}
	return strings.Join(by, ", and ")
}

// behind returns the part that was slower than the configured rate, if any. Its
// sign is that the last transactions took much longer than the first.
// queueWasFull distinguishes a node that JAM delayed from a node that is slow
// itself.
func (f *findings) behind(queueWasFull bool) string {
	first, last := f.drift(func(d delay) time.Duration { return d.latest })
	if last-first < max(fellBack, first/2) {
		return "the requested rate"
	}
	slow := "JAM"
	executedFirst, executedLast := f.drift(func(d delay) time.Duration { return d.pending })
	if !queueWasFull && executedLast-executedFirst > (last-first)/2 {
		slow = "the node's execution"
	}
	return fmt.Sprintf("%s, slower than the rate: the last transactions took %.1fs to latest, the first ones %.1fs", slow, last.Seconds(), first.Seconds())
}

// drift returns the median delay of the first quarter of the transactions, and
// that of the last quarter.
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
	return float64(w.full) / float64(max(w.polls, 1))
}
