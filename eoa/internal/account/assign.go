package account

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Assign gives nonces and prices to the jobs that Choose selected, after their gas
// has been estimated. It returns the jobs to sign, in nonce order. The returned
// batch contains the rest of the decision:
//
//   - Requests in reverting fail, because the node has tried them and they
//     reverted.
//   - Requests that cannot be paid for, or whose gas is unknown, are delayed.
//   - For each gap (a nonce that no known transaction has), a no-op request is
//     added that will fill it.
func (v *View) Assign(c *Rules, now time.Time, jobs []Job, reverting []Refusal, pending []Record) ([]Job, Batch) {
	refused := v.refuse(c, now, reverting)
	assigned, later := v.assign(c, jobs)
	delayed := v.postpone(c, now, later)
	return assigned, *Join(Join(&refused, delayed), v.fill(pending, assigned))
}

// assign gives nonces and prices to jobs; later has the jobs that must wait.
func (v *View) assign(c *Rules, jobs []Job) (out []Job, later []Refusal) {
	if v.LastLook == nil {
		return nil, nil
	}
	next := allocator{next: v.Head.Next, gaps: v.Head.Gaps}
	free, held := v.free(), map[string]bool{}
	for _, j := range jobs {
		group := j.Record.Group
		// An earlier member of this group is delayed. The later members wait too, because a
		// group is executed in order.
		if group != "" && held[group] {
			continue
		}
		// The job must wait if the account cannot pay for it, if its price limit is below the
		// base fee, or if its gas is unknown.
		if why := v.afford(c, &j, free); why != "" {
			held[group] = true
			later = append(later, Refusal{j.Record, why})
			continue
		}
		if free != nil {
			cost := j.cost()
			deduct(free, &cost)
		}
		var ok bool
		if j.Nonce, ok = next.nonce(j.Record.madeByExecutor()); ok {
			next.next = max(next.next, j.Nonce+1+j.usesMore(v.Account))
			out = append(out, j)
		}
	}
	// Sign in the order of nonces. If a signature fails, the transactions signed before it
	// then have no gap between their nonces.
	slices.SortStableFunc(out, func(x, y Job) int { return cmp.Compare(x.Nonce, y.Nonce) })
	return out, later
}

// allocator hands out free nonces, each once.
type allocator struct {
	next uint64
	gaps []uint64
}

// nonce returns the next free nonce, or false if there is none.
func (a *allocator) nonce(own bool) (uint64, bool) {
	// An unknown transaction may still use a nonce from a gap. Only a no-op that was made to
	// fill the gap (own) may therefore get such a nonce, never a user's request.
	switch {
	case own && len(a.gaps) > 0:
		n := a.gaps[0]
		a.gaps = a.gaps[1:]
		return n, true
	case own || a.next == math.MaxUint64: // EIP-2681
		return 0, false
	}
	a.next++
	return a.next - 1, true
}

// fill adds a no-op request for each gap that has none yet.
func (v *View) fill(pending []Record, assigned []Job) Batch {
	b := v.Batch()
	// The chain executes no transaction behind a gap, so each gap needs a no-op.
	want := len(v.Head.Gaps)
	// This step may already have assigned a no-op to the gap.
	for _, j := range assigned {
		if slices.Contains(v.Head.Gaps, j.Nonce) {
			want--
		}
	}
	// A no-op from an earlier step may still be pending.
	for i := range pending {
		if pending[i].madeByExecutor() {
			want--
		}
	}
	for i := range max(0, want) {
		b.Add = append(b.Add, Request{Key: fmt.Sprintf("%snoop/%d/%d", ownKeys, v.Head.Version, i), Noop: true, Priority: math.MaxInt32})
	}
	return b
}
