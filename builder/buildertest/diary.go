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
}

func newDiary(spec jamq.ChainSpec) *diary {
	clock := jamq.NewSlotClock(spec)
	return &diary{clock: clock, first: clock.SlotAt(time.Now())}
}

// note adds a line, with the slot since the beginning.
func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf("slot %4d  ", d.clock.SlotAt(time.Now())-d.first)+fmt.Sprintf(format, args...))
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
