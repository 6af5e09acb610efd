package memstore

import (
	"bytes"
	"context"
	"sync"

	"github.com/google/btree"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/kvstore"
)

// New returns an empty store. It is safe for concurrent use.
func New() eoa.Store { return kvstore.New(NewKV()) }

// kv is an ordered map in memory.
type kv struct {
	mu   sync.RWMutex
	tree *btree.BTreeG[kvstore.Entry]
}

// NewKV returns an empty ordered map in memory. It is safe for concurrent use.
func NewKV() kvstore.KV {
	const degree = 32
	return &kv{tree: btree.NewG(degree, func(x, y kvstore.Entry) bool { return bytes.Compare(x.Key, y.Key) < 0 })}
}

// Get implements kvstore.KV.
func (m *kv) Get(_ context.Context, keys ...[]byte) ([][]byte, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make([][]byte, len(keys))
	for i, key := range keys {
		e, _ := m.tree.Get(kvstore.Entry{Key: key})
		out[i] = bytes.Clone(e.Value)
	}
	return out, nil
}

// Scan implements kvstore.KV. It works on a snapshot of the map, so f may call
// other methods.
func (m *kv) Scan(_ context.Context, from, to []byte, limit int, f func(key, value []byte) bool) error {
	m.mu.Lock()
	tree := m.tree.Clone()
	m.mu.Unlock()
	tree.AscendRange(kvstore.Entry{Key: from}, kvstore.Entry{Key: to}, func(e kvstore.Entry) bool {
		limit--
		return f(e.Key, e.Value) && limit > 0
	})
	return nil
}

// Write implements kvstore.KV.
func (m *kv) Write(_ context.Context, entries []kvstore.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range entries {
		e = kvstore.Entry{Key: bytes.Clone(e.Key), Value: bytes.Clone(e.Value)}
		if e.Value == nil {
			m.tree.Delete(e)
		} else {
			m.tree.ReplaceOrInsert(e)
		}
	}
	return nil
}
