package lab

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/examples/refnode/live"
	"github.com/jamq/jamq/jamtest"
)

// ErrRefused is wrapped by the errors of [Lab]: the value is out of range, or
// the fault cannot be injected now. Nothing changed.
var ErrRefused = errors.New("lab")

// The ranges of the settings.
const (
	// maxSkip leaves some blocks.
	maxSkip = 0.9
	// maxLatency is longer than any package can be reported, in slots.
	maxLatency = 12
	// labFinality is the distance between the final and the best block in a
	// laboratory, so that a reorg is possible.
	labFinality = 6
)

// Lab injects faults into the embedded JAM chain, so that users can watch the
// node recover. It is safe for concurrent use.
type Lab struct {
	node  *Node
	chain *jamtest.Driver
}

// Lab returns the laboratory, or nil if Config.Lab is false.
func (n *Node) Lab() *Lab {
	chain := n.Simulation()
	if !n.cfg.Lab || chain == nil {
		return nil
	}
	return &Lab{n, chain}
}

// state returns the settings for the views.
func (l *Lab) state() *live.Lab {
	f := l.chain.Faults()
	return &live.Lab{
		Loss: f.LossProbability, Skip: f.SkipProbability, Latency: int(f.ReportLatency[0]), FinalityStopped: f.FinalityStopped,
		MaxLatency: maxLatency, MaxSkip: maxSkip, MaxDepth: labFinality - 1,
	}
}

// SetLoss sets the share of submissions that are lost, 0 to 1.
func (l *Lab) SetLoss(share float64) error {
	if !(share >= 0 && share <= 1) {
		return fmt.Errorf("%w: loss is %v, want 0 to 1", ErrRefused, share)
	}
	return l.change(fmt.Sprintf("%.0f%% of submissions are lost", 100*share), func(f *jamtest.Faults) { f.LossProbability = share })
}

// SetSkip sets the share of slots without a block, 0 to 0.9.
func (l *Lab) SetSkip(share float64) error {
	if !(share >= 0 && share <= maxSkip) {
		return fmt.Errorf("%w: skip is %v, want 0 to %v", ErrRefused, share, maxSkip)
	}
	return l.change(fmt.Sprintf("%.0f%% of slots are skipped", 100*share), func(f *jamtest.Faults) { f.SkipProbability = share })
}

// SetLatency sets the number of slots from a submission to its report, 1 to 12.
func (l *Lab) SetLatency(slots float64) error {
	if !(slots >= 1 && slots <= maxLatency) || slots != math.Trunc(slots) {
		return fmt.Errorf("%w: latency is %v, want a whole number of slots, 1 to %d", ErrRefused, slots, maxLatency)
	}
	n := jamq.Slot(slots)
	return l.change(fmt.Sprintf("a report takes %d slots", n), func(f *jamtest.Faults) { f.ReportLatency = [2]jamq.Slot{n, n} })
}

// StopFinality stops finality, or starts it again.
func (l *Lab) StopFinality(stop bool) error {
	text := "finality goes on"
	if stop {
		text = "finality stands still"
	}
	return l.change(text, func(f *jamtest.Faults) { f.FinalityStopped = stop })
}

func (l *Lab) change(text string, f func(*jamtest.Faults)) error {
	if err := l.chain.ChangeFaults(f); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	l.node.live.Note(text)
	return nil
}

// Reorg lets a second branch begin depth blocks below the best block, 1 to 5,
// and win. It begins higher if finality is closer.
func (l *Lab) Reorg(depth float64) error {
	if !(depth >= 1 && depth < labFinality) || depth != math.Trunc(depth) {
		return fmt.Errorf("%w: depth is %v, want a whole number of blocks, 1 to %d", ErrRefused, depth, labFinality-1)
	}
	script, err := jamtest.ParseScript(fmt.Sprintf("at 1 fork %.0f\nat 1 reorg\nat 1 abandon", depth))
	if err != nil {
		return err
	}
	l.chain.Inject(script)
	l.node.live.Note(fmt.Sprintf("a branch begins %.0f blocks below the best, and will win", depth))
	return nil
}

// Kill prevents that the current package of a bundle is ever accumulated. The
// number 0 stands for the oldest bundle with such a package.
func (l *Lab) Kill(ctx context.Context, number uint64) error {
	first, last := number, number
	if number == 0 {
		stats, err := l.node.QueueStats(ctx)
		if err != nil {
			return err
		}
		first, last = stats.Base, stats.Next
	}
	for n := first; n <= last; n++ {
		info, found, err := l.node.BundleInfo(ctx, n)
		if err != nil {
			return err
		}
		if v := alive(&info); found && v != nil && l.chain.Kill(v.Package) == nil {
			l.node.live.Note(fmt.Sprintf("block %d v%d is made to fail", n, v.Version))
			return nil
		}
	}
	if number == 0 {
		return fmt.Errorf("%w: no package is under way; send a transaction first", ErrRefused)
	}
	return fmt.Errorf("%w: block %d has no package that was sent and is not available yet", ErrRefused, number)
}

// alive returns the package of a bundle that can still be reported or become
// available, or nil.
func alive(info *bundlequeue.Info) *bundlequeue.VersionInfo {
	if info.State < bundlequeue.Sending || info.State > bundlequeue.Guaranteed {
		return nil
	}
	for i := range info.Versions {
		if v := &info.Versions[i]; v.Dead == anchor.Alive {
			return v
		}
	}
	return nil
}
