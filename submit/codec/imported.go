package codec

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// ErrExtrinsicHash is returned if a header does not commit to the extrinsic of
// its block.
var ErrExtrinsicHash = errors.New("codec: wrong extrinsic hash")

// ErrUnknownSet is returned if the number of validators that judge the assurances
// of a block must be given.
var ErrUnknownSet = errors.New("codec: unknown size of the validator set")

// Imported is ImportedBy with the number of validators in the chain's constants.
// From Gray Paper 0.8.0 on, a set can be smaller, and a block does not show the
// size of the present one. Imported then returns an error that wraps
// ErrUnknownSet if the block has assurances. A wrong size would hide that a
// report is available, and a queue could take a live package for dead.
func (c *Codec) Imported(b *Block) (jamq.Block, error) {
	if c.version >= V080 && len(b.Extrinsic.Assurances) > 0 {
		return jamq.Block{}, fmt.Errorf("%w: the block has %d assurances; use ImportedBy", ErrUnknownSet, len(b.Extrinsic.Assurances))
	}
	return c.ImportedBy(b, c.validators)
}

// ImportedBy returns the effect of a block on reports: those that it puts on
// cores, those that become available, and those that a verdict clears. The
// packages that it accumulates must be derived from them. validators is the
// number of validators in the set that signs the block's assurances, from 1 to
// the number in the chain's constants. ImportedBy checks only that the header
// commits to the extrinsic; the caller must know that the header is valid.
// Errors wrap ErrUnknownSet if validators is out of range, or
// ErrExtrinsicHash, or are those of Encode.
func (c *Codec) ImportedBy(b *Block, validators int) (jamq.Block, error) {
	if validators < 1 || validators > c.validators {
		return jamq.Block{}, fmt.Errorf("%w: %d validators, want 1 to %d", ErrUnknownSet, validators, c.validators)
	}
	commitment, err := c.ExtrinsicHash(&b.Extrinsic)
	if err != nil {
		return jamq.Block{}, err
	}
	if commitment != b.Header.ExtrinsicHash {
		return jamq.Block{}, fmt.Errorf("%w: header says %s, extrinsic has %s", ErrExtrinsicHash, b.Header.ExtrinsicHash, commitment)
	}
	out := jamq.Block{Parent: b.Header.Parent, ParentStateRoot: b.Header.ParentStateRoot, Slot: b.Header.Slot}
	if out.Hash, err = c.HeaderHash(&b.Header); err != nil {
		return jamq.Block{}, err
	}
	for i := range b.Extrinsic.Guarantees {
		r := &b.Extrinsic.Guarantees[i].Report
		reportHash, err := c.hash(r)
		if err != nil {
			return jamq.Block{}, err
		}
		out.Reported = append(out.Reported, jamq.Report{
			Hash: reportHash, Package: r.Package.Hash, SegmentRoot: r.Package.SegmentRoot, Core: r.Core,
			Anchor: r.Context.Anchor, Prerequisites: r.dependencies(),
		})
	}
	var bitfields [][]byte
	for i := range b.Extrinsic.Assurances {
		bitfields = append(bitfields, b.Extrinsic.Assurances[i].Bitfield)
	}
	set := c.spec
	set.Validators = validators
	out.Available = jamq.AvailableCores(&set, bitfields)
	out.Condemned = condemned(b.Extrinsic.Disputes.Verdicts)
	return out, nil
}

// dependencies returns the packages that must be accumulated before the
// report's package: its prerequisites and the packages of its segment-root
// lookups (GP 12.5).
func (x *WorkReport) dependencies() []jamq.PackageHash {
	out := append([]jamq.PackageHash(nil), x.Context.Prerequisites...)
	for _, l := range x.Lookups {
		out = append(out, l.Package)
	}
	return out
}

// condemned returns the reports that verdicts clear from their cores: those
// with at least one vote that is not valid (GP 10.15).
func condemned(verdicts []verdict) []common.Hash {
	var out []common.Hash
	for i := range verdicts {
		for _, v := range verdicts[i].Votes {
			if !v.Valid {
				out = append(out, verdicts[i].Target)
				break
			}
		}
	}
	return out
}
