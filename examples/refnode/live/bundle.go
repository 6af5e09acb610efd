package live

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
)

// bundle is a rollup block that is not final, or has become final recently.
type bundle struct {
	number   uint64
	txs      int
	state    bundlequeue.State
	versions []Version
}

// keptMarks bounds the marks per version, and keptVersions the versions per
// bundle, for any number of reorgs.
const (
	keptMarks    = 16
	keptVersions = 6
)

// missing returns the numbers up to the pending block that were never added.
func (m *model) missing(pending uint64) (numbers []uint64) {
	for n := m.newest + 1; n <= pending; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

// bundle returns the bundle with a number. If there is none, it adds one in the
// given state that waits since now. txs corrects the number of its
// transactions; 0 leaves it unchanged.
func (m *model) bundle(now time.Time, number uint64, txs int, state bundlequeue.State) *bundle {
	b := m.bundles[number]
	if b == nil {
		b = &bundle{number: number, txs: txs, state: state}
		m.bundles[number] = b
		b.version(1).mark(bundlequeue.Queued.String(), m.slot(now))
		m.txs[state] += txs
		m.newest = max(m.newest, number)
		m.trim()
	} else if txs > 0 && txs != b.txs {
		m.txs[b.state] += txs - b.txs
		b.txs = txs
	}
	return b
}

// version returns a version of a bundle and adds it if there is none.
func (b *bundle) version(number int) *Version {
	for i := range b.versions {
		if b.versions[i].Version == number {
			return &b.versions[i]
		}
	}
	if len(b.versions) == keptVersions {
		b.versions = slices.Delete(b.versions, 0, 1)
	}
	b.versions = append(b.versions, Version{Version: number, Marks: []Mark{}})
	return &b.versions[len(b.versions)-1]
}

// last returns the newest version, or nil if there is none.
func (b *bundle) last() *Version {
	if len(b.versions) == 0 {
		return nil
	}
	return &b.versions[len(b.versions)-1]
}

// waiting returns the version to build next: the newest if it has no package,
// and a new one otherwise.
func (b *bundle) waiting() *Version {
	last := b.last()
	switch {
	case last == nil:
		return b.version(1)
	case last.Package != "" || last.Dead != "":
		return b.version(last.Version + 1)
	}
	return last
}

// mark records that a version entered a state. Marks are in order: a state that
// began before the previous mark, as after a reorg, gets the slot of that mark.
func (v *Version) mark(state string, slot jamq.Slot) {
	if n := len(v.Marks); n > 0 && v.Marks[n-1].State == state {
		return
	}
	if len(v.Marks) == keptMarks {
		v.Marks = slices.Delete(v.Marks, 0, 1)
	}
	if n := len(v.Marks); n > 0 {
		slot = max(slot, v.Marks[n-1].Slot)
	}
	v.Marks = append(v.Marks, Mark{state, slot})
}

func (m *model) build(now time.Time, number uint64, version, txs int, core jamq.CoreIndex) {
	b := m.bundle(now, number, txs, bundlequeue.Queued)
	again := version > 1 && (b.last() == nil || b.last().Version < version || b.last().Sends == 0)
	v := b.version(version)
	v.Core = core
	v.mark(bundlequeue.Building.String(), m.slot(now))
	if again {
		m.note(now, KindBuilt, fmt.Sprintf("block %d gets package v%d", number, version))
	}
}

func (m *model) send(now time.Time, number uint64, version int, pkg jamq.PackageHash, core jamq.CoreIndex) {
	b := m.bundle(now, number, 0, bundlequeue.Sending)
	v := b.version(version)
	v.Package, v.Core = pkg.Short(), core
	v.Sends++
	m.name(pkg, name{number, version})
}

func (m *model) change(now time.Time, e bundlequeue.Changed, txs int) {
	b := m.bundle(now, e.Number, txs, e.From)
	if b.state == bundlequeue.Finalized {
		return // repeated event
	}
	m.txs[b.state] -= b.txs
	m.txs[e.To] += b.txs
	b.state = e.To
	v := b.waiting
	if e.Version > 0 {
		v = func() *Version { return b.version(e.Version) }
	}
	slot := m.slot(now)
	if !e.At.IsZero() && e.To != bundlequeue.Finalized {
		slot = e.At.Slot
	}
	into := v()
	if e.To > bundlequeue.Queued && e.To < bundlequeue.FailedState {
		into.Dead = "" // a reorg brought it back
	}
	into.mark(e.To.String(), slot)
	if !e.Package.IsZero() {
		into.Package, into.Core = e.Package.Short(), e.Core
		m.name(e.Package, name{e.Number, e.Version})
	}
	switch {
	case e.To == bundlequeue.Finalized:
		m.finish(b)
	case e.From >= bundlequeue.Guaranteed && e.To < e.From:
		m.note(now, KindBack, fmt.Sprintf("block %d is no longer %v but %v", e.Number, e.From, e.To))
	}
}

// finish counts a bundle as final and removes the oldest final bundles.
func (m *model) finish(b *bundle) {
	m.txs[bundlequeue.Finalized] -= b.txs
	m.final += uint64(b.txs)
	m.finals = append(m.finals, b.number)
	m.trim()
}

// trim removes the oldest final bundles that have no room beside the others.
func (m *model) trim() {
	for len(m.finals) > shownFinal && len(m.bundles) > shownBundles {
		delete(m.bundles, m.finals[0])
		m.finals = m.finals[1:]
	}
}

func (m *model) die(now time.Time, number uint64, version int, reason anchor.Reason) {
	b := m.bundles[number]
	if b == nil {
		return
	}
	v := b.version(version)
	if v.Dead == "" {
		m.note(now, KindDead, fmt.Sprintf("block %d v%d is dead, %v", number, version, reason))
	}
	v.Dead = reason.String()
	v.mark("dead", m.slot(now)) // the evidence may be older
}

// fail removes a bundle whose number will be used again.
func (m *model) fail(now time.Time, number uint64, reason string) {
	m.note(now, KindFailed, fmt.Sprintf("block %d was given up; its transactions return to the pool: %s", number, reason))
	m.remove(number)
}

// drop removes the bundles of blocks that were undone.
func (m *model) drop(pending uint64) {
	for _, number := range slices.Sorted(maps.Keys(m.bundles)) {
		if number > pending {
			m.remove(number)
		}
	}
	m.newest = min(m.newest, pending)
}

func (m *model) remove(number uint64) {
	if b := m.bundles[number]; b != nil && b.state != bundlequeue.Finalized {
		m.txs[b.state] -= b.txs
		delete(m.bundles, number)
	}
}

// shown returns the bundles to show, newest first. If there are too many, it
// leaves out the newest.
func (m *model) shown() Bundles {
	numbers := slices.Sorted(maps.Keys(m.bundles))
	more := max(0, len(numbers)-shownBundles)
	numbers = numbers[:len(numbers)-more]
	slices.Reverse(numbers)
	rows := make([]Bundle, len(numbers))
	for i, number := range numbers {
		b := m.bundles[number]
		rows[i] = Bundle{Number: b.number, Txs: b.txs, State: b.state.String(), Versions: make([]Version, len(b.versions))}
		for j, v := range b.versions {
			v.Marks = slices.Clone(v.Marks)
			rows[i].Versions[j] = v
		}
	}
	return Bundles{Rows: rows, More: more}
}

// name is the block number and version of a package.
type name struct {
	number  uint64
	version int
}

// name records the block number and version of a package.
func (m *model) name(pkg jamq.PackageHash, of name) {
	if m.packages.add(pkg, of) {
		m.drawn = nil
	}
}

// packages maps the rollup's newest packages to their names.
type packages struct {
	named map[jamq.PackageHash]name
	order []jamq.PackageHash
}

// add records a package and reports whether it is new.
func (p *packages) add(pkg jamq.PackageHash, n name) bool {
	if _, known := p.named[pkg]; known {
		return false
	}
	p.named[pkg] = n
	p.order = append(p.order, pkg)
	if len(p.order) > keptPackages {
		delete(p.named, p.order[0])
		p.order = p.order[1:]
	}
	return true
}
