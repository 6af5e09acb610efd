package node

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/statedb"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/codec"
)

// Bundle is the content of a rollup block in the queue.
type Bundle struct {
	// Block is the executed block, and PreRoot the state root before it.
	Block   *Block
	PreRoot common.Hash
	// pkg is the work package, or nil before it is built.
	pkg *workPackage
}

// transition is the payload of a block's work item. The rollup's service checks
// and stores it. The witness has all of the state that a guarantor needs to
// execute the block again, and proves both roots.
type transition struct {
	Number            uint64
	PreRoot, PostRoot common.Hash
	Block             *types.Block
	Witness           []byte
}

// The gas of the only work item of a package.
const (
	refineGas     = 1_000_000_000
	accumulateGas = 1_000_000
)

// packager builds packages and sends them to guarantors, for the runner.
type packager struct{ *Node }

// Build implements submit.Builder. It executes the block again on its own
// pre-state, whatever the canonical root is, and packs it with its witness only
// if the result has the same hash.
func (n packager) Build(ctx context.Context, r bundlequeue.Build[Bundle]) (submit.Package[Bundle], error) {
	parent := n.ledger.byNumber(r.Number - 1)
	if parent == nil || parent.Root() != r.Bundle.PreRoot {
		return submit.Package[Bundle]{}, fmt.Errorf("node: block %d: its parent was undone", r.Number)
	}
	_, witness, err := n.replay(parent, r.Bundle.Block.Block, (*statedb.View).Root)
	if err != nil {
		return submit.Package[Bundle]{}, err
	}
	refine, err := n.jam.refine(ctx, r.Anchor.Hash, r.Prerequisites)
	if err != nil {
		return submit.Package[Bundle]{}, err
	}
	payload, err := rlp.EncodeToBytes(&transition{r.Number, r.Bundle.PreRoot, r.Bundle.Block.Root(), r.Bundle.Block.Block, witness.Encode()})
	if err != nil {
		return submit.Package[Bundle]{}, fmt.Errorf("node: encode block %d: %w", r.Number, err)
	}
	work := codec.WorkPackage{
		AuthCodeHost: n.cfg.Service,
		Context:      refine,
		Items:        []codec.WorkItem{{Service: n.cfg.Service, RefineGas: refineGas, AccumulateGas: accumulateGas, Payload: payload}},
	}
	raw, err := n.codec.Encode(&work)
	if err != nil {
		return submit.Package[Bundle]{}, err
	}
	hash, err := n.codec.PackageHash(&work)
	if err != nil {
		return submit.Package[Bundle]{}, err
	}
	bundle := r.Bundle
	bundle.pkg = &workPackage{hash: hash, context: refine, raw: raw, payload: payload}
	return submit.Package[Bundle]{Hash: hash, Context: refine, Bundle: bundle}, nil
}

// bundleCodec encodes bundles for the queue's journal.
type bundleCodec struct{ packages *codec.Codec }

// storedBundle is a bundle on disk. Its package is encoded, and empty before it
// is built.
type storedBundle struct {
	PreRoot common.Hash
	Block   *types.Block
	Package []byte
}

// AppendBundle implements bundlequeue.Codec.
func (bundleCodec) AppendBundle(b []byte, bundle Bundle) []byte {
	stored := storedBundle{PreRoot: bundle.PreRoot, Block: bundle.Block.Block}
	if bundle.pkg != nil {
		stored.Package = bundle.pkg.raw
	}
	raw, err := rlp.EncodeToBytes(&stored)
	if err != nil {
		panic(err) // a sealed block can be encoded
	}
	return append(b, raw...)
}

// DecodeBundle implements bundlequeue.Codec.
func (c bundleCodec) DecodeBundle(b []byte) (Bundle, error) {
	var stored storedBundle
	if err := rlp.DecodeBytes(b, &stored); err != nil {
		return Bundle{}, fmt.Errorf("node: journaled bundle: %w", err)
	}
	bundle := Bundle{Block: &Block{Block: stored.Block}, PreRoot: stored.PreRoot}
	if len(stored.Package) == 0 {
		return bundle, nil
	}
	work, err := codec.Decode[codec.WorkPackage](c.packages, stored.Package)
	if err != nil {
		return Bundle{}, fmt.Errorf("node: journaled bundle: %w", err)
	}
	hash, err := c.packages.PackageHash(&work)
	if err != nil || len(work.Items) != 1 {
		return Bundle{}, fmt.Errorf("node: journaled bundle: a package of %d items: %w", len(work.Items), err)
	}
	bundle.pkg = &workPackage{hash: hash, context: work.Context, raw: stored.Package, payload: work.Items[0].Payload}
	return bundle, nil
}

// Submit implements submit.Submitter. Each attempt goes to a different
// guarantor.
func (n packager) Submit(ctx context.Context, r bundlequeue.Send[Bundle]) error {
	return n.jam.submit(ctx, r.Core, r.Attempt, r.Bundle.pkg)
}
