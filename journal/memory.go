package journal

import (
	"bytes"
	"sync"
)

// Memory is a journal in memory, for tests and for hosts that need no durability. The zero value is
// empty and ready to use. Its methods are safe for concurrent use.
type Memory struct {
	mu      sync.Mutex
	records [][]byte
	closed  bool
}

// Append implements [Journal]. Errors wrap ErrTooLarge or ErrClosed.
func (m *Memory) Append(records ...[]byte) error {
	return m.write(records, false)
}

// Replace implements [Journal]. Errors are those of Append.
func (m *Memory) Replace(records ...[]byte) error { return m.write(records, true) }

func (m *Memory) write(records [][]byte, replace bool) error {
	if err := CheckSize(records); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	if replace {
		m.records = nil // a running Replay keeps its slice
	}
	for _, r := range records {
		m.records = append(m.records, bytes.Clone(r))
	}
	return nil
}

// Replay implements [Journal]. It returns ErrClosed after Close, or the error
// of f.
func (m *Memory) Replay(f func(record []byte) error) error {
	m.mu.Lock()
	records, closed := m.records, m.closed
	m.mu.Unlock()
	if closed {
		return ErrClosed
	}
	for _, r := range records {
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

// Reopen opens a closed journal again with all its records, to simulate a restart
// in tests.
func (m *Memory) Reopen() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = false
}

// Close implements [Journal]. It always returns nil.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}
