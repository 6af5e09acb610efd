package builder

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/wire"
)

// bundle is a block in the queue, with the package that was built last.
type bundle[B any] struct {
	block Block[B]
	pkg   *Package // nil before the first one is built
}

// stored encodes blocks and bundles for the log. It implements
// bundlequeue.Codec.
type stored[B any] struct {
	codec Codec[B]
	// opened means that Open has ended. From then on only the runner decodes, to check its
	// snapshots: bodies are left out, so that no code of the host runs on its goroutine.
	opened *atomic.Bool
}

// encode returns the encoding of a body. The error wraps ErrCodec if a restart would read
// another body, or none.
func (s stored[B]) encode(body B) (raw []byte, err error) {
	err = guard(func() (err error) {
		if raw, err = s.codec.Encode(body); err != nil {
			return err
		}
		again, err := s.codec.Decode(raw)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCodec, err)
		}
		if have, err := s.codec.Encode(again); err != nil || !bytes.Equal(have, raw) {
			return fmt.Errorf("%w: have %.80q after decoding, want %.80q, %v", ErrCodec, have, raw, err)
		}
		return nil
	})
	return raw, err
}

// AppendBundle implements bundlequeue.Codec.
func (s stored[B]) AppendBundle(to []byte, b bundle[B]) []byte {
	to = s.appendBlock(to, &b.block)
	to = wire.AppendBool(to, b.pkg != nil)
	if b.pkg == nil {
		return to
	}
	to = wire.AppendHash(to, b.pkg.Hash)
	c := &b.pkg.Context
	to = wire.AppendHash(to, c.Anchor)
	to = wire.AppendHash(to, c.StateRoot)
	to = wire.AppendHash(to, c.BeefyRoot)
	to = wire.AppendHash(to, c.LookupAnchor)
	to = wire.AppendUint(to, uint64(c.LookupAnchorSlot))
	to = wire.AppendUint(to, uint64(c.AnchorSlot))
	to = wire.AppendHash(to, c.LookupStateRoot)
	to = wire.AppendHashes(to, c.Prerequisites)
	return wire.AppendBytes(to, b.pkg.Data)
}

// DecodeBundle implements bundlequeue.Codec.
func (s stored[B]) DecodeBundle(raw []byte) (b bundle[B], err error) {
	r := wire.NewReader(raw)
	if b.block, err = s.readBlock(r); err != nil {
		return b, err
	}
	if r.Bool() {
		p := &Package{Hash: wire.ReadHash[jamq.PackageHash](r)}
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
		b.pkg = p
	}
	return b, r.Done()
}

// appendBlock appends a block. Its body is encoded already, because the host's codec
// must not run on the goroutine of the queue.
func (s stored[B]) appendBlock(to []byte, b *Block[B]) []byte {
	return wire.AppendBytes(appendRoots(to, b), b.raw)
}

func appendRoots[B any](to []byte, b *Block[B]) []byte {
	to = wire.AppendUint(to, b.Number)
	to = wire.AppendUint(to, b.serial)
	to = wire.AppendHash(to, b.PreRoot)
	to = wire.AppendHash(to, b.Root)
	return wire.AppendHash(to, b.commitment)
}

func readRoots[B any](r *wire.Reader) Block[B] {
	return Block[B]{
		Number: r.Uint(), serial: r.Uint(),
		PreRoot: wire.ReadHash[common.Hash](r), Root: wire.ReadHash[common.Hash](r), commitment: wire.ReadHash[common.Hash](r),
	}
}

func (s stored[B]) readBlock(r *wire.Reader) (Block[B], error) {
	b := readRoots[B](r)
	b.raw = bytes.Clone(r.Bytes())
	if r.Err() != nil || s.opened.Load() {
		return b, r.Err()
	}
	err := guard(func() (err error) { b.Body, err = s.codec.Decode(b.raw); return err })
	if err != nil {
		err = fmt.Errorf("builder: the body of block %d: %w", b.Number, err)
	}
	return b, err
}

// version is the version of the format of the log.
const version = 6

// ErrVersion is wrapped by the error of a log that another version of this package
// has written. docs/embedding.md describes the upgrade.
var ErrVersion = errors.New("builder: the log has another version; drain the builder with the program that wrote it, and begin with an empty log")

// ErrCorrupt is wrapped by the error of a log with a record that no builder wrote.
var ErrCorrupt = errors.New("builder: the log is corrupt")

// checkpoint is the first record of a log: the chain, and how many records of the
// rollup follow.
type checkpoint[B any] struct {
	serial  uint64
	first   uint64 // number of the first block of the queue
	made    bool   // by the rollup; otherwise it is the genesis
	records int
	final   Block[B]
	blocks  []Block[B]
}

// checkpointRecords returns the records of a checkpoint with the state of the rollup.
func (s stored[B]) checkpointRecords(c *checkpoint[B], state [][]byte) [][]byte {
	begin := append([]byte{recordCheckpoint}, s.appendCheckpoint(nil, c)...)
	return append([][]byte{begin}, framed(recordState, state)...)
}

func (s stored[B]) appendCheckpoint(to []byte, c *checkpoint[B]) []byte {
	to = wire.AppendUint(to, version)
	to = wire.AppendUint(to, c.serial)
	to = wire.AppendUint(to, c.first)
	to = wire.AppendBool(to, c.made)
	to = wire.AppendUint(to, uint64(c.records))
	to = appendRoots(to, &c.final)
	to = wire.AppendUint(to, uint64(len(c.blocks)))
	for i := range c.blocks {
		to = s.appendBlock(to, &c.blocks[i])
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

func (s stored[B]) readCheckpoint(raw []byte) (*checkpoint[B], error) {
	r := wire.NewReader(raw)
	if v := r.Uint(); r.Err() == nil && v != version {
		return nil, fmt.Errorf("%w: have %d, want %d", ErrVersion, v, version)
	}
	c := &checkpoint[B]{serial: r.Uint(), first: r.Uint(), made: r.Bool(), records: int(r.UintBelow(1<<31, "records")), final: readRoots[B](r)}
	for range r.Count(1) {
		b, err := s.readBlock(r)
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
