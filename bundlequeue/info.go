package bundlequeue

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// Info describes one bundle at one moment.
type Info struct {
	// Number is the rollup block.
	Number uint64
	// Commitment is that of Enqueue.
	Commitment common.Hash
	// State is its stage on the best chain.
	State State
	// Core is the core that it holds, or held last.
	Core jamq.CoreIndex
	// Versions are its packages, oldest first, without those that can never be accumulated and do
	// not count as lost.
	Versions []VersionInfo
}

// VersionInfo describes one package of a bundle.
type VersionInfo struct {
	// Version counts from 1.
	Version int
	// Package is its hash.
	Package jamq.PackageHash
	// Anchor is the block that it is anchored to, LookupAnchorSlot the slot of its lookup anchor;
	// zero if the evidence knows no blocks.
	Anchor           anchor.Point
	LookupAnchorSlot jamq.Slot
	// Prerequisites are the packages that it names.
	Prerequisites []jamq.PackageHash
	// Attempts is how often it was sent.
	Attempts int
	// Reported, Available and Accumulated are the blocks of the best chain in which that happened,
	// or zero.
	Reported, Available, Accumulated anchor.Point
	// Dead is why it can never accumulate on the best chain, DeadSince since which block.
	Dead      anchor.Reason
	DeadSince anchor.Point
}

// Info describes the bundle with the given number, if the queue still holds it. The result shares
// nothing with the queue.
func (q *Queue[B]) Info(number uint64) (Info, bool) {
	it := q.find(number)
	if it == nil {
		return Info{}, false
	}
	info := Info{Number: it.number, Commitment: it.commitment, State: it.state, Core: it.core}
	for _, v := range it.versions {
		s := v.fate.Status()
		vi := VersionInfo{
			Version: v.number, Package: v.pkg, Prerequisites: slices.Clone(v.fate.Prerequisites()), Attempts: v.attempts,
			Reported: s.Reported, Available: s.Available, Accumulated: s.Accumulated, Dead: s.Dead, DeadSince: s.DeadSince,
		}
		vi.Anchor, vi.LookupAnchorSlot = v.fate.Anchor()
		info.Versions = append(info.Versions, vi)
	}
	return info, true
}

// Infos describes all bundles that the queue holds, by number.
func (q *Queue[B]) Infos() []Info {
	infos := make([]Info, 0, len(q.items))
	for _, it := range q.items {
		info, _ := q.Info(it.number)
		infos = append(infos, info)
	}
	return infos
}

// Totals count what happened since the queue was made.
type Totals struct {
	// Enqueued counts bundles.
	Enqueued uint64
	// Built counts packages that were taken, Useless those that died before they were ever sent.
	Built, Useless uint64
	// Sends counts Send effects.
	Sends uint64
	// Died counts deaths of packages that the queue had taken; a reorg can make one die twice.
	Died uint64
	// BuildsFailed and SendsFailed count builds and sends that the host could not do.
	BuildsFailed, SendsFailed uint64
	// DuplicateGuaranteeRejected counts guarantees of a version while another version of its bundle
	// had one; DuplicateAccumulateRejected the same for accumulation. With chain evidence the
	// second stays 0: see promise B1.
	DuplicateGuaranteeRejected, DuplicateAccumulateRejected uint64
	// AccumulatedAfterFailed counts packages that were accumulated after the clock had given their
	// bundle up: see [Resurrected]. Package told counts them.
	AccumulatedAfterFailed uint64
	// NonWinningVersionsCanceled counts versions that were dropped, built or in building, because
	// another version was reported first.
	NonWinningVersionsCanceled uint64
	// Transitions counts how often a bundle went from one state to another: [from][to].
	Transitions [NumStates][NumStates]uint64
}

// Entered returns how often a bundle entered a state.
func (t Totals) Entered(to State) uint64 {
	n := uint64(0)
	for from := range t.Transitions {
		n += t.Transitions[from][to]
	}
	return n
}

// Stats is a summary for people and metrics.
type Stats struct {
	// Base is the number of the oldest bundle held, Next that of the bundle to come.
	Base, Next uint64
	// Depth is how many may wait in Queued and Reserved.
	Depth int
	// Cores is how many cores packages are sent to.
	Cores int
	// BuildBlocks is how many blocks a build is expected to take: see [Queue.BuildBlocks].
	BuildBlocks int
	// Count is the number of bundles held in each state.
	Count [NumStates]int
	// Totals count since the queue was made.
	Totals Totals
}

// Stats returns a summary.
func (q *Queue[B]) Stats() Stats {
	s := Stats{
		Base: q.next, Next: q.next, Depth: q.depth, Cores: q.cores.inUse(), BuildBlocks: q.BuildBlocks(),
		Count: q.counts, Totals: q.total,
	}
	if len(q.items) > 0 {
		s.Base = q.items[0].number
	}
	return s
}

// Expects reports whether the queue waits for the answer to a Build or a Send effect with this
// ticket.
func (q *Queue[B]) Expects(ticket uint64) bool {
	return q.builds[ticket] != nil || q.sends[ticket] != nil
}

// Holds reports whether the queue holds a package: one that was taken from a [Built] event, and
// whose bundle is neither retired nor failed.
func (q *Queue[B]) Holds(pkg jamq.PackageHash) bool { return q.versions[pkg] != nil }

// Pending returns how many bundles are not final.
func (q *Queue[B]) Pending() int { return int(q.end() - q.active) }
