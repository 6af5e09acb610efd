package journaltest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jamq/jamq/journal"
)

// tester is the part of testing.T that the tests use. It is an interface so that this
// package's own tests can check that a faulty journal is found.
type tester interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// Run tests a journal. The first call of open must return an empty journal. Run
// closes the journal several times and calls open again, which must then return a
// journal with the same records.
func Run(t *testing.T, open func() journal.Journal) {
	t.Helper()
	const largest = 14 << 20 // more than the largest package of JAM
	run(t, open, largest)
}

// run is Run with records of up to the given length.
func run(t tester, open func() journal.Journal, largest int) {
	t.Helper()
	j := open()
	defer func() { _ = j.Close() }()
	want(t, j)
	must(t, j.Append())
	must(t, j.Append([]byte("one"), nil))
	must(t, j.Append([]byte("three")))
	want(t, j, "one", "", "three")
	refusals(t, j)
	replays(t, j)
	must(t, j.Replace([]byte("four"), []byte("five")))
	want(t, j, "four", "five")
	must(t, j.Append([]byte("six")))
	want(t, j, "four", "five", "six")
	j = reopened(t, j, open)
	j = contents(t, j, open, largest)
	must(t, j.Replace())
	want(t, j)
	j = again(t, j, open)
	want(t, j)
	concurrent(t, j)
	closed(t, j)
}

// refusals tests that a record that is too large changes nothing.
func refusals(t tester, j journal.Journal) {
	t.Helper()
	large := make([]byte, journal.MaxRecord+1)
	if err := j.Append([]byte("x"), large); !errors.Is(err, journal.ErrTooLarge) {
		t.Errorf("a record that is too large: %v, want ErrTooLarge", err)
	}
	want(t, j, "one", "", "three")
	if err := j.Replace([]byte("x"), large); !errors.Is(err, journal.ErrTooLarge) {
		t.Errorf("a replacement that is too large: %v, want ErrTooLarge", err)
	}
	want(t, j, "one", "", "three")
}

// reopened closes a journal and opens it again. It tests that the journal still has its
// records, and that further records follow the last one.
func reopened(t tester, j journal.Journal, open func() journal.Journal) journal.Journal {
	t.Helper()
	// A Replace has come before. A journal that computes the position of the next record from
	// the number of its records would go wrong here.
	have := []string{"four", "five", "six"}
	for _, next := range []string{"seven", "eight"} {
		j = again(t, j, open)
		want(t, j, have...)
		have = append(have, next)
		must(t, j.Append([]byte(next)))
		want(t, j, have...)
	}
	j = again(t, j, open)
	must(t, j.Replace([]byte("nine")))
	must(t, j.Append([]byte("ten")))
	j = again(t, j, open)
	want(t, j, "nine", "ten")
	must(t, j.Append([]byte("eleven"), []byte("twelve")))
	want(t, j, "nine", "ten", "eleven", "twelve")
	j = again(t, j, open)
	want(t, j, "nine", "ten", "eleven", "twelve")
	return j
}

// contents tests records with any bytes, and with lengths around the usual limits.
func contents(t tester, j journal.Journal, open func() journal.Journal, largest int) journal.Journal {
	t.Helper()
	var all [256]byte
	for i := range all {
		all[i] = byte(i)
	}
	records := []string{"", "\n", "a\nb\r\n", "\x00", "\x00\x00a\x00", "\xff\xfe", `"\`, " ", string(all[:]), ""}
	filler := strings.Repeat(string(all[:]), largest/len(all)+1)
	for _, size := range []int{255, 1 << 16, 1 << 20} {
		records = append(records, filler[:size-1], filler[:size], filler[:size+1])
	}
	records = append(records, filler[:largest])
	raw := make([][]byte, len(records))
	for i, record := range records {
		raw[i] = []byte(record)
	}
	must(t, j.Replace(raw...))
	want(t, j, records...)
	for _, record := range raw {
		must(t, j.Append(record))
	}
	j = again(t, j, open)
	want(t, j, slices.Concat(records, records)...)
	return j
}

// again closes the journal and opens it again.
func again(t tester, j journal.Journal, open func() journal.Journal) journal.Journal {
	t.Helper()
	must(t, j.Close())
	must(t, j.Close())
	return open()
}

// replays tests Replay with callbacks that return an error or append records.
func replays(t tester, j journal.Journal) {
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

// concurrent tests that concurrent calls of Append store all their records.
func concurrent(t tester, j journal.Journal) {
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
		// Several goroutines append at the same time. The two records of one call must stay
		// together, and the calls of one goroutine must stay in their order.
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
func closed(t tester, j journal.Journal) {
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

func want(t tester, j journal.Journal, records ...string) {
	t.Helper()
	var got []string
	must(t, j.Replay(func(record []byte) error {
		got = append(got, string(record))
		return nil
	}))
	if !slices.Equal(got, records) {
		t.Errorf("records %s, want %s", shown(got), shown(records))
	}
}

// shown returns records in a readable form, with long ones cut.
func shown(records []string) string {
	var all []string
	for _, record := range records {
		if len(record) > 40 {
			all = append(all, fmt.Sprintf("%.40q… (%d bytes)", record, len(record)))
		} else {
			all = append(all, fmt.Sprintf("%q", record))
		}
	}
	return fmt.Sprint(all)
}

func must(t tester, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
