package evmrollup

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/evmrollup/internal/ledger"
)

// ErrExport is returned if a file is not a complete export of this chain.
var ErrExport = errors.New("evmrollup: the file cannot be imported")

// The kinds of records in an export, in the order in which the file contains them.
const (
	exportHead  = 'H' // JSON of exportHeader
	exportBlock = 'B' // RLP of exportedBlock, from block 1 on
	exportState = 'S' // a piece of statedb.Store.Export
	exportPool  = 'P' // a record of the pool
	exportEnd   = 'E' // nothing
)

type exportHeader struct {
	Version int
	Genesis common.Hash
	Number  uint64
	Root    common.Hash
}

// exportVersion is the version of the export format. Version 1 had no pool records.
const exportVersion = 2

func (h *exportHeader) read(raw []byte) error {
	if err := json.Unmarshal(raw, h); err != nil {
		return fmt.Errorf("%w: %w", ErrExport, err)
	}
	if h.Version < 1 || h.Version > exportVersion {
		return fmt.Errorf("%w: it has version %d, want 1 to %d", ErrExport, h.Version, exportVersion)
	}
	return nil
}

// exportedBlock is a block with its progress on JAM.
type exportedBlock struct {
	Block    *types.Block
	Receipts []*types.ReceiptForStorage
	Progress []byte // JSON
}

// Export writes all blocks, the state after the newest block, and all transactions of
// the pool to a new file. The newest block must be final. The host calls Export after a
// builder has recovered the chain and before the builder runs. The file gets its name
// only when it is complete. The error wraps fs.ErrExist if there is already a file at
// path, and ledger.ErrDamaged if a block cannot be read.
func (c *Chain) Export(ctx context.Context, path string) error {
	head := c.Head()
	if final := c.ledger.Final(); head.NumberU64() > final {
		return fmt.Errorf("evmrollup: block %d of %d is final; drain the node before an export", final, head.NumberU64())
	}
	if oldest := c.OldestBlock(); oldest > 1 {
		return fmt.Errorf("evmrollup: blocks before %d were pruned, and an export has all blocks; copy the data directory instead", oldest)
	}
	return writeExport(path, func(add func(kind byte, body []byte) error) (err error) {
		defer ledger.Recover(&err)
		header, err := json.Marshal(exportHeader{exportVersion, c.BlockByNumber(0).Hash(), head.NumberU64(), head.Root()})
		if err == nil {
			err = add(exportHead, header)
		}
		for number := uint64(1); err == nil && number <= head.NumberU64(); number++ {
			if err = ctx.Err(); err == nil {
				err = c.exportBlock(number, add)
			}
		}
		if err != nil {
			return err
		}
		state := bufio.NewWriterSize(pieces(add), 1<<20)
		if err := errors.Join(c.states.Export(ctx, state, head.Root()), state.Flush()); err != nil {
			return err
		}
		for _, record := range c.pool.Records() {
			if err := add(exportPool, record); err != nil {
				return err
			}
		}
		return add(exportEnd, nil)
	})
}

func (c *Chain) exportBlock(number uint64, add func(kind byte, body []byte) error) error {
	b := c.BlockByNumber(number)
	at, _ := c.FinalProgress(number)
	progress, err := json.Marshal(at)
	if err != nil {
		return err
	}
	raw, err := rlp.EncodeToBytes(&exportedBlock{b.Block, ledger.StoredReceipts(b.Receipts), progress})
	if err != nil {
		return err
	}
	return add(exportBlock, raw)
}

// pieces is an io.Writer that adds what is written to an export, as records.
type pieces func(kind byte, body []byte) error

// Write implements io.Writer.
func (add pieces) Write(some []byte) (int, error) { return len(some), add(exportState, some) }

// Import reads an export into a chain that has only its genesis and empty disks. At the
// next start, the chain begins with the last block of the export. The caller must know
// from another source that this block is final, because the file only proves that its
// parts belong together. After an error, the disks must not be used. Import does not
// change the file.
func (c *Chain) Import(ctx context.Context, path string) (err error) {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	return c.ledger.Import(func(add func(*Block, builder.Progress) error) error {
		i := importer{chain: c, add: add}
		err := readExport(path, func(kind byte, body []byte) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return i.record(kind, body)
		})
		if err != nil {
			return err
		}
		return i.end(ctx)
	})
}

type importer struct {
	chain  *Chain
	add    func(*Block, builder.Progress) error
	header exportHeader
	last   *Block
	state  bytes.Buffer
	pool   [][]byte
	ended  bool
}

func (i *importer) record(kind byte, body []byte) error {
	switch {
	case kind == exportHead && i.header.Version == 0:
		return i.begin(body)
	case kind == exportBlock && i.header.Version > 0:
		return i.block(body)
	case kind == exportState:
		i.state.Write(body)
	case kind == exportPool:
		i.pool = append(i.pool, bytes.Clone(body))
	case kind == exportEnd:
		i.ended = true
	default:
		return fmt.Errorf("%w: a record of kind %q", ErrExport, kind)
	}
	return nil
}

func (i *importer) begin(raw []byte) error {
	if err := i.header.read(raw); err != nil {
		return err
	}
	if want := i.chain.BlockByNumber(0).Hash(); i.header.Genesis != want {
		return fmt.Errorf("%w: it is of another chain, whose genesis is %s, want %s", ErrExport, i.header.Genesis, want)
	}
	return nil
}

func (i *importer) block(raw []byte) error {
	var in exportedBlock
	if err := rlp.DecodeBytes(raw, &in); err != nil {
		return fmt.Errorf("%w: a block: %w", ErrExport, err)
	}
	var at builder.Progress
	if err := json.Unmarshal(in.Progress, &at); err != nil {
		return fmt.Errorf("%w: the progress of block %d: %w", ErrExport, in.Block.NumberU64(), err)
	}
	i.last = &Block{Block: in.Block, Receipts: ledger.Receipts(in.Receipts)}
	return i.add(i.last, at)
}

// end imports the state after the last block and the pool, if the export is complete.
func (i *importer) end(ctx context.Context) error {
	switch {
	case !i.ended || i.last == nil:
		return fmt.Errorf("%w: it is incomplete", ErrExport)
	case i.last.NumberU64() != i.header.Number, i.last.Root() != i.header.Root:
		return fmt.Errorf("%w: it ends with block %d and state %s, want %d and %s", ErrExport, i.last.NumberU64(), i.last.Root(), i.header.Number, i.header.Root)
	}
	if err := i.chain.states.Import(ctx, &i.state, i.last.Root()); err != nil {
		return err
	}
	if err := i.chain.states.SetCanonical(i.last.Root()); err != nil || len(i.pool) == 0 {
		return err
	}
	return i.chain.ledger.SetImported(i.pool)
}
