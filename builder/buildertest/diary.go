package buildertest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jamq/jamq"
)

// diary is a readable log of everything that happens in a run. It is printed if the run fails.
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

// note adds a line with the slot number, unless it repeats the last one.
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

// short returns an operation in the form in which the diary shows it.
func short(op []byte) string {
	const most = 40
	if len(op) > most {
		return fmt.Sprintf("%q… of %d bytes", op[:most], len(op))
	}
	return fmt.Sprintf("%q", op)
}

// text returns the last 300 lines of the diary, for the message of a failed test. Earlier
// lines are included if they contain one of the given names, for example the operation
// that was lost.
func (d *diary) text(names []string) string {
	const most = 300
	d.mu.Lock()
	defer d.mu.Unlock()
	var kept []string
	earlier, cut := len(d.lines)-most, 0
	for i, line := range d.lines {
		named := func(name string) bool { return strings.Contains(line, name) }
		if i < earlier && !slices.ContainsFunc(names, named) {
			cut++
			continue
		}
		if cut > 0 {
			kept = append(kept, fmt.Sprintf("… %d lines", cut))
			cut = 0
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "\n")
}
