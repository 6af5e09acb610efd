package jamtest

import (
	"fmt"
	"strings"

	"github.com/jamq/jamq"
)

// String returns the name of the spec, the slot, and the best and finalized block in
// one line.
func (c *Chain) String() string {
	return fmt.Sprintf("%s slot %d, best %s, finalized %s", c.cfg.Spec.Name, c.slot, c.best.point(), c.finalized.point())
}

// String returns the height, the slot and the first digits of the hash, for example
// "4/5:a1b2c3d4".
func (p Point) String() string { return fmt.Sprintf("%d/%d:%s", p.Height, p.Slot, p.Hash.Short()) }

// Describe returns a readable description of the state after the best block. It then
// shows the newest blocks of each branch, one per line, at most the given number of
// lines.
func (c *Chain) Describe(lines int) string {
	var out strings.Builder
	fmt.Fprintln(&out, c)
	for i, r := range c.best.cores {
		if r != nil {
			fmt.Fprintf(&out, "  core %d: %s since slot %d\n", i, r.pkg.Hash.Short(), r.reportedAt)
		}
	}
	for _, w := range c.best.ready {
		fmt.Fprintf(&out, "  ready: %s since slot %d, waits for%s\n", w.pkg.Hash.Short(), w.since, shortHashes(w.unmet))
	}
	c.describeBranch(&out, "best", c.best, lines)
	if c.side != nil {
		c.describeBranch(&out, "side", c.side, min(lines, int(c.side.height-c.forkPoint.height)))
	}
	return out.String()
}

func (c *Chain) describeBranch(out *strings.Builder, name string, b *block, lines int) {
	for ; b != nil && lines > 0; b, lines = b.parent, lines-1 {
		fmt.Fprintf(out, "%s %s", name, b.point())
		for _, r := range b.Reported {
			fmt.Fprintf(out, " report %s on %d", r.Package.Short(), r.Core)
		}
		for _, event := range []struct {
			name string
			of   []jamq.PackageHash
		}{{"available", b.available}, {"clear", b.cleared}, {"time out", b.timedOut}, {"accumulate", b.Accumulated}, {"expire", b.expired}} {
			if len(event.of) > 0 {
				fmt.Fprintf(out, " %s%s", event.name, shortHashes(event.of))
			}
		}
		out.WriteByte('\n')
	}
}

func shortHashes(of []jamq.PackageHash) string {
	var out strings.Builder
	for _, h := range of {
		out.WriteString(" " + h.Short())
	}
	return out.String()
}
