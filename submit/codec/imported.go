package codec

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// ErrExtrinsicHash is returned if the extrinsic hash in a block's header does not
// match the block's extrinsic.
var ErrExtrinsicHash = errors.New("codec: wrong extrinsic hash")

// ErrUnknownSet is returned if the number of validators is needed to interpret a
// block, but is unknown or out of range; see [Codec.ImportedBy].
var ErrUnknownSet = errors.New("codec: unknown size of the validator set")

// SetSizes contains the sizes of two validator sets after a block: the active set,
// and the set of the next epoch. From Gray Paper 0.8.0 on, the sizes change, and a
// host needs them for [Codec.ImportedBy]. The host computes them from header to
// header with After. After the genesis block, both sizes are the number of
// validators in its epoch mark.
type SetSizes struct {
	// Active is the number of validators that author and assure blocks now. Next is the number of
	// validators that will do so in the next epoch.
	Active, Next int
}

// After returns the sizes after the next block, which has the given header. Only
// the first block of an epoch changes the sizes; its header has an epoch mark (GP
// 6.13, 6.27).
func (s SetSizes) After(h *Header) SetSizes {
	if h.Epoch == nil {
		return s
	}
	return s.after(len(h.Epoch.Validators))
}

// noMark is the value of Effect.Next for a block without an epoch mark.
const noMark = -1

// after returns the sizes after a block with next validators in its epoch mark.
func (s SetSizes) after(next int) SetSizes {
	if next == noMark {
		return s
	}
	return SetSizes{Active: s.Next, Next: next}
}

// Imported calls ImportedBy with the number of validators in the chain's
// constants. From Gray Paper 0.8.0 on, the size of the validator set changes, and
// a block does not contain it. If such a block has assurances or begins an epoch,
// Imported returns an error that wraps ErrUnknownSet. It must not guess, because a
// wrong size could hide that a report is available, and a queue could take a live
// package for dead.
func (c *Codec) Imported(b *Block) (jamq.Block, error) {
	if n := len(b.Extrinsic.Assurances); c.version >= V080 && (n > 0 || b.Header.Epoch != nil) {
		return jamq.Block{}, fmt.Errorf("%w: the block has %d assurances and begins an epoch: %t; use ImportedBy", ErrUnknownSet, n, b.Header.Epoch != nil)
	}
	return c.ImportedBy(b, c.maxValidators(), c.maxValidators())
}

// maxValidators returns the greatest number of validators that a set on this chain can have.
func (c *Codec) maxValidators() int {
	if c.version >= V080 {
		return jamq.ValidatorsOf(c.cores)
	}
	return c.validators
}

// ImportedBy returns the effect of a block on work reports: the reports that it
// puts on cores, those that become available, and those that are removed by a
// verdict or because the number of validators changes. It does not derive which
// packages the block accumulates.
//
// before is the number of active validators after the parent, which sign the
// block's assurances; after is the number after the block. [SetSizes] provides
// both. ImportedBy checks only that the header commits to the extrinsic, and that
// reports are on active cores. The caller must know that the header is valid.
// Errors are those of Encode or wrap one of these:
//
//   - ErrUnknownSet: before or after is below 1, or greater than the largest set.
//   - ErrExtrinsicHash: the header does not commit to the extrinsic.
//   - jamq.ErrInvalidBlock: a report is on a core that is not active.
func (c *Codec) ImportedBy(b *Block, before, after int) (jamq.Block, error) {
	e, err := c.EffectOf(b)
	if err != nil {
		return jamq.Block{}, err
	}
	return e.importedBy(before, after)
}

// Effect contains everything that a single block shows about work reports. To learn which
// reports became available, the number of validators is needed too, and from Gray Paper
// 0.8.0 on it follows from earlier blocks. A program that receives the newest block first
// therefore keeps an Effect for each block, and later calls Imported from the oldest block
// on.
type Effect struct {
	// Block lacks what depends on the number of validators, which are Available
	// and CoresCleared.
	Block jamq.Block
	// Assured has the number of validators that assure the report on each core.
	Assured []uint16
	// Next is the number of validators of the next epoch, which only the first block of an
	// epoch announces in its epoch mark. For all other blocks it is -1.
	Next int

	version Version
	most    int // the greatest number of validators in a set
}

// EffectOf extracts from a block everything about work reports that can be known without
// earlier blocks. It checks only that the header commits to the extrinsic. Errors are
// those of Encode or wrap ErrExtrinsicHash.
func (c *Codec) EffectOf(b *Block) (Effect, error) {
	commitment, err := c.ExtrinsicHash(&b.Extrinsic)
	if err != nil {
		return Effect{}, err
	}
	if commitment != b.Header.ExtrinsicHash {
		return Effect{}, fmt.Errorf("%w: header says %s, extrinsic has %s", ErrExtrinsicHash, b.Header.ExtrinsicHash, commitment)
	}
	out := jamq.Block{Parent: b.Header.Parent, ParentStateRoot: b.Header.ParentStateRoot, Slot: b.Header.Slot}
	if out.Hash, err = c.HeaderHash(&b.Header); err != nil {
		return Effect{}, err
	}
	for i := range b.Extrinsic.Guarantees {
		r := &b.Extrinsic.Guarantees[i].Report
		reportHash, err := c.hash(r)
		if err != nil {
			return Effect{}, err
		}
		out.Reported = append(out.Reported, jamq.Report{
			Hash: reportHash, Package: r.Package.Hash, SegmentRoot: r.Package.SegmentRoot, Core: r.Core,
			Anchor: r.Context.Anchor, Prerequisites: r.dependencies(),
		})
	}
	out.Condemned = condemned(b.Extrinsic.Disputes.Verdicts)
	var bitfields [][]byte
	for i := range b.Extrinsic.Assurances {
		bitfields = append(bitfields, b.Extrinsic.Assurances[i].Bitfield)
	}
	e := Effect{Block: out, Assured: jamq.CountAssurances(c.cores, bitfields), Next: noMark, version: c.version, most: c.maxValidators()}
	if b.Header.Epoch != nil {
		e.Next = len(b.Header.Epoch.Validators)
	}
	return e, nil
}

// Imported returns the block as a queue needs it: the reports, the cores that became
// available, and the condemned reports. parent has the sizes of the validator sets after
// the parent of the block. The second result has the sizes after the block, for its
// children. Errors wrap ErrUnknownSet or jamq.ErrInvalidBlock, for the reasons that
// ImportedBy names.
func (e *Effect) Imported(parent SetSizes) (jamq.Block, SetSizes, error) {
	sizes := parent.after(e.Next)
	out, err := e.importedBy(parent.Active, sizes.Active)
	return out, sizes, err
}

// importedBy completes the effect with the numbers of active validators.
func (e *Effect) importedBy(before, after int) (jamq.Block, error) {
	if min(before, after) < 1 || max(before, after) > e.most {
		return jamq.Block{}, fmt.Errorf("%w: %d validators and %d after the block, want 1 to %d", ErrUnknownSet, before, after, e.most)
	}
	const perCore = 3 // GP 0.8.0, 11.4
	for i := range e.Block.Reported {
		core := e.Block.Reported[i].Core
		if active := after / perCore; e.version >= V080 && int(core) >= active {
			return jamq.Block{}, fmt.Errorf("%w: report on core %d, of which %d are active", jamq.ErrInvalidBlock, core, active)
		}
	}
	out := e.Block
	out.CoresCleared = before != after
	out.Available = jamq.AvailableCores(before, e.Assured)
	return out, nil
}

// dependencies returns the packages that must be accumulated before the report's
// package (GP 12.5).
func (x *WorkReport) dependencies() []jamq.PackageHash {
	out := append([]jamq.PackageHash(nil), x.Context.Prerequisites...)
	// The package also depends on the packages whose segments it imports by package
	// hash.
	for _, l := range x.Lookups {
		out = append(out, l.Package)
	}
	return out
}

// condemned returns the reports that the verdicts remove from their cores.
func condemned(verdicts []verdict) []common.Hash {
	var out []common.Hash
	for i := range verdicts {
		for _, v := range verdicts[i].Votes {
			// One vote against the report is enough (GP 10.15).
			if !v.Valid {
				out = append(out, verdicts[i].Target)
				break
			}
		}
	}
	return out
}
