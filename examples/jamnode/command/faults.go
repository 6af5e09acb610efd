package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/jamtest/jip2server"
)

// errCommand is wrapped by the errors of commands that cannot be understood.
var errCommand = errors.New("unknown command")

// commandHelp describes the commands of -stdin.
const commandHelp = `commands on standard input, one per line:
  loss SHARE            share of submissions that are lost, 0 to 1
  skip SHARE            share of slots without a block, 0 to below 1
  latency SLOTS         slots from a submission to its report, at least 1
  finality stop|go      stops finality, or lets it continue
  reorg DEPTH           begins a branch DEPTH blocks below the best block, if there is
                        only one branch; the second branch wins
  at SLOT FAULT NUMBER  a fault of a script, SLOT slots from now; see jamtest.ParseScript
  help                  this text
`

// obey carries out the commands of a reader until it ends, and answers each with
// a line that begins with "ok" or "error".
func obey(s *jip2server.Server, commands io.Reader, answers io.Writer) error {
	lines := bufio.NewScanner(commands)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		switch {
		case line == "":
		case line == "help":
			fmt.Fprint(answers, commandHelp)
		default:
			if err := carryOut(s, line); err != nil {
				fmt.Fprintf(answers, "error: %s: %v\n", line, err)
			} else {
				fmt.Fprintf(answers, "ok: %s\n", line)
			}
		}
	}
	return lines.Err()
}

// carryOut carries out one command. After an error nothing has changed.
func carryOut(s *jip2server.Server, line string) error {
	words := strings.Fields(line)
	if words[0] == "at" {
		return inject(s, line)
	}
	if len(words) != 2 {
		return fmt.Errorf("%w: have %d words, want 2; help lists the commands", errCommand, len(words))
	}
	switch words[0] {
	case "loss", "skip":
		share, err := strconv.ParseFloat(words[1], 64)
		if err != nil {
			return fmt.Errorf("have %q, want a number: %w", words[1], err)
		}
		return s.ChangeFaults(func(f *jamtest.Faults) {
			if words[0] == "loss" {
				f.LossProbability = share
			} else {
				f.SkipProbability = share
			}
		})
	case "latency":
		slots, err := strconv.ParseUint(words[1], 10, 16)
		if err != nil {
			return fmt.Errorf("have %q, want a number of slots: %w", words[1], err)
		}
		return s.ChangeFaults(func(f *jamtest.Faults) { f.ReportLatency = [2]jamq.Slot{jamq.Slot(slots), jamq.Slot(slots)} })
	case "finality":
		if words[1] != "stop" && words[1] != "go" {
			return fmt.Errorf("%w: have %q, want stop or go", errCommand, words[1])
		}
		return s.ChangeFaults(func(f *jamtest.Faults) { f.FinalityStopped = words[1] == "stop" })
	case "reorg":
		return inject(s, fmt.Sprintf("at 1 fork %s\nat 1 reorg\nat 1 abandon", words[1]))
	}
	return fmt.Errorf("%w: have %q; help lists the commands", errCommand, words[0])
}

// inject adds a script to the chain.
func inject(s *jip2server.Server, text string) error {
	script, err := jamtest.ParseScript(text)
	if err != nil {
		return err
	}
	return s.Inject(script)
}
