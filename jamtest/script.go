package jamtest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jamq/jamq"
)

// ErrInvalidScript is wrapped by every error of [ParseScript].
var ErrInvalidScript = errors.New("jamtest: invalid script")

// Script is a list of faults, each at a given slot. [ParseScript] makes one from text.
// Several chains may share it.
type Script struct {
	actions []action
}

// act is a kind of fault.
type act uint8

const (
	actSkip act = iota
	actLose
	actDelay
	actHold
	actUnavailable
	actVerdict
	actFork
	actReorg
	actAbandon
	actStall
	actFill
	numActs
)

// grammar contains the name of each fault in a script, and the minimum of its number. A
// minimum of -1 means that the fault has no number.
var grammar = [numActs]struct {
	words string
	least int
}{
	actSkip:        {"skip", 1},
	actLose:        {"lose", 1},
	actDelay:       {"delay", 1},
	actHold:        {"hold", 1},
	actUnavailable: {"unavailable", 1},
	actVerdict:     {"verdict", 0},
	actFork:        {"fork", 1},
	actReorg:       {"reorg", -1},
	actAbandon:     {"abandon", -1},
	actStall:       {"stall", 1},
	actFill:        {"fill", 1},
}

// action is one line of a script.
type action struct {
	at  jamq.Slot // counted from the slot of genesis
	act act
	n   int
}

// ParseScript reads a script. Each line has the form "at SLOT FAULT NUMBER", with
// slots counted from that of the genesis block. Empty lines, and text after a #,
// are ignored. The faults are:
//
//	at 12 skip 3          this slot and the next two have no block
//	at 20 lose 4          the next four submissions are lost
//	at 21 delay 5         the next submission is reported five slots later
//	at 22 hold 1          the next submission is reported in the last possible block
//	at 30 unavailable 2   the next two reports never become available
//	at 33 verdict 0       a verdict removes the report from core 0, if there is one
//	at 40 fork 2          a second branch begins two blocks below the best one
//	at 44 reorg           the second branch grows alone until it is the best;
//	                      a second reorg brings the first branch back
//	at 48 abandon         the second branch is abandoned, unless it grows alone
//	at 50 stall 12        finality stops for twelve slots
//	at 60 fill 5          other rollups take every free core for five slots
//
// The error wraps [ErrInvalidScript] and names the line.
func ParseScript(text string) (*Script, error) {
	s := &Script{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		a, err := parseAction(words)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrInvalidScript, number, err)
		}
		s.actions = append(s.actions, a)
	}
	sortActions(s.actions)
	return s, nil
}

func sortActions(actions []action) {
	slices.SortStableFunc(actions, func(a, b action) int { return int(int64(a.at) - int64(b.at)) })
}

func parseAction(words []string) (action, error) {
	var a action
	if len(words) < 3 || words[0] != "at" {
		return a, fmt.Errorf("%q, want \"at SLOT FAULT NUMBER\"", strings.Join(words, " "))
	}
	slot, err := strconv.ParseUint(words[1], 10, 32)
	if err != nil {
		return a, fmt.Errorf("slot %q: want a number", words[1])
	}
	a.at = jamq.Slot(slot)
	for a.act = 0; a.act < numActs && grammar[a.act].words != words[2]; a.act++ {
	}
	if a.act == numActs {
		return a, fmt.Errorf("unknown fault %q", words[2])
	}
	least := grammar[a.act].least
	if least < 0 {
		if len(words) != 3 {
			return a, fmt.Errorf("%s takes no number", words[2])
		}
		return a, nil
	}
	const most = 1 << 20
	if len(words) != 4 {
		return a, fmt.Errorf("%s takes one number", words[2])
	}
	if a.n, err = strconv.Atoi(words[3]); err != nil || a.n < least || a.n > most {
		return a, fmt.Errorf("%s %q: want a number from %d to %d", words[2], words[3], least, most)
	}
	return a, nil
}

// String returns the script in the form that [ParseScript] reads.
func (s *Script) String() string {
	var b strings.Builder
	for _, a := range s.actions {
		fmt.Fprintf(&b, "at %d %s", a.at, grammar[a.act].words)
		if grammar[a.act].least >= 0 {
			fmt.Fprintf(&b, " %d", a.n)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// running is the progress of a script: the faults that are still to come, and the state
// of faults that have begun.
type running struct {
	todo       []action
	left       [numActs]int // how often each fault is still to occur
	delays     []jamq.Slot
	verdicts   []jamq.CoreIndex
	overtaking bool      // the side branch grows alone
	abandoning bool      // the side branch is to be abandoned
	fillUntil  jamq.Slot // other rollups take every free core before this slot
}

func newRunning(s *Script) running {
	if s == nil {
		return running{}
	}
	return running{todo: s.actions}
}

// take reports whether a fault occurs now, and uses up one of its occurrences.
func (r *running) take(a act) bool {
	if r.left[a] == 0 {
		return false
	}
	r.left[a]--
	return true
}

// delay returns the delay of the next submission in slots, or 0, and uses the delay up.
func (r *running) delay() jamq.Slot {
	if len(r.delays) == 0 {
		return 0
	}
	d := r.delays[0]
	r.delays = r.delays[1:]
	return d
}

// condemned reports whether a verdict in the script clears a core now, and uses the
// verdict up.
func (c *Chain) condemned(core jamq.CoreIndex) bool {
	i := slices.Index(c.script.verdicts, core)
	if i < 0 {
		return false
	}
	c.script.verdicts = slices.Delete(c.script.verdicts, i, i+1)
	return true
}

// play starts the faults of the script for this slot and earlier ones.
func (c *Chain) play() {
	r := &c.script
	r.verdicts = nil
	for len(r.todo) > 0 && c.cfg.StartSlot.Add(r.todo[0].at) <= c.slot {
		a := r.todo[0]
		r.todo = r.todo[1:]
		switch a.act {
		case actSkip:
			c.skipLeft = a.n
		case actLose, actHold, actUnavailable:
			r.left[a.act] += a.n
		case actDelay:
			r.delays = append(r.delays, jamq.Slot(a.n))
		case actVerdict:
			r.verdicts = append(r.verdicts, jamq.CoreIndex(min(a.n, int(^jamq.CoreIndex(0)))))
		case actFork:
			if c.side == nil {
				c.openFork(a.n)
			}
		case actReorg:
			r.overtaking = c.side != nil
		case actAbandon:
			r.abandoning = c.side != nil
		case actStall:
			c.stallUntil = c.slot.Add(jamq.Slot(a.n))
		case actFill:
			r.fillUntil = c.slot.Add(jamq.Slot(a.n))
		}
	}
}
