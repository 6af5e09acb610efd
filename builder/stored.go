package builder

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/wire"
)

// This file contains the encodings of blocks, packages and checkpoints in the log.
// The queue also stores blocks and packages in these encodings.

// encode returns the encoding of a block's body.
func (e *engine) encode(body any) (raw []byte, err error) {
	err = guard(func() (err error) {
		if raw, err = e.host.encode(body); err != nil {
			return err
		}
		// Decode the body at once and compare, because after a restart the rollup gets the
		// decoded body and must reach the same state with it.
		again, err := e.host.decode(raw)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCodec, err)
		}
		if have, err := e.host.encode(again); err != nil || !bytes.Equal(have, raw) {
			return fmt.Errorf("%w: have %.80q after decoding, want %.80q, %v", ErrCodec, have, raw, err)
		}
		return nil
	})
	return raw, err
}

// appendPackage appends the encoding of a package.
func appendPackage(to []byte, p *Package) []byte {
	to = wire.AppendHash(to, p.Hash)
	c := &p.Context
	to = wire.AppendHash(to, c.Anchor)
	to = wire.AppendHash(to, c.StateRoot)
	to = wire.AppendHash(to, c.BeefyRoot)
	to = wire.AppendHash(to, c.LookupAnchor)
	to = wire.AppendUint(to, uint64(c.LookupAnchorSlot))
	to = wire.AppendUint(to, uint64(c.AnchorSlot))
	to = wire.AppendHash(to, c.LookupStateRoot)
	to = wire.AppendHashes(to, c.Prerequisites)
	return wire.AppendBytes(to, p.Data)
}

// readPackage decodes the output of appendPackage.
func readPackage(raw []byte) (p Package, err error) {
	r := wire.NewReader(raw)
	p.Hash = wire.ReadHash[jamq.PackageHash](r)
	c := &p.Context
	c.Anchor = wire.ReadHash[jamq.HeaderHash](r)
	c.StateRoot = wire.ReadHash[common.Hash](r)
	c.BeefyRoot = wire.ReadHash[common.Hash](r)
	c.LookupAnchor = wire.ReadHash[jamq.HeaderHash](r)
	c.LookupAnchorSlot = jamq.Slot(r.Uint())
	c.AnchorSlot = jamq.Slot(r.Uint())
	c.LookupStateRoot = wire.ReadHash[common.Hash](r)
	c.Prerequisites = wire.ReadHashes[jamq.PackageHash](r)
	p.Data = bytes.Clone(r.Bytes())
	return p, r.Done()
}

// appendBlock appends the encoding of a block, whose body must be encoded already.
func appendBlock(to []byte, b *block) []byte {
	// The body was encoded when the block was proposed. Encoding it here would call the host's
	// code during a step, and that code may hang.
	return wire.AppendBytes(appendRoots(to, b), b.raw)
}

// readBlock decodes the output of appendBlock, except the body, which decode decodes.
func readBlock(raw []byte) (block, error) {
	r := wire.NewReader(raw)
	b := readRoots(r)
	b.raw = bytes.Clone(r.Bytes())
	return b, r.Done()
}

// decode sets the body of a block from its encoding.
func (e *engine) decode(b *block) error {
	err := guard(func() (err error) { b.Body, err = e.host.decode(b.raw); return err })
	if err != nil {
		return fmt.Errorf("builder: the body of block %d: %w", b.Number, err)
	}
	return nil
}

func appendRoots(to []byte, b *block) []byte {
	to = wire.AppendUint(to, b.Number)
	to = wire.AppendUint(to, b.serial)
	to = wire.AppendHash(to, b.PreRoot)
	to = wire.AppendHash(to, b.Root)
	return wire.AppendHash(to, b.commitment)
}

func readRoots(r *wire.Reader) block {
	return block{
		Number: r.Uint(), serial: r.Uint(),
		PreRoot: wire.ReadHash[common.Hash](r), Root: wire.ReadHash[common.Hash](r), commitment: wire.ReadHash[common.Hash](r),
	}
}

// version is the version of the log's format.
const version = 10

// ErrVersion is wrapped by the error of Open if a different version of this package
// has written the log. docs/embedding.md describes the upgrade.
var ErrVersion = errors.New("builder: the log has another version; drain the builder with the program that wrote it, and begin with an empty log")

// ErrCorrupt is wrapped by the error of Open if the log contains a record that no
// builder can have written.
var ErrCorrupt = errors.New("builder: the log is corrupt")

// checkpoint is the first record of a log. It contains the chain, the configuration of
// the queue, and the counts of the records that follow, with the state of the rollup
// and the snapshot of the queue.
type checkpoint struct {
	serial  uint64
	noted   uint64 // number of the last event
	first   uint64 // number of the first block of the queue
	made    bool   // by the rollup; otherwise it is the genesis
	doubted bool   // see doubt
	records int    // of the rollup's state
	parts   int    // of the queue's snapshot
	config  []byte // of the queue, as JSON
	final   block
	blocks  []block
}

// checkpointRecords returns all records of a checkpoint, for the log.
func checkpointRecords(c *checkpoint, state [][]byte, queue []byte) [][]byte {
	const partSize = 1 << 20 // logs limit the size of a record
	parts := slices.Collect(slices.Chunk(queue, partSize))
	c.records, c.parts = len(state), len(parts)
	begin := append([]byte{recordCheckpoint}, appendCheckpoint(nil, c)...)
	return slices.Concat([][]byte{begin}, framed(recordState, state), framed(recordPart, parts))
}

func appendCheckpoint(to []byte, c *checkpoint) []byte {
	to = wire.AppendUint(to, version)
	to = wire.AppendUint(to, c.serial)
	to = wire.AppendUint(to, c.noted)
	to = wire.AppendUint(to, c.first)
	to = wire.AppendBool(to, c.made)
	to = wire.AppendBool(to, c.doubted)
	to = wire.AppendUint(to, uint64(c.records))
	to = wire.AppendUint(to, uint64(c.parts))
	to = wire.AppendBytes(to, c.config)
	to = appendRoots(to, &c.final)
	to = wire.AppendUint(to, uint64(len(c.blocks)))
	for i := range c.blocks {
		to = wire.AppendBytes(to, appendBlock(nil, &c.blocks[i]))
		to = appendProgress(to, &c.blocks[i].Progress)
	}
	return to
}

func appendProgress(to []byte, p *Progress) []byte {
	to = wire.AppendUint(to, uint64(p.State))
	to = wire.AppendUint(to, uint64(p.Version))
	to = wire.AppendHash(to, p.Package)
	to = wire.AppendUint(to, uint64(p.Core))
	to = wire.AppendHash(to, p.At.Hash)
	to = wire.AppendUint(to, uint64(p.At.Slot))
	return wire.AppendUint(to, p.At.Height)
}

func readProgress(r *wire.Reader) Progress {
	return Progress{
		State: bundlequeue.State(r.UintBelow(1<<8, "state")), Version: int(r.UintBelow(1<<31, "version")),
		Package: wire.ReadHash[jamq.PackageHash](r), Core: jamq.CoreIndex(r.UintBelow(1<<16, "core")),
		At: anchor.Point{Hash: wire.ReadHash[jamq.HeaderHash](r), Slot: jamq.Slot(r.UintBelow(1<<32, "slot")), Height: r.Uint()},
	}
}

func (e *engine) readCheckpoint(raw []byte) (*checkpoint, error) {
	r := wire.NewReader(raw)
	if v := r.Uint(); r.Err() == nil && v != version {
		return nil, fmt.Errorf("%w: have %d, want %d", ErrVersion, v, version)
	}
	c := &checkpoint{
		serial: r.Uint(), noted: r.Uint(), first: r.Uint(), made: r.Bool(), doubted: r.Bool(), records: int(r.UintBelow(1<<31, "records")),
		parts: int(r.UintBelow(1<<31, "parts")), config: bytes.Clone(r.Bytes()), final: readRoots(r),
	}
	for range r.Count(1) {
		b, err := readBlock(r.Bytes())
		if err == nil {
			err = e.decode(&b)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		b.Progress = readProgress(r)
		c.blocks = append(c.blocks, b)
	}
	if err := r.Done(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return c, nil
}
