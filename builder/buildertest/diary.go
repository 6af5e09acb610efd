package buildertest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jamq/jamq"
)

// diary is the log of a run, for a person.
type diary struct {
	clock jamq.SlotClock
	first jamq.Slot

	mu    sync.Mutex
	lines []string
	last  string
}

func newDiary(spec jamq.ChainSpec) *diary {
	clock := jamq.NewSlotClock(spec)
	return &diary{clock: clock, first: clock.SlotAt(time.Now())}
}

// note adds a line, with the slot since the beginning, unless it repeats the last one.
func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if text == d.last { // as often while a rollup is idle
		return
	}
	d.last = text
	d.lines = append(d.lines, fmt.Sprintf("slot %4d  ", d.clock.SlotAt(time.Now())-d.first)+text)
}

// short returns an operation for the diary.
func short(op []byte) string {
	const most = 40
	if len(op) > most {
		return fmt.Sprintf("%q… of %d bytes", op[:most], len(op))
	}
	return fmt.Sprintf("%q", op)
}

// String returns the last lines.
func (d *diary) String() string {
	const most = 300
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := d.lines
	if left := len(lines) - most; left > 0 {
		lines = append([]string{fmt.Sprintf("… %d lines before", left)}, lines[left:]...)
	}
	return strings.Join(lines, "\n")
}
