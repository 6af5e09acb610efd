package store

import (
	"bytes"
	"slices"
	"sync"

	"github.com/google/btree"

	"github.com/jamq/jamq/journal"
	"github.com/jamq/jamq/statedb"
)

// Memory is a data directory in memory, for tests. It outlives the node that uses it,
// so that a test can restart the node.
type Memory struct {
	log    journal.Memory
	ledger *Keys
	states *Keys
}

// NewMemory returns an empty directory.
func NewMemory() *Memory { return &Memory{ledger: NewKeys(), states: NewKeys()} }

// Open returns the directory. Only one node can use it at a time.
func (m *Memory) Open() *Store { return &Store{Log: &m.log, Ledger: m.ledger, States: m.states} }

// Keys is an ordered key-value store in memory, for tests. It implements
// ledger.Disk and statedb.Disk and is safe for concurrent use.
type Keys struct {
	mu   sync.RWMutex
	tree *btree.BTreeG[statedb.Record]
	safe *btree.BTreeG[statedb.Record] // at the last Sync
}

// NewKeys returns an empty store.
func NewKeys() *Keys {
	tree := btree.NewG(16, func(a, b statedb.Record) bool { return bytes.Compare(a.Key, b.Key) < 0 })
	return &Keys{tree: tree, safe: tree.Clone()}
}

// Crash discards everything that was written after the last Sync, as a crash of the
// machine does.
func (k *Keys) Crash() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tree = k.safe.Clone()
}

// Get implements ledger.Disk.
func (k *Keys) Get(key []byte) ([]byte, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	r, ok := k.tree.Get(statedb.Record{Key: key})
	if !ok {
		return nil, nil
	}
	return bytes.Clone(r.Value), nil
}

// Write implements ledger.Disk and statedb.Disk.
func (k *Keys) Write(records []statedb.Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range records {
		if r.Value == nil {
			k.tree.Delete(r)
		} else {
			k.tree.ReplaceOrInsert(statedb.Record{Key: slices.Clone(r.Key), Value: slices.Clone(r.Value)})
		}
	}
	return nil
}

// Sync implements ledger.Disk.
func (k *Keys) Sync() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.safe = k.tree.Clone()
	return nil
}

// Scan implements ledger.Disk.
func (k *Keys) Scan(from, to []byte, f func(key []byte) error) (err error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	k.tree.AscendRange(statedb.Record{Key: from}, statedb.Record{Key: to}, func(r statedb.Record) bool {
		err = f(r.Key)
		return err == nil
	})
	return err
}

// Read implements statedb.Disk.
func (k *Keys) Read(f func(key, value []byte) error) (err error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	k.tree.Ascend(func(r statedb.Record) bool {
		err = f(r.Key, r.Value)
		return err == nil
	})
	return err
}
