package node

import (
	"maps"
	"sync"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
)

// Progress describes how far a rollup block has come on its way through JAM.
type Progress struct {
	// Status is the name of a bundlequeue.State, or "pooled" for a transaction that is not
	// in a block.
	Status string
	// Version is the number of packages that were built for the block. Package is the hash
	// of the package that JAM has accumulated or, before that, of the newest package.
	Version int
	Package jamq.PackageHash
	// Core is the core that the package was sent to.
	Core jamq.CoreIndex
	// At is the JAM block that proves Status. It is zero if no JAM block proves it.
	At anchor.Point
	// Slots maps the name of each state to the JAM slot in which the block last entered
	// that state since the node started. The node forgets the slots of old blocks.
	Slots map[string]jamq.Slot
}

// keptProgress is the number of final blocks for which the node remembers the
// slots.
const keptProgress = 4096

// progress records, for each rollup block by its number, in which JAM slots the block has
// reached its states, such as guaranteed or accumulated. It is safe for concurrent use.
type progress struct {
	mu sync.RWMutex
	of map[uint64]Progress
}

// note records that a block's bundle has entered a new state at a JAM slot.
func (l *progress) note(c *bundlequeue.Changed, slot jamq.Slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.of[c.Number]
	p.Status, p.Core, p.At = c.To.String(), c.Core, c.At
	if !c.Package.IsZero() {
		p.Version, p.Package = c.Version, c.Package
	}
	if !c.At.IsZero() && c.To != bundlequeue.Finalized {
		slot = c.At.Slot
	}
	// Readers may still use the old map, so it is replaced and not changed.
	slots := make(map[string]jamq.Slot, len(p.Slots)+1)
	maps.Copy(slots, p.Slots)
	// The queue may report a change of a block before the heads contain the block. Then record
	// here that it was queued.
	if _, known := slots[c.From.String()]; !known && c.From == bundlequeue.Queued {
		slots[c.From.String()] = slot
	}
	slots[p.Status] = slot
	p.Slots = slots
	l.of[c.Number] = p
	if c.To == bundlequeue.Finalized && c.Number >= keptProgress {
		delete(l.of, c.Number-keptProgress)
	}
}

// queued records for a range of blocks that they wait for their packages.
func (l *progress) queued(from, to uint64, slot jamq.Slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The queue sends no event for this first state.
	for number := from; number <= to; number++ {
		if _, known := l.of[number]; !known {
			name := bundlequeue.Queued.String()
			l.of[number] = Progress{Status: name, Slots: map[string]jamq.Slot{name: slot}}
		}
	}
}

// forget removes a block that has failed.
func (l *progress) forget(number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, number)
}

// Progress returns how far a block has come on its way through JAM.
func (n *Node) Progress(number uint64) Progress {
	n.progress.mu.RLock()
	p, known := n.progress.of[number]
	n.progress.mu.RUnlock()
	if b, there := n.builder.Block(number); there { // which can be newer than the last event
		p.Status, p.Core, p.At = b.Progress.State.String(), b.Progress.Core, b.Progress.At
		if !b.Progress.Package.IsZero() {
			p.Version, p.Package = b.Progress.Version, b.Progress.Package
		}
		return p
	}
	if known || number > n.builder.Heads().Finalized.Number {
		return p
	}
	p.Status = bundlequeue.Finalized.String()
	if at, known := n.FinalProgress(number); known {
		p.Version, p.Package, p.Core, p.At = at.Version, at.Package, at.Core, at.At
	}
	return p
}

// PooledProgress returns the progress of a transaction that is not in a block.
func (n *Node) PooledProgress() Progress { return Progress{Status: "pooled"} }

// recoverProgress records the states of the blocks that are not final after a restart.
func (n *Node) recoverProgress() {
	for _, change := range n.unfinished() {
		n.progress.note(&change, n.JAMSlot())
	}
}

// unfinished returns the present states of the blocks that are not final.
func (n *Node) unfinished() (changes []bundlequeue.Changed) {
	heads := n.builder.Heads()
	for number := heads.Finalized.Number + 1; number <= heads.Pending.Number; number++ {
		b, known := n.builder.Block(number)
		if !known {
			continue
		}
		at := b.Progress
		changes = append(changes, bundlequeue.Changed{Number: number, To: at.State, Version: at.Version, Package: at.Package, Core: at.Core, At: at.At})
	}
	return changes
}
