package statedb

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/statedb/ubt"
)

// An export is a stream of
//
//	"jamq state", version 1 byte, length of the layout's name 1 byte, name
//	root 32 bytes
//	c, length as a varint, code     for each code, in the order of hashes
//	v, key, value                   for each value, in the order of keys
//	e, the SHA-256 hash of all before
const (
	exportMagic   = "jamq state"
	exportVersion = 1
	exportEnd     = 'e'

	// exportCheck is the number of values that Export and Import process before they check the
	// context again.
	exportCheck = 1 << 12
)

// Export writes the state of a published root to w, so that Import can publish the
// root in another store. The export may contain code that only older states needed.
// The store can be used during the export. The error wraps ErrUnknownRoot, or comes
// from w or ctx.
func (s *Store) Export(ctx context.Context, w io.Writer, root common.Hash) error {
	at, code, err := s.exported(root)
	if err != nil {
		return err
	}
	buffer, sum := bufio.NewWriter(w), sha256.New()
	out := exporter{out: io.MultiWriter(buffer, sum)}
	out.write([]byte(exportMagic), []byte{exportVersion, byte(len(layout))}, []byte(layout), root[:])
	for _, c := range code {
		out.write(binary.AppendUvarint([]byte{codeRecord}, uint64(len(c))), c)
	}
	n := 0
	record := []byte{valueRecord}
	for k, value := range at.tree.All {
		if n++; n%exportCheck == 0 && out.err == nil {
			out.err = ctx.Err()
		}
		if out.err != nil {
			break
		}
		record = append(append(record[:1], k[:]...), value[:]...)
		out.write(record)
	}
	out.write([]byte{exportEnd})
	out.write(sum.Sum(nil))
	if out.err == nil {
		out.err = buffer.Flush()
	}
	if out.err != nil {
		return fmt.Errorf("statedb: export of %s: %w", root, out.err)
	}
	return nil
}

// exporter writes until the first error, so that Export checks only at the end.
type exporter struct {
	out io.Writer
	err error
}

func (e *exporter) write(parts ...[]byte) {
	for _, b := range parts {
		if e.err == nil {
			_, e.err = e.out.Write(b)
		}
	}
}

// exported returns what Export writes: the tree of a root, and its code.
func (s *Store) exported(root common.Hash) (at place, code [][]byte, err error) {
	if at, err = s.place(root); err != nil {
		return at, nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if _, err := s.known(root); err != nil {
		return at, nil, err
	}
	needed := make(map[common.Hash]bool)
	for r := range s.ancestors(root) {
		for _, h := range s.roots[r].codes {
			needed[h] = true
		}
	}
	for b := range s.code.blobs.all {
		// The state may need the code of the root and its ancestors, and code that
		// is kept forever.
		if needed[b.hash] || s.code.kept[b.hash] {
			code = append(code, b.code)
		}
	}
	return at, code, nil
}

// Import reads an export and publishes its root, as if the root had been committed on the empty
// root. root is the expected root, which the caller must know from a trusted source, because Import
// checks the values against it. With a disk, Import needs memory for the values twice.
//
// If Import returns an error, nothing has changed. The error is that of r or ctx, or it wraps one
// of these:
//
//   - ErrExport: the data is damaged or has another root.
//   - ErrConfig: the export has a tree with another layout.
//   - ErrDisk: the disk has failed.
func (s *Store) Import(ctx context.Context, r io.Reader, root common.Hash) error {
	in := importer{in: bufio.NewReader(r), sum: sha256.New(), builder: ubt.NewBuilder(&hasher)}
	if err := in.header(root); err != nil {
		return err
	}
	for n := 1; !in.ended; n++ {
		if n%exportCheck == 0 && ctx.Err() != nil {
			return fmt.Errorf("statedb: import of %s: %w", root, ctx.Err())
		}
		if err := in.record(); err != nil {
			return err
		}
	}
	tree, err := in.builder.Tree()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrExport, err)
	}
	if tree.Root() != root {
		return fmt.Errorf("%w: the values have the root %s, want %s", ErrExport, tree.Root(), root)
	}
	var writes []ubt.Write
	if s.cfg.Disk != nil {
		writes = slices.Collect(tree.Diff(ubt.Tree{}))
	}
	_, err = s.publish(EmptyRoot, tree, writes, in.code)
	return err
}

// importer reads an export.
type importer struct {
	in      *bufio.Reader
	sum     hash.Hash
	builder *ubt.Builder
	code    []codeBlob
	pair    [2 * common.HashLength]byte // a key and its value
	ended   bool
}

// take reads n bytes.
func (i *importer) take(n int) ([]byte, error) {
	b := make([]byte, n)
	return b, i.fill(b)
}

func (i *importer) fill(b []byte) error {
	switch _, err := io.ReadFull(i.in, b); err {
	case nil:
	case io.EOF, io.ErrUnexpectedEOF:
		return fmt.Errorf("%w: it ends early", ErrExport)
	default:
		return fmt.Errorf("statedb: import: %w", err)
	}
	i.sum.Write(b)
	return nil
}

// ReadByte implements io.ByteReader.
func (i *importer) ReadByte() (byte, error) {
	err := i.fill(i.pair[:1])
	return i.pair[0], err
}

func (i *importer) header(root common.Hash) error {
	start, err := i.take(len(exportMagic) + 2)
	if err != nil {
		return err
	}
	if want := append([]byte(exportMagic), exportVersion); !bytes.Equal(start[:len(want)], want) {
		return fmt.Errorf("%w: it begins with %x, want %x", ErrExport, start[:len(want)], want)
	}
	name, err := i.take(int(start[len(start)-1]))
	if err != nil {
		return err
	}
	if string(name) != layout {
		return fmt.Errorf("%w: the export has the layout %q, want %q", ErrConfig, name, layout)
	}
	got, err := i.take(common.HashLength)
	if err == nil && common.Hash(got) != root {
		err = fmt.Errorf("%w: it is of root %x, want %s", ErrExport, got, root)
	}
	return err
}

func (i *importer) record() error {
	kind, err := i.ReadByte()
	if err != nil {
		return err
	}
	switch kind {
	case codeRecord:
		return i.codeBlob()
	case valueRecord:
		if err := i.fill(i.pair[:]); err != nil {
			return err
		}
		if err := i.builder.Add(Key(i.pair[:32]), [32]byte(i.pair[32:])); err != nil {
			return fmt.Errorf("%w: %w", ErrExport, err)
		}
		return nil
	case exportEnd:
		want := i.sum.Sum(nil)
		got, err := i.take(len(want))
		if err == nil && !bytes.Equal(got, want) {
			err = fmt.Errorf("%w: checksum is %x, want %x", ErrExport, got, want)
		}
		i.ended = true
		return err
	}
	return fmt.Errorf("%w: record %#x", ErrExport, kind)
}

func (i *importer) codeBlob() error {
	size, err := binary.ReadUvarint(i)
	if err != nil {
		return fmt.Errorf("%w: length of code: %w", ErrExport, err)
	}
	if size == 0 || size > maxCodeSize {
		return fmt.Errorf("%w: code of %d bytes, want 1 to %d", ErrExport, size, maxCodeSize)
	}
	code, err := i.take(int(size))
	if err != nil {
		return err
	}
	b := codeBlob{keccak(code), code}
	if n := len(i.code); n > 0 && !blobLess(i.code[n-1], b) {
		return fmt.Errorf("%w: code %s after %s, want ascending order", ErrExport, b.hash, i.code[n-1].hash)
	}
	i.code = append(i.code, b)
	return nil
}
