package journaltest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jamq/jamq/journal"
)

// Shared is a journal that several processes have open. One of them is the leader: see
// builder.SharedLog.
type Shared interface {
	journal.Journal
	// Lead passes the records of the leader to record until this process leads: see
	// builder.SharedLog.
	Lead(ctx context.Context, record func(record []byte) error, replaced func() error) error
}

// RunShared tests a journal that several processes share: that one of them leads, and that the
// others read its records. Each call of open must return another handle of the same journal, as
// another process would open it. The journal must be empty at first. Use Run in addition, to test
// the journal of the process that leads.
func RunShared(t *testing.T, open func() Shared) {
	t.Helper()
	first := open()
	must(t, first.Lead(t.Context(), unexpected, func() error { return unexpected(nil) }))
	must(t, first.Append([]byte("one"), []byte("two")))
	second := follow(t, open())
	second.wants("one", "two")
	must(t, first.Append([]byte("three")))
	second.wants("three")
	must(t, first.Append([]byte("four")))
	must(t, first.Replace([]byte("checkpoint"), []byte("four")))
	must(t, first.Append([]byte("five")))
	second.wants("four", "replaced", "five")
	must(t, first.Replace())
	must(t, first.Replace([]byte("checkpoint"), []byte("five")))
	second.wants("replaced", "replaced")

	late := open()
	want(t, late, "checkpoint", "five")
	third := follow(t, late)
	must(t, first.Append([]byte("six")))
	second.wants("six")
	third.wants("six")
	if err := second.log.Append([]byte("a follower's")); err == nil {
		t.Error("a process that does not lead appends a record")
	}
	must(t, first.Close())
	leader, other := second, third
	select {
	case err := <-second.led:
		must(t, err)
	case err := <-third.led:
		must(t, err)
		leader, other = third, second
	}
	must(t, leader.log.Append([]byte("seven")))
	other.wants("seven")
	want(t, leader.log, "checkpoint", "five", "six", "seven")
	must(t, leader.log.Close())
	must(t, <-other.led)
	must(t, other.log.Close())
}

func unexpected(record []byte) error { return fmt.Errorf("%q is passed on to the leader", record) }

// follower is a process that waits to become the leader.
type follower struct {
	t    *testing.T
	log  Shared
	read chan string
	led  chan error // the result of Lead
}

func follow(t *testing.T, log Shared) *follower {
	f := &follower{t: t, log: log, read: make(chan string), led: make(chan error, 1)}
	pass := func(what string) error {
		select {
		case f.read <- what:
			return nil
		case <-t.Context().Done():
			return t.Context().Err()
		}
	}
	go func() {
		f.led <- log.Lead(t.Context(), func(record []byte) error { return pass(string(record)) }, func() error { return pass("replaced") })
	}()
	return f
}

// wants waits for as many records as are given, and compares them.
func (f *follower) wants(all ...string) {
	f.t.Helper()
	var have []string
	for range all {
		select {
		case what := <-f.read:
			have = append(have, what)
		case err := <-f.led:
			f.t.Fatal("it leads, or fails, after", have, err)
		}
	}
	if !slices.Equal(have, all) {
		f.t.Errorf("a follower has read %q, want %q", have, all)
	}
}
