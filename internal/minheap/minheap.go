// Package minheap is a priority queue whose entries can be moved and removed,
// for deadlines that change.
//
// An [Entry] is embedded in the value that it stands for, so nothing is
// allocated or searched. Finding the minimum takes constant time, everything
// else logarithmic time.
package minheap

import "cmp"

// Entry is an element of a heap. The zero value is in no heap.
type Entry[K cmp.Ordered, V any] struct {
	// Value is the value that the entry stands for. It is set once.
	Value V
	key   K
	index int // from 1; 0 means in no heap
}

// Queued reports whether the entry is in a heap.
func (e *Entry[K, V]) Queued() bool { return e.index != 0 }

// Key returns the key of an entry that is in a heap.
func (e *Entry[K, V]) Key() K { return e.key }

// Heap has entries ordered by key. The zero value is empty. The order of equal
// keys is not defined. It is not safe for concurrent use.
type Heap[K cmp.Ordered, V any] struct {
	entries []*Entry[K, V]
}

// Len returns the number of entries.
func (h *Heap[K, V]) Len() int { return len(h.entries) }

// Min returns the entry with the smallest key, or nil.
func (h *Heap[K, V]) Min() *Entry[K, V] {
	if len(h.entries) == 0 {
		return nil
	}
	return h.entries[0]
}

// Set adds the entry with a key, or moves it if it is in the heap. It must not
// be in another heap.
func (h *Heap[K, V]) Set(e *Entry[K, V], key K) {
	if e.index == 0 {
		h.entries = append(h.entries, e)
		e.index = len(h.entries)
	}
	e.key = key
	h.down(h.up(e.index - 1))
}

// Remove removes the entry, if it is in the heap.
func (h *Heap[K, V]) Remove(e *Entry[K, V]) {
	if e.index == 0 {
		return
	}
	i, last := e.index-1, len(h.entries)-1
	h.swap(i, last)
	h.entries[last] = nil
	h.entries = h.entries[:last]
	e.index = 0
	if i < last {
		h.down(h.up(i))
	}
}

func (h *Heap[K, V]) swap(i, j int) {
	h.entries[i], h.entries[j] = h.entries[j], h.entries[i]
	h.entries[i].index, h.entries[j].index = i+1, j+1
}

func (h *Heap[K, V]) up(i int) int {
	for i > 0 {
		parent := (i - 1) / 2
		if h.entries[parent].key <= h.entries[i].key {
			break
		}
		h.swap(i, parent)
		i = parent
	}
	return i
}

func (h *Heap[K, V]) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.entries); child++ {
			if h.entries[child].key < h.entries[least].key {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}
