package minheap

import (
	"testing"

	"pgregory.net/rapid"
)

// The heap agrees with a plain map whatever is done to it.
func TestAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h Heap[int, int]
		entries := make([]Entry[int, int], 16)
		want := map[int]int{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			i := rapid.IntRange(0, len(entries)-1).Draw(t, "entry")
			e := &entries[i]
			e.Value = i
			if rapid.Bool().Draw(t, "remove") {
				h.Remove(e)
				delete(want, i)
			} else {
				key := rapid.IntRange(0, 20).Draw(t, "key")
				h.Set(e, key)
				want[i] = key
			}
			check(t, &h, entries, want)
		}
		for h.Len() > 0 {
			e := h.Min()
			h.Remove(e)
			delete(want, e.Value)
			check(t, &h, entries, want)
		}
	})
}

func check(t *rapid.T, h *Heap[int, int], entries []Entry[int, int], want map[int]int) {
	if h.Len() != len(want) {
		t.Fatalf("%d entries, want %d", h.Len(), len(want))
	}
	for i := range entries {
		key, in := want[i]
		if entries[i].Queued() != in || in && entries[i].Key() != key {
			t.Fatalf("entry %d: queued %v key %d, want %v %d", i, entries[i].Queued(), entries[i].Key(), in, key)
		}
		if in && h.Min().Key() > key {
			t.Fatalf("least is %d, but there is %d", h.Min().Key(), key)
		}
	}
	if len(want) == 0 && h.Min() != nil {
		t.Fatal("an empty heap has no least")
	}
}
