package account

import (
	"cmp"
	"math"
	"slices"
)

// assign assigns nonces and prices to jobs. The executor's own noops fill holes,
// and every other job gets a new nonce. A job is returned in later if the
// balance does not cover it, its price limit is below the base fee, or its gas
// is unknown. Later jobs of its group are then left out; all other jobs go on.
func (v *View) assign(c *Rules, jobs []Job) (out []Job, later []Refusal) {
	if v.seen == nil {
		return nil, nil
	}
	next := allocator{next: v.Head.Next, holes: v.Head.Holes}
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
			take(free, &cost)
		}
		var ok bool
		if j.Nonce, ok = next.take(j.Record.own()); ok {
			next.next = max(next.next, j.Nonce+1+j.usesMore(v.Account))
			out = append(out, j)
		}
	}
	// In nonce order, the first signature that fails ends the step without a
	// gap.
	slices.SortStableFunc(out, func(x, y Job) int { return cmp.Compare(x.Nonce, y.Nonce) })
	return out, later
}

// allocator hands out free nonces, each once. It does not change holes in place.
type allocator struct {
	next  uint64
	holes []uint64
}

// take returns the next nonce. Nonces in holes are only for the executor's own
// noops, and these never get new nonces.
func (a *allocator) take(own bool) (uint64, bool) {
	switch {
	case own && len(a.holes) > 0:
		n := a.holes[0]
		a.holes = a.holes[1:]
		return n, true
	case own || a.next == math.MaxUint64: // EIP-2681
		return 0, false
	}
	a.next++
	return a.next - 1, true
}
