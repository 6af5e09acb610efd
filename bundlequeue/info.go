package bundlequeue

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// Info describes one bundle at one moment, for status pages and tests.
type Info struct {
	// Number is the number of the rollup block.
	Number uint64
	// Commitment is the commitment in the Enqueue event.
	Commitment common.Hash
	// State is the state of the bundle on the best chain.
	State State
	// Core is the core that the bundle uses now or, if it uses none, the core that it used
	// last.
	Core jamq.CoreIndex
	// Versions describes the packages of the bundle, oldest first. Some packages may be
	// missing: the queue forgets those that can never be accumulated and are not losses.
	Versions []VersionInfo
}

// VersionInfo describes one package of a bundle.
type VersionInfo struct {
	// Version counts the packages of the bundle from 1.
	Version int
	// Package is the hash of the package.
	Package jamq.PackageHash
	// Anchor is the block that the package is anchored to, and LookupAnchorSlot
	// the slot of its lookup anchor.
	Anchor           anchor.Point
	LookupAnchorSlot jamq.Slot
	// Prerequisites are the packages that this package names as prerequisites.
	Prerequisites []jamq.PackageHash
	// Attempts is the number of times that the package was sent.
	Attempts int
	// Reported, Available and Accumulated are the blocks of the best chain in which the
	// package was reported, became available and was accumulated. A zero point means that this
	// has not happened.
	Reported, Available, Accumulated anchor.Point
	// Dead is the rule by which the package can never be accumulated on the best chain, or
	// anchor.Alive if it still can be. DeadSince is the block at which the package died.
	Dead      anchor.Reason
	DeadSince anchor.Point
}

// Info describes the bundle with a number, or returns false if the queue has no such bundle. The
// result shares no memory with the queue.
func (q *Queue) Info(number uint64) (Info, bool) {
	it := q.find(number)
	if it == nil {
		return Info{}, false
	}
	info := Info{Number: it.number, Commitment: it.commitment, State: it.state, Core: it.core}
	for _, v := range it.versions {
		s := v.trace.Status()
		vi := VersionInfo{
			Version: v.number, Package: v.pkg, Prerequisites: slices.Clone(v.trace.Prerequisites()), Attempts: v.attempts,
			Reported: s.Reported, Available: s.Available, Accumulated: s.Accumulated, Dead: s.Dead, DeadSince: s.DeadSince,
		}
		vi.Anchor, vi.LookupAnchorSlot = v.trace.Anchor(), v.trace.LookupAnchorSlot()
		info.Versions = append(info.Versions, vi)
	}
	return info, true
}

// Infos describes all bundles that the queue holds, sorted by number.
func (q *Queue) Infos() []Info {
	infos := make([]Info, 0, len(q.items))
	for _, it := range q.items {
		info, _ := q.Info(it.number)
		infos = append(infos, info)
	}
	return infos
}

// Totals counts events since the queue was created, for metrics. The counts survive restarts,
// because snapshots contain them.
type Totals struct {
	// Enqueued counts the bundles that were enqueued.
	Enqueued uint64
	// Built counts the packages that the queue has accepted. Useless counts the packages that died
	// before they were sent.
	Built, Useless uint64
	// Sends counts Send effects.
	Sends uint64
	// Died counts the deaths of accepted packages. After a reorg a package can come back to life
	// and die again, which counts twice.
	Died uint64
	// BuildsFailed and SendsFailed count builds and sends that failed.
	BuildsFailed, SendsFailed uint64
	// DuplicateGuaranteeRejected counts how often the chain has reported a package of a
	// bundle while another package of the same bundle was already reported.
	// DuplicateAccumulateRejected counts how often it has accumulated a package of a
	// bundle after another one. That is possible only if the queue wrongly considered a
	// package dead, and it breaks promise B1: no bundle is accumulated twice.
	DuplicateGuaranteeRejected, DuplicateAccumulateRejected uint64
	// AccumulatedAfterFailed counts the packages that a chain has accumulated although the
	// queue considered them dead on this chain: see [Resurrected].
	AccumulatedAfterFailed uint64
	// NonWinningVersionsCanceled counts packages that the queue dropped before sending them,
	// because another package of the same bundle was reported or had come back to life in a
	// reorganization.
	NonWinningVersionsCanceled uint64
	entered                    [NumStates]uint64
}

// Entered returns how often bundles have entered a state.
func (t Totals) Entered(to State) uint64 { return t.entered[to] }

// Stats is a summary of a queue, for operators and metrics.
type Stats struct {
	// Base is the number of the oldest bundle in the queue. Next is the number
	// of the next bundle to be enqueued.
	Base, Next uint64
	// Depth is the maximum number of bundles that may wait in Queued and Reserved.
	Depth int
	// Cores is the number of cores that packages are sent to.
	Cores int
	// BuildBlocks is how many blocks the queue expects a build to take: the maximum of the last
	// eight builds, at most H. The queue chooses anchors that are newer by this number of
	// blocks, so that the packages of a slow builder are not too old when they are ready.
	BuildBlocks int
	// Count is the number of bundles in each state.
	Count [NumStates]int
	// Totals counts events since the queue was created.
	Totals Totals
}

// Stats returns a summary of the queue.
func (q *Queue) Stats() Stats {
	s := Stats{
		Base: q.next, Next: q.next, Depth: q.cfg.MaxQueueDepth, Cores: q.cores.inUse(), BuildBlocks: q.buildBlocks(),
		Count: q.counts, Totals: q.total,
	}
	if len(q.items) > 0 {
		s.Base = q.items[0].number
	}
	return s
}

// Expects reports whether the request with this ticket is still open, so that the
// queue would accept an answer to it.
func (q *Queue) Expects(ticket uint64) bool {
	return q.builds[ticket] != nil || q.sends[ticket] != nil
}

// Holds reports whether the queue knows a package: it has accepted the package in a
// [Built] event and has not forgotten it. The queue forgets:
//
//   - the packages of failed bundles, and of final bundles outside the retention
//     window
//   - packages that died before they were sent
//   - packages that can never be accumulated and are not losses
func (q *Queue) Holds(pkg jamq.PackageHash) bool { return q.versions[pkg] != nil }

// Pending returns how many bundles in the queue are not final.
func (q *Queue) Pending() int { return int(q.end() - q.active) }
