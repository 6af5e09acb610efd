package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/examples/refnode/live"
)

// The styles by meaning. They use the terminal's sixteen colours, which suit
// its theme.
var (
	plain = ansi.Style{}
	bold  = plain.Bold()
	soft  = plain.ForegroundColor(ansi.BrightBlack)

	ofState = map[string]ansi.Style{
		"queued": soft, "submitted": plain.ForegroundColor(ansi.Magenta), "guaranteed": plain.ForegroundColor(ansi.Yellow),
		"accumulated": plain.ForegroundColor(ansi.Cyan), "finalized": plain.ForegroundColor(ansi.Green), "dead": plain.ForegroundColor(ansi.Red).Bold(),
	}
	ofKind = map[string]ansi.Style{
		live.KindLatest: ofState["accumulated"], live.KindFinal: ofState["finalized"], live.KindBack: ofState["guaranteed"],
		live.KindDead: ofState["dead"], live.KindFailed: ofState["dead"], live.KindBuilt: ofState["submitted"], live.KindLab: bold,
	}
)

// letters are the states in time lines, so that a reader can distinguish them
// without colours.
var letters = map[string]string{"queued": "q", "submitted": "s", "guaranteed": "g", "accumulated": "a", "finalized": "F", "dead": "x"}

// quits is the hint how to quit.
const quits = "q quits"

// gutter is the width of the labels left of a time line, in columns.
const gutter = 18

// The minimum size for which Render draws.
const (
	leastWidth  = 40
	leastHeight = 10
)

// Render draws a state in colour for a terminal of the given size. The result
// has at most height lines of at most width columns. Sizes below 40 by 10 count
// as 40 by 10.
func Render(s *live.State, width, height int, zone *time.Location) string {
	width, height = max(width, leastWidth), max(height, leastHeight)
	head := header(s, width)
	head = append(head, chainLines(s, width)...)
	foot := []string{"", legend()}
	room := height - len(head) - len(foot)
	events := eventLines(s, zone)
	// Events get a third of the remaining lines, bundles the rest.
	forEvents := min(len(events), max(3, room/3))
	if room < 8 {
		forEvents = 0
	}
	bundles := bundleLines(s, width, room-forEvents)
	all := append(head, bundles...)
	for len(all) < height-len(foot)-forEvents {
		all = append(all, "")
	}
	all = append(append(all, events[:forEvents]...), foot...)
	all = all[:min(len(all), height)]
	for i, line := range all {
		all[i] = ansi.Truncate(line, width, "…")
	}
	return strings.Join(all, "\n")
}

// header returns the lines that describe the node, the flow of transactions and
// the heads.
func header(s *live.State, width int) []string {
	title := bold.Styled("jamq") + soft.Styled(fmt.Sprintf("  chain id %s · JAM %s · %d cores · slots of %v", s.Node.ChainID, s.Node.JAM, s.Node.Cores, time.Duration(s.Node.SlotMillis)*time.Millisecond))
	if room := width - ansi.StringWidth(title) - len(quits); room > 0 {
		title += strings.Repeat(" ", room) + soft.Styled(quits)
	}
	f := s.Flow
	steps := []string{}
	for _, step := range []struct {
		name  string
		count any
		style ansi.Style
	}{
		{"users", f.Sent, bold}, {"pool", f.Pool, bold}, {"queue", f.Queue, bold}, {"cores", f.Cores, ofState["submitted"]},
		{"accumulated", f.Accumulated, ofState["accumulated"]}, {"finalized", f.Finalized, ofState["finalized"]},
	} {
		steps = append(steps, soft.Styled(step.name)+" "+step.style.Styled(fmt.Sprint(step.count)))
	}
	flow := strings.Join(steps, soft.Styled(" › "))
	if f.Rate > 0 {
		flow += soft.Styled(fmt.Sprintf("  %g/s", f.Rate))
	}
	h := s.Heads
	heads := fmt.Sprintf("%s %d   %s %d   %s %d   %s %d", soft.Styled("pending"), h.Pending, soft.Styled("latest"), h.Latest, soft.Styled("safe"), h.Safe, soft.Styled("finalized"), h.Finalized)
	if n := len(s.Fees); n > 0 {
		fee := s.Fees[n-1]
		heads += soft.Styled(fmt.Sprintf("   base fee %s, floor %s, surge ×%.3g, pool %.0f%%", price(fee.Base), price(fee.Floor), fee.Surge, 100*fee.Full))
	}
	return []string{title, "", flow, heads, ""}
}

// price formats a price given in gwei. Prices below 0.0001 gwei are shown in
// wei.
func price(gwei float64) string {
	if gwei > 0 && gwei < 1e-4 {
		return fmt.Sprintf("%.3g wei", 1e9*gwei)
	}
	return fmt.Sprintf("%.3g gwei", gwei)
}

// columns returns the number of slots that fit, and the first of them.
func columns(s *live.State, width int) (count int, first jamq.Slot) {
	count = min(width-gutter, 64)
	return count, s.Chain.Slot - min(s.Chain.Slot, jamq.Slot(count-1))
}

func label(text string) string { return fmt.Sprintf("%-*s", gutter, text) }

// chainLines draws the JAM chain: a character per slot, a line per branch and core.
func chainLines(s *live.State, width int) []string {
	count, first := columns(s, width)
	rows := [][]string{blank(count, soft.Styled("·"))}
	oldest := s.Chain.Slot
	for _, b := range s.Chain.Blocks {
		oldest = min(oldest, b.Slot)
		if b.Slot < first || int(b.Slot-first) >= count {
			continue
		}
		lane := min(b.Lane, 3)
		for len(rows) <= lane {
			rows = append(rows, blank(count, " "))
		}
		mark := ofState["accumulated"].Styled("□")
		switch {
		case b.Lane > 0:
			mark = ofState["dead"].Styled("◇")
		case b.Final:
			mark = ofState["finalized"].Styled("■")
		}
		rows[lane][b.Slot-first] = mark
	}
	for i := range rows[0] {
		if first+jamq.Slot(i) < oldest {
			rows[0][i] = " "
		}
	}
	lines := make([]string, 0, len(rows)+len(s.Chain.Cores))
	for i, row := range rows {
		name := label("")
		if i == 0 {
			name = label(fmt.Sprintf("JAM %d", s.Chain.Slot))
		}
		lines = append(lines, soft.Styled(name)+strings.Join(row, ""))
	}
	const shownCores = 4
	for _, c := range s.Chain.Cores[:min(len(s.Chain.Cores), shownCores)] {
		lines = append(lines, soft.Styled(label(fmt.Sprintf("core %d", c.Core)))+coreLine(c, s.Chain.Slot, first, count))
	}
	return append(lines, "")
}

// coreLine draws the slots in which a core was occupied.
func coreLine(c live.Core, now, first jamq.Slot, count int) string {
	row := blank(count, " ")
	for _, r := range c.Reports {
		to := r.To
		if to == 0 {
			to = now + 1
		}
		mark := ofState["guaranteed"].Styled("▬")
		switch {
		case r.Number == 0:
			mark = soft.Styled("▬")
		case r.End == "verdict" || r.End == "timeout":
			mark = ofState["dead"].Styled("▬")
		}
		for slot := max(r.From, first); slot < to && int(slot-first) < count; slot++ {
			row[slot-first] = mark
		}
	}
	return strings.Join(row, "")
}

func blank(count int, mark string) []string {
	row := make([]string, count)
	for i := range row {
		row[i] = mark
	}
	return row
}

// bundleLines draws the newest bundles, one line per version and at most room
// lines.
func bundleLines(s *live.State, width, room int) []string {
	var lines []string
	if s.Bundles.More > 0 {
		lines = append(lines, soft.Styled(fmt.Sprintf("+ %d newer blocks wait", s.Bundles.More)))
	}
	count, first := columns(s, width)
	for _, b := range s.Bundles.Rows {
		name := label(fmt.Sprintf("#%-6d %4d tx", b.Number, b.Txs))
		if len(b.Versions) == 0 {
			lines = append(lines, name+soft.Styled("queued"))
		}
		for _, v := range b.Versions {
			line := name + versionLine(v, s.Chain.Slot, first, count)
			if v.Dead != "" {
				rule, _, _ := strings.Cut(v.Dead, ":")
				line += " " + ofState["dead"].Styled(rule)
			}
			lines = append(lines, line)
			name = label("")
		}
	}
	if len(s.Bundles.Rows) == 0 {
		lines = append(lines, soft.Styled("No rollup block is on its way: send a transaction."))
	}
	return lines[:min(len(lines), max(room, 0))]
}

// versionLine draws the history of a version. Each slot has the letter of the
// last state that the version entered in it.
func versionLine(v live.Version, now, first jamq.Slot, count int) string {
	row := blank(count, " ")
	for i, m := range v.Marks {
		state := stateName(m.State)
		until := now + 1
		switch {
		case i+1 < len(v.Marks):
			until = max(v.Marks[i+1].Slot, m.Slot+1)
		case state == "dead" || state == "finalized":
			until = m.Slot + 1
		}
		for slot := max(m.Slot, first); slot < until && int(slot-first) < count; slot++ {
			row[slot-first] = ofState[state].Styled(letters[state])
		}
	}
	return strings.TrimRight(strings.Join(row, ""), " ")
}

// stateName returns the state of the legend that a state belongs to.
func stateName(state string) string {
	switch state {
	case "reserved", "building", "sending":
		return "queued"
	case "failed":
		return "dead"
	}
	return state
}

func eventLines(s *live.State, zone *time.Location) []string {
	lines := make([]string, len(s.Events))
	for i, e := range s.Events {
		lines[i] = soft.Styled(time.UnixMilli(e.At).In(zone).Format("15:04:05")) + " " + ofKind[e.Kind].Styled("•") + " " + e.Text
	}
	return lines
}

func legend() string {
	parts := []string{ofState["finalized"].Styled("■") + soft.Styled(" final"), ofState["accumulated"].Styled("□") + soft.Styled(" best"), ofState["dead"].Styled("◇") + soft.Styled(" other")}
	for _, state := range []string{"queued", "submitted", "guaranteed", "accumulated", "finalized", "dead"} {
		parts = append(parts, ofState[state].Styled(letters[state])+soft.Styled(" "+state))
	}
	return strings.Join(parts, " ")
}

// Line returns a one-line summary of a state, without colours.
func Line(s *live.State) string {
	f, h := s.Flow, s.Heads
	return fmt.Sprintf("slot %d | users %d pool %d queue %d cores %d accumulated %d finalized %d (%g/s) | pending %d latest %d finalized %d",
		s.Chain.Slot, f.Sent, f.Pool, f.Queue, f.Cores, f.Accumulated, f.Finalized, f.Rate, h.Pending, h.Latest, h.Finalized)
}
