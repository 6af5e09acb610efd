package account

import (
	"fmt"
	"math"
	"slices"
)

// fill returns a step that adds noops for the holes that no pending noop takes.
func (v *View) fill(pending []Record, assigned []Job) Batch {
	b := v.Batch()
	want := len(v.Head.Holes)
	for _, j := range assigned {
		if slices.Contains(v.Head.Holes, j.Nonce) {
			want--
		}
	}
	for i := range pending {
		if pending[i].own() {
			want--
		}
	}
	for i := range max(0, want) {
		b.Add = append(b.Add, Request{Key: fmt.Sprintf("%snoop/%d/%d", ownKeys, v.Head.Version, i), Noop: true, Priority: math.MaxInt32})
	}
	return b
}
