package rpcapi

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/evmrollup"
	"github.com/jamq/jamq/evmrollup/internal/ledger"
)

// jamMethods implements the namespace jam, which shows the progress of the rollup's
// blocks on JAM and returns proofs.
type jamMethods struct{ *api }

// QueueStatus is the answer of jam_queueStatus. All block numbers are numbers of rollup
// blocks. The fields whose names begin with JAM describe the JAM chain.
type QueueStatus struct {
	// Pending, Latest and Finalized are the numbers of the blocks with these tags.
	Pending   hexutil.Uint64 `json:"pending"`
	Latest    hexutil.Uint64 `json:"latest"`
	Finalized hexutil.Uint64 `json:"finalized"`
	// CanonicalRoot is the state root after the highest block that is finalized together
	// with all earlier blocks.
	CanonicalRoot common.Hash `json:"canonicalRoot"`
	// Bundles is the number of bundles in the queue, by their state.
	Bundles map[string]int `json:"bundles"`
	// Transitions maps each state of a bundle to the number of times that a bundle has
	// entered it since the node started.
	Transitions map[string]uint64 `json:"transitions"`
	// Packages, Sends and Died count events since the node started: packages that were
	// built, sends of a package, and packages that died because they could no longer be
	// accumulated.
	Packages uint64 `json:"packages"`
	Sends    uint64 `json:"sends"`
	Died     uint64 `json:"died"`
	// JAMSlot is the slot of the best JAM block. JAMBest and JAMFinalized are the hashes of the
	// best and of the finalized JAM block.
	JAMSlot      hexutil.Uint64  `json:"jamSlot"`
	JAMBest      jamq.HeaderHash `json:"jamBest"`
	JAMFinalized jamq.HeaderHash `json:"jamFinalized"`
	// Service describes the packages of the rollup that the finalized JAM chain has
	// accumulated since the node started. The node reads it from the JAM chain, so it is
	// independent of the queue.
	Service ServiceReport `json:"service"`
}

// ServiceReport describes the packages that JAM has accumulated for the rollup: their
// number, the numbers of the first and the last block, and the state root after the
// last block. Duplicates lists blocks that were accumulated more than once, and Gaps
// lists blocks that did not follow their predecessor.
type ServiceReport struct {
	Accumulated hexutil.Uint64 `json:"accumulated"` // number of packages
	First       hexutil.Uint64 `json:"first"`       // block number
	Last        hexutil.Uint64 `json:"last"`        // block number
	Root        common.Hash    `json:"root"`        // of the state after Last
	Duplicates  []uint64       `json:"duplicates"`
	Gaps        []uint64       `json:"gaps"`
}

// QueueStatus implements jam_queueStatus.
func (a *jamMethods) QueueStatus(ctx context.Context) (_ *QueueStatus, err error) {
	defer ledger.Recover(&err)
	if answer, asked, err := askLeader[*QueueStatus](ctx, a.api, "jam_queueStatus"); asked {
		return answer, err
	}
	stats, err := a.node.QueueStats(ctx)
	if err != nil {
		return nil, err
	}
	best, finalized := a.node.JAMHeads()
	s := &QueueStatus{
		Pending:       hexutil.Uint64(a.node.Resolve(rpc.PendingBlockNumber).NumberU64()),
		Latest:        hexutil.Uint64(a.node.Resolve(rpc.LatestBlockNumber).NumberU64()),
		Finalized:     hexutil.Uint64(a.node.Resolve(rpc.FinalizedBlockNumber).NumberU64()),
		CanonicalRoot: a.node.CanonicalRoot(),
		Bundles:       make(map[string]int),
		Transitions:   make(map[string]uint64),
		Packages:      stats.Totals.Built,
		Sends:         stats.Totals.Sends,
		Died:          stats.Totals.Died,
		JAMSlot:       hexutil.Uint64(a.node.JAMSlot()),
		JAMBest:       best,
		JAMFinalized:  finalized,
	}
	for state := range stats.Count {
		name := bundlequeue.State(state).String()
		s.Bundles[name] = stats.Count[state]
		s.Transitions[name] = stats.Totals.Entered(bundlequeue.State(state))
	}
	report := a.node.Service()
	s.Service = ServiceReport{
		Accumulated: hexutil.Uint64(report.Total), First: hexutil.Uint64(report.First), Last: hexutil.Uint64(report.Last),
		Root: report.Root, Duplicates: append([]uint64{}, report.Duplicates...), Gaps: append([]uint64{}, report.Gaps...),
	}
	return s, nil
}

// GetLimits implements jam_getLimits. It returns the limits that a transaction must
// meet, such as the maximum size.
func (a *jamMethods) GetLimits() evmrollup.Limits { return a.node.Limits() }

// Bundle is the answer of jam_getBundle: a rollup block and its status on JAM.
type Bundle struct {
	Number       hexutil.Uint64 `json:"number"`       // of the block
	Hash         common.Hash    `json:"hash"`         // of the block
	Transactions []common.Hash  `json:"transactions"` // hashes, in order
	Status       string         `json:"queueStatus"`  // state of the bundle in the queue
	Core         hexutil.Uint64 `json:"core"`         // of the current package
	// Slots are the JAM slots at which the bundle has entered each state.
	Slots map[string]hexutil.Uint64 `json:"slots"`
	// Versions are the packages that the node has built for the block, oldest first.
	// Versions is empty if the queue no longer has the block's bundle.
	Versions []BundleVersion `json:"versions"`
	// Version is the number of the current version.
	Version int `json:"version"`
	// WorkPackageHash is the hash of the current version's package. JAMHeaderHash is the
	// hash of the JAM block that proves Status. Each of them is null if it does not exist.
	WorkPackageHash *jamq.PackageHash `json:"workPackageHash"`
	JAMHeaderHash   *jamq.HeaderHash  `json:"jamHeaderHash"`
}

// BundleVersion is one package of a bundle. Attempts is the number of times that the
// package was sent. Reported, Available and Accumulated are the JAM blocks in which
// these events happened, or null. Dead is the reason why the package can never be
// accumulated; it is empty if it still can.
type BundleVersion struct {
	Version         int                `json:"version"`         // number, from 1
	WorkPackageHash jamq.PackageHash   `json:"workPackageHash"` // of the version
	Anchor          jamq.HeaderHash    `json:"anchor"`          // of its context
	Prerequisites   []jamq.PackageHash `json:"prerequisites"`   // packages that must be first
	Attempts        int                `json:"attempts"`
	Reported        *JAMPoint          `json:"reported"`
	Available       *JAMPoint          `json:"available"`
	Accumulated     *JAMPoint          `json:"accumulated"`
	Dead            string             `json:"dead,omitempty"`
}

// JAMPoint identifies a JAM block by header hash and slot.
type JAMPoint struct {
	HeaderHash jamq.HeaderHash `json:"headerHash"` // of the block
	Slot       hexutil.Uint64  `json:"slot"`       // of the block
}

func jamPoint(p anchor.Point) *JAMPoint {
	if p.IsZero() {
		return nil
	}
	return &JAMPoint{p.Hash, hexutil.Uint64(p.Slot)}
}

// GetBundle implements jam_getBundle. It returns the progress of a rollup block on JAM,
// or null if there is no block with the given number or tag.
func (a *jamMethods) GetBundle(ctx context.Context, number rpc.BlockNumber) (_ *Bundle, err error) {
	defer ledger.Recover(&err)
	if answer, asked, err := askLeader[*Bundle](ctx, a.api, "jam_getBundle", number); asked {
		return answer, err
	}
	b, err := whole(a.node.Resolve(number))
	if b == nil {
		return nil, err
	}
	p := a.node.Progress(b.NumberU64())
	bundle := &Bundle{
		Number: hexutil.Uint64(b.NumberU64()), Hash: b.Hash(), Transactions: []common.Hash{},
		Status: p.Status, Core: hexutil.Uint64(p.Core), Slots: make(map[string]hexutil.Uint64, len(p.Slots)),
		Versions: []BundleVersion{}, Version: p.Version,
	}
	for _, tx := range b.Transactions() {
		bundle.Transactions = append(bundle.Transactions, tx.Hash())
	}
	for state, slot := range p.Slots {
		bundle.Slots[state] = hexutil.Uint64(slot)
	}
	if !p.Package.IsZero() {
		bundle.WorkPackageHash = &p.Package
	}
	if !p.At.IsZero() {
		bundle.JAMHeaderHash = &p.At.Hash
	}
	info, found, err := a.node.BundleInfo(ctx, b.NumberU64())
	if err != nil || !found {
		return bundle, err
	}
	for _, v := range info.Versions {
		bv := BundleVersion{
			Version: v.Version, WorkPackageHash: v.Package, Anchor: v.Anchor.Hash,
			Prerequisites: append([]jamq.PackageHash{}, v.Prerequisites...), Attempts: v.Attempts,
			Reported: jamPoint(v.Reported), Available: jamPoint(v.Available), Accumulated: jamPoint(v.Accumulated),
		}
		if v.Dead != anchor.Alive {
			bv.Dead = v.Dead.String()
		}
		bundle.Versions = append(bundle.Versions, bv)
	}
	return bundle, nil
}
