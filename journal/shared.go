package journal

import (
	"bytes"
	"context"
	"sync"
)

// Shared is a journal in memory that several members have open. One of them is the
// leader. Tests use it to simulate the failure of a machine, in place of a journal that
// several machines share. The zero value is empty and has no members. Its methods are
// safe for concurrent use.
type Shared struct {
	mu      sync.Mutex
	records [][]byte // all records that were ever written
	// replaced contains the calls of Replace, in order.
	replaced []replacement
	leader   *Member
	cuts     []int         // number of records after each call of Lose
	promoted bool          // Lose was called since the last write
	changed  chan struct{} // closed when the fields above change; nil if no member waits
}

// replacement is one call of Replace: its records, from position first up to position
// end, have replaced all records before them.
type replacement struct{ first, end int }

// Join returns a new member of the journal, for one process. The member has read no records yet.
func (s *Shared) Join() *Member { return &Member{shared: s} }

// Depose makes the leading member lose its lead, as happens in a real journal if
// the leader has not responded for some time. The member notices it only when it
// writes.
func (s *Shared) Depose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leader = nil
	s.tell()
}

// Lose removes the newest n records, but none before the end of the last
// replacement. This has the same effect as replacing a database by a standby that
// does not have these records. The leading member loses its lead.
func (s *Shared) Lose(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	least := 0
	if k := len(s.replaced); k > 0 {
		least = s.replaced[k-1].end
	}
	s.records = s.records[:max(least, len(s.records)-n)]
	s.leader, s.promoted = nil, true
	s.cuts = append(s.cuts, len(s.records))
	s.tell()
}

// tell wakes the members that wait for a change. The caller holds s.mu.
func (s *Shared) tell() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// first returns the position of the first record. The caller holds s.mu.
func (s *Shared) first() int {
	if n := len(s.replaced); n > 0 {
		return s.replaced[n-1].first
	}
	return 0
}

// Member is the handle with which one process uses a shared journal. It implements
// [Journal] and builder.SharedLog. Its methods are safe for concurrent use.
type Member struct {
	shared *Shared

	// shared.mu guards the fields below.
	at     int // position of the next record to read
	passed int // number of calls of Replace before that position
	cuts   int // number of calls of Shared.Lose that the member has seen
	closed bool
	// promoted is true if records may have been lost before the member led.
	promoted bool
}

// Append implements [Journal]. Errors wrap ErrTooLarge, ErrClosed or ErrFenced.
func (m *Member) Append(records ...[]byte) error { return m.write(records, false) }

// Replace implements [Journal]. Errors are those of Append.
func (m *Member) Replace(records ...[]byte) error { return m.write(records, true) }

func (m *Member) write(records [][]byte, replace bool) error {
	if err := CheckSize(records); err != nil {
		return err
	}
	s := m.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case m.closed:
		return ErrClosed
	case s.leader != m:
		return ErrFenced
	}
	s.promoted = false
	first := len(s.records)
	for _, r := range records {
		s.records = append(s.records, bytes.Clone(r))
	}
	if replace {
		s.replaced = append(s.replaced, replacement{first, len(s.records)})
	}
	m.at, m.passed = len(s.records), len(s.replaced)
	s.tell()
	return nil
}

// Replay implements [Journal]. It returns ErrClosed after Close, or the error of f.
func (m *Member) Replay(f func(record []byte) error) error {
	s := m.shared
	s.mu.Lock()
	records, closed := s.records[s.first():], m.closed
	m.at, m.passed, m.cuts = len(s.records), len(s.replaced), len(s.cuts)
	s.mu.Unlock()
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

// Lead waits until this member is the leader. That happens when no other member leads and
// this member has read all records. In the meantime Lead calls record with each record that
// the leader appends, and replaced when the leader has replaced the records by a checkpoint;
// see builder.SharedLog. The error is one of these:
//
//   - ErrClosed, wrapped
//   - ErrLost, wrapped, if the member has read records that Lose has removed
//   - the error that record or replaced has returned, or the error of ctx
func (m *Member) Lead(ctx context.Context, record func([]byte) error, replaced func() error) error {
	for {
		read, wait, err := m.next(record, replaced)
		switch {
		case err != nil:
			return err
		case wait != nil:
			select {
			case <-wait:
			case <-ctx.Done():
				return ctx.Err()
			}
		case read == nil:
			return nil
		default:
			if err := read(); err != nil {
				return err
			}
		}
	}
}

// next returns a function that passes on the next record or replacement.
func (m *Member) next(record func([]byte) error, replaced func() error) (read func() error, wait <-chan struct{}, err error) {
	s := m.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; m.cuts < len(s.cuts); m.cuts++ {
		if m.at > s.cuts[m.cuts] {
			return nil, nil, ErrLost
		}
	}
	switch {
	case m.closed:
		return nil, nil, ErrClosed
	case m.passed < len(s.replaced) && s.replaced[m.passed].first == m.at:
		m.at = s.replaced[m.passed].end
		m.passed++
		return replaced, nil, nil
	case m.at < len(s.records):
		r := s.records[m.at]
		m.at++
		return func() error { return record(r) }, nil, nil
	case s.leader == m:
		return nil, nil, nil
	case s.leader == nil:
		// No other member leads, and this member has read all records, so it becomes the
		// leader.
		s.leader, m.promoted = m, s.promoted
		return nil, nil, nil
	}
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	// Another member leads, and there are no more records to pass on. Wait until the channel
	// is closed, because something has changed then.
	return nil, s.changed, nil
}

// Promoted reports whether Shared.Lose was called between the last write and the
// moment when this member became the leader, so that records may have been lost.
func (m *Member) Promoted() bool {
	m.shared.mu.Lock()
	defer m.shared.mu.Unlock()
	return m.promoted
}

// Close implements [Journal]. If the member is the leader, another member can
// become the leader next. It always returns nil.
func (m *Member) Close() error {
	s := m.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.closed = true; s.leader == m {
		s.leader = nil
	}
	s.tell()
	return nil
}
