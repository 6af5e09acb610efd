package load

import (
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// findings is the outcome of the load.
type findings struct {
	final, twice, failed       int
	missing                    []common.Hash // sent but not final
	lost                       int           // missing and unknown to the node
	span                       time.Duration // first send to last finalization
	pending, latest, finalized []time.Duration
	delays                     []delay
	full                       float64 // gas used / gas limit
	blocks                     int
	unread                     int // blocks whose receipts the node has pruned
}

// report reads the finalized chain and prints the findings.
func (r *runner) report(ctx context.Context, w *watcher, began time.Time, sending, used time.Duration) error {
	blocks, err := w.final(ctx)
	if err != nil {
		return err
	}
	f := r.judge(blocks, began)
	if f.failed, f.unread, err = r.failures(ctx, blocks); err != nil {
		return err
	}
	if f.lost, err = r.unknown(ctx, f.missing); err != nil {
		return err
	}
	status, err := r.status(ctx)
	if err != nil {
		return err
	}
	cpu := used.Seconds() / sending.Seconds()
	fmt.Fprintf(r.out, "\nsent      %d in %.1f s: %.0f per second; %d refused; at most %.1f s behind\n",
		len(r.sent), sending.Seconds(), perSecond(len(r.sent), sending), total(r.refused), r.late.Seconds())
	for _, reason := range slices.Sorted(maps.Keys(r.refused)) {
		fmt.Fprintf(r.out, "  refused %d: %s\n", r.refused[reason], reason)
	}
	fmt.Fprintf(r.out, "final     %d in %.1f s: %.0f per second, in %d blocks, %.0f%% of their gas; %d reverted\n",
		f.final, f.span.Seconds(), perSecond(f.final, f.span), f.blocks, 100*f.full, f.failed)
	if f.unread > 0 {
		fmt.Fprintf(r.out, "pruned    %d of these blocks before their receipts were read: how many of their transactions reverted is unknown\n", f.unread)
	}
	f.histogram(r.out)
	fmt.Fprintf(r.out, "bounded by %s (%.2f of %d cores, queue full %.0f%% of the time, blocks %.0f%% full)\n",
		f.bound(cpu, w, r), cpu, runtime.NumCPU(), 100*w.fullShare(), 100*f.full)
	if waiting := len(f.missing) - f.lost; waiting > 0 {
		fmt.Fprintf(r.out, "waiting   %d are not final yet; the node still has them\n", waiting)
	}
	fmt.Fprintf(r.out, "oracle    %d lost; %d executed twice; JAM accumulated %d blocks, %d again, %d out of order\n",
		f.lost, f.twice, status.Service.Accumulated, len(status.Service.Duplicates), len(status.Service.Gaps))
	if f.lost+f.twice+len(status.Service.Duplicates)+len(status.Service.Gaps) > 0 {
		return fmt.Errorf("%w: %d lost, %d executed twice; blocks that JAM accumulated again: %v, out of order: %v", ErrUnsafe, f.lost, f.twice, status.Service.Duplicates, status.Service.Gaps)
	}
	return nil
}

// judge counts how often each transaction was executed, in finalized blocks
// only, and how long each took.
func (r *runner) judge(blocks []*seen, began time.Time) *findings {
	f := &findings{}
	times := make(map[common.Hash]int, len(r.sent))
	var gas, limit uint64
	for _, b := range blocks {
		ours := false
		for _, tx := range b.txs {
			at, known := r.sent[tx]
			if !known {
				continue
			}
			ours = true
			if times[tx]++; times[tx] > 1 {
				f.twice++
				continue
			}
			f.final++
			if !b.pending.IsZero() && !b.latest.IsZero() {
				f.delays = append(f.delays, delay{sent: at, pending: b.pending.Sub(at), latest: b.latest.Sub(at)})
			}
			for _, m := range []struct {
				into *[]time.Duration
				when time.Time
			}{{&f.pending, b.pending}, {&f.latest, b.latest}, {&f.finalized, b.finalized}} {
				if !m.when.IsZero() {
					*m.into = append(*m.into, m.when.Sub(at))
				}
			}
		}
		if ours {
			f.blocks++
			gas, limit = gas+b.gasUsed, limit+b.gasLimit
			if !b.finalized.IsZero() {
				f.span = max(f.span, b.finalized.Sub(began))
			}
		}
	}
	for tx := range r.sent {
		if times[tx] == 0 {
			f.missing = append(f.missing, tx)
		}
	}
	if limit > 0 {
		f.full = float64(gas) / float64(limit)
	}
	return f
}

// perSecond returns a rate; 0 if d is not positive.
func perSecond(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// unknown counts the transactions that are neither in a block nor in the pool.
func (r *runner) unknown(ctx context.Context, txs []common.Hash) (n int, err error) {
	for part := range slices.Chunk(txs, maxBatch) {
		batch := make([]rpc.BatchElem, len(part))
		for i, tx := range part {
			batch[i] = rpc.BatchElem{Method: "eth_getTransactionByHash", Args: []any{tx}, Result: new(*struct{})}
		}
		if err := r.raw.BatchCallContext(ctx, batch); err != nil {
			return 0, err
		}
		for i := range batch {
			if batch[i].Error != nil {
				return 0, batch[i].Error
			}
			if *batch[i].Result.(**struct{}) == nil {
				n++
			}
		}
	}
	return n, nil
}

// failures counts transactions that were executed and reverted, and the blocks whose receipts
// the node has pruned.
func (r *runner) failures(ctx context.Context, blocks []*seen) (n, unread int, err error) {
	for _, b := range blocks {
		var receipts types.Receipts
		err := r.raw.CallContext(ctx, &receipts, "eth_getBlockReceipts", b.hash)
		switch {
		case pruned(err):
			unread++
		case err != nil:
			return 0, 0, err
		}
		for _, receipt := range receipts {
			if receipt.Status != types.ReceiptStatusSuccessful {
				n++
			}
		}
	}
	return n, unread, nil
}

// histogram prints the distribution of the time from sending to each tag.
func (f *findings) histogram(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "from sending to\t")
	steps := []time.Duration{100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}
	for _, s := range steps {
		fmt.Fprintf(w, "≤ %v\t", s)
	}
	fmt.Fprint(w, "more\tp50\tp99\tmax\t\n")
	for _, row := range []struct {
		tag  string
		took []time.Duration
	}{{"pending", f.pending}, {"latest", f.latest}, {"finalized", f.finalized}} {
		slices.Sort(row.took)
		fmt.Fprintf(w, "%s\t", row.tag)
		below := 0
		for _, s := range steps {
			upTo, _ := slices.BinarySearch(row.took, s+1)
			fmt.Fprintf(w, "%d\t", upTo-below)
			below = upTo
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t\n", len(row.took)-below, at(row.took, 0.5), at(row.took, 0.99), at(row.took, 1))
	}
	_ = w.Flush() // the caller owns out and its errors
}

// at returns a quantile of sorted durations.
func at(sorted []time.Duration, q float64) string {
	if len(sorted) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2fs", sorted[int(q*float64(len(sorted)-1))].Seconds())
}

func total(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}
