package account

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Assign gives nonces and prices to chosen jobs, and returns those to be signed, in
// nonce order. The batch fails the requests that would revert, delays those that
// cannot be paid or estimated, and adds noops for the nonces without a known
// transaction.
func (v *View) Assign(c *Rules, now time.Time, jobs []Job, reverting []Refusal, pending []Record) ([]Job, Batch) {
	refused := v.refuse(c, now, reverting)
	assigned, later := v.assign(c, jobs)
	delayed := v.postpone(c, now, later)
	return assigned, *Join(Join(&refused, delayed), v.fill(pending, assigned))
}

// assign gives nonces and prices to jobs. The executor's own requests fill gaps, and every
// other job gets a new nonce. Jobs that cannot be sent now are returned in later: the balance
// does not cover them, their price limit is below the base fee, or their gas is unknown.
// Later members of their groups wait with them.
func (v *View) assign(c *Rules, jobs []Job) (out []Job, later []Refusal) {
	if v.LastLook == nil {
		return nil, nil
	}
	next := allocator{next: v.Head.Next, gaps: v.Head.Gaps}
	free, held := v.free(), map[string]bool{}
	for _, j := range jobs {
		group := j.Record.Group
		if group != "" && held[group] {
			continue
		}
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
	// In nonce order, the first signature that fails ends the step without a
	// gap.
	slices.SortStableFunc(out, func(x, y Job) int { return cmp.Compare(x.Nonce, y.Nonce) })
	return out, later
}

// allocator hands out free nonces, each once.
type allocator struct {
	next uint64
	gaps []uint64
}

// nonce returns the next free nonce. The executor's own requests get those in gaps, and no
// other ones. All other requests get new nonces.
func (a *allocator) nonce(own bool) (uint64, bool) {
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

// fill returns a batch that adds a request which does nothing for each gap, because the chain
// executes no transaction behind a gap. Gaps for which such a request is pending or was
// assigned just now are left out.
func (v *View) fill(pending []Record, assigned []Job) Batch {
	b := v.Batch()
	want := len(v.Head.Gaps)
	for _, j := range assigned {
		if slices.Contains(v.Head.Gaps, j.Nonce) {
			want--
		}
	}
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
