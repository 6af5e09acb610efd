package journaltest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/journal"
)

// table is a log in a table of a host's database: a value for each number.
type table struct {
	rows           map[string][]byte // outlive the log
	encode, decode func([]byte) []byte
	max            int

	next   uint64
	closed bool
}

func number(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }

// opened returns the log of a table. It goes on after the last number.
func (l table) opened() *table {
	for row := range l.rows {
		l.next = max(l.next, binary.BigEndian.Uint64([]byte(row))+1)
	}
	return &l
}

func (l *table) write(records [][]byte, replace bool) error {
	switch err := journal.CheckSize(records); {
	case err != nil:
		return err
	case l.closed:
		return journal.ErrClosed
	}
	for _, r := range records {
		if len(r) > l.max {
			return journal.ErrTooLarge
		}
	}
	if replace {
		clear(l.rows)
	}
	for _, r := range records {
		l.rows[number(l.next)] = l.encode(r)
		l.next++
	}
	return nil
}

func (l *table) Append(records ...[]byte) error  { return l.write(records, false) }
func (l *table) Replace(records ...[]byte) error { return l.write(records, true) }

func (l *table) Replay(f func([]byte) error) error {
	if l.closed {
		return journal.ErrClosed
	}
	rows := maps.Clone(l.rows)
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		if err := f(l.decode(rows[row])); err != nil {
			return err
		}
	}
	return nil
}

func (l *table) Close() error { l.closed = true; return nil }

// locked makes a log safe for concurrent use.
type locked struct {
	journal.Journal
	turn chan struct{}
}

func (l locked) Append(records ...[]byte) error {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	return l.Journal.Append(records...)
}

// failures is a tester that notes the failures of a run.
type failures []string

func (f *failures) Helper()                      {}
func (f *failures) Error(args ...any)            { *f = append(*f, fmt.Sprint(args...)) }
func (f *failures) Errorf(s string, args ...any) { *f = append(*f, fmt.Sprintf(s, args...)) }
func (f *failures) Fatal(args ...any)            { f.Error(args...); runtime.Goexit() }

// find runs the tests on a log that a host has written.
func find(change func(*table), open func(table) *table) failures {
	l := table{rows: make(map[string][]byte), encode: bytes.Clone, decode: bytes.Clone, max: journal.MaxRecord}
	change(&l)
	var found failures
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(&found, func() journal.Journal { return locked{open(l), make(chan struct{}, 1)} }, 2<<20)
	}()
	<-ended
	return found
}

// TestFindsFaults: mistakes of a host that lose records are found, and a right log has none.
func TestFindsFaults(t *testing.T) {
	open := table.opened
	require.Empty(t, find(func(*table) {}, open))
	for name, fault := range map[string]func(*table){
		"text": func(l *table) {
			l.encode = func(b []byte) []byte { raw, _ := json.Marshal(string(b)); return raw }
			l.decode = func(b []byte) []byte { var s string; _ = json.Unmarshal(b, &s); return []byte(s) }
		},
		"line": func(l *table) {
			l.encode = func(b []byte) []byte { line, _, _ := strings.Cut(string(b), "\n"); return []byte(line) }
		},
		"C string": func(l *table) {
			l.encode = func(b []byte) []byte { s, _, _ := strings.Cut(string(b), "\x00"); return []byte(s) }
		},
		"trimmed": func(l *table) { l.encode = func(b []byte) []byte { return bytes.TrimSpace(bytes.Clone(b)) } },
		"cut":     func(l *table) { l.encode = func(b []byte) []byte { return bytes.Clone(b[:min(len(b), 1<<16)]) } },
		"small":   func(l *table) { l.max = 1<<16 - 1 },
		"blob":    func(l *table) { l.max = 1 << 20 },
	} {
		require.NotEmpty(t, find(fault, open), name)
	}
	// The number of the next record is not that of the records after a replacement.
	require.NotEmpty(t, find(func(*table) {}, func(l table) *table {
		l.next = uint64(len(l.rows))
		return &l
	}))
	// A log that begins again at each start.
	require.NotEmpty(t, find(func(*table) {}, func(l table) *table { return &l }))
}
