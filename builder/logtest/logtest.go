package logtest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jamq/jamq/submit/journal"
)

// Run tests a journal. The first call of open must return an empty journal. Run
// calls open again after Close; the journal must then have its records.
func Run(t *testing.T, open func() journal.Journal) {
	t.Helper()
	j := open()
	defer func() { _ = j.Close() }()
	want(t, j)
	must(t, j.Append())
	must(t, j.Append([]byte("one"), nil))
	must(t, j.Append([]byte("three")))
	want(t, j, "one", "", "three")
	if err := j.Append([]byte("x"), make([]byte, journal.MaxRecord+1)); !errors.Is(err, journal.ErrTooLarge) {
		t.Errorf("a record that is too large: %v, want ErrTooLarge", err)
	}
	want(t, j, "one", "", "three")
	if err := j.Replace([]byte("x"), make([]byte, journal.MaxRecord+1)); !errors.Is(err, journal.ErrTooLarge) {
		t.Errorf("a replacement that is too large: %v, want ErrTooLarge", err)
	}
	want(t, j, "one", "", "three")
	replays(t, j)
	must(t, j.Replace([]byte("four"), []byte("five")))
	want(t, j, "four", "five")
	must(t, j.Append([]byte("six")))
	want(t, j, "four", "five", "six")
	j = again(t, j, open)
	want(t, j, "four", "five", "six")
	must(t, j.Replace())
	want(t, j)
	j = again(t, j, open)
	want(t, j)
	concurrent(t, j)
	closed(t, j)
}

// again closes the journal and opens it again.
func again(t *testing.T, j journal.Journal, open func() journal.Journal) journal.Journal {
	t.Helper()
	must(t, j.Close())
	must(t, j.Close())
	return open()
}

// replays tests Replay with a callback that fails and with one that appends.
func replays(t *testing.T, j journal.Journal) {
	t.Helper()
	stop := errors.New("stop")
	calls := 0
	if err := j.Replay(func([]byte) error { calls++; return stop }); !errors.Is(err, stop) || calls != 1 {
		t.Errorf("replay ended with %v after %d records, want the func's error after the first", err, calls)
	}
	calls = 0
	must(t, j.Replay(func([]byte) error { calls++; return j.Append([]byte("meanwhile")) }))
	if calls != 3 {
		t.Errorf("replay showed %d records, want the 3 that were there when it began", calls)
	}
}

// concurrent tests that concurrent appends are stored whole, and in order for
// each writer.
func concurrent(t *testing.T, j journal.Journal) {
	t.Helper()
	const writers, each = 8, 20
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				if err := j.Append(fmt.Appendf(nil, "%d a %d", w, i), fmt.Appendf(nil, "%d b %d", w, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	var next [writers]int
	var before string
	must(t, j.Replay(func(record []byte) error {
		var w, i int
		var part string
		if _, err := fmt.Sscanf(string(record), "%d %s %d", &w, &part, &i); err != nil {
			return err
		}
		switch {
		case i != next[w]:
			t.Errorf("record %q, want number %d", record, next[w])
		case part == "b" && before != fmt.Sprintf("%d a %d", w, i):
			t.Errorf("record %q follows %q: appended together, they belong together", record, before)
		case part == "b":
			next[w]++
		}
		before = string(record)
		return nil
	}))
	for w, n := range next {
		if n != each {
			t.Errorf("writer %d has %d pairs, want %d", w, n, each)
		}
	}
}

// closed tests that all methods return ErrClosed after Close.
func closed(t *testing.T, j journal.Journal) {
	t.Helper()
	must(t, j.Close())
	must(t, j.Close())
	for name, err := range map[string]error{
		"Append": j.Append([]byte("x")), "Replace": j.Replace([]byte("x")), "Replay": j.Replay(func([]byte) error { return nil }),
	} {
		if !errors.Is(err, journal.ErrClosed) {
			t.Errorf("%s after Close: %v, want ErrClosed", name, err)
		}
	}
}

func want(t *testing.T, j journal.Journal, records ...string) {
	t.Helper()
	var got []string
	must(t, j.Replay(func(record []byte) error {
		got = append(got, string(record))
		return nil
	}))
	if !slices.Equal(got, records) {
		t.Errorf("records %q, want %q", got, records)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
