package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/jamq/jamq/internal/pebbledb"
	"github.com/jamq/jamq/submit/journal"
	"github.com/jamq/jamq/submit/journal/pebblejournal"
)

// ErrOtherChain: the data directory belongs to a chain with another genesis.
var ErrOtherChain = errors.New("node: data directory of another chain")

// ErrDisk is wrapped by errors after the disk under the data directory has failed,
// for example because it was full. The node takes no transactions then and must
// be started again once the disk works. What it has accepted is kept.
var ErrDisk = pebbledb.ErrDisk

// store is what survives the process: a database with three journals. A block is written down before it goes into the queue, the queue's steps
// before they are acted on, and a transaction before its sender is answered; what a crash leaves between two of them, reconcile.go puts right. A nil
// store keeps nothing.
type store struct {
	db                  *pebbledb.DB
	blocks, queue, pool journal.Journal
	opened              []*pebblejournal.Journal // these three
}

// openStore opens the data directory, or returns nil if there is none.
func (n *Node) openStore() (err error) {
	if n.cfg.DataDir == "" {
		return nil
	}
	s := new(store)
	if s.db, err = pebbledb.Open(filepath.Join(n.cfg.DataDir, "db"), nil); err != nil {
		return fmt.Errorf("node: data directory, which one process at a time may have: %w", err)
	}
	for name, into := range map[string]*journal.Journal{"blocks": &s.blocks, "queue": &s.queue, "pool": &s.pool} {
		j, err := pebblejournal.Open(filepath.Join(n.cfg.DataDir, name), pebblejournal.Options{DB: s.db.Pebble(), Check: s.db.Err, Prefix: []byte(name + "/")})
		if err != nil {
			return errors.Join(err, s.close())
		}
		if cut := j.Cut(); cut > 0 {
			n.log.Error("journal was damaged, and is cut at the last whole record", "journal", name, "records", cut)
		}
		*into = j
		s.opened = append(s.opened, j)
	}
	n.store = s
	return nil
}

// failure returns why nothing can be written any more, or nil. The error wraps
// ErrDisk if that is because of the disk.
func (s *store) failure() error {
	if s == nil {
		return nil
	}
	err := s.db.Err()
	for _, j := range s.opened {
		if err == nil {
			err = j.Err()
		}
	}
	return err
}

func (s *store) close() error {
	if s == nil {
		return nil
	}
	var err error
	for _, j := range []journal.Journal{s.blocks, s.queue, s.pool} {
		if j != nil {
			err = errors.Join(err, j.Close())
		}
	}
	return errors.Join(err, s.db.Close())
}

// The first byte of a record of blocks says what follows it.
const (
	recordGenesis   = 'G' // the genesis hash
	recordBlock     = 'B' // an executed block, RLP
	recordTruncated = 'X' // the number (8 bytes) from which on blocks were thrown away
	recordFinal     = 'F' // the number (8 bytes) up to which blocks are final
)

func (s *store) genesis(hash common.Hash) error {
	return s.blocks.Append(append([]byte{recordGenesis}, hash[:]...))
}

func (s *store) block(b *types.Block) error {
	if s == nil {
		return nil
	}
	data, err := rlp.EncodeToBytes(b)
	if err != nil {
		return err
	}
	return s.blocks.Append(append([]byte{recordBlock}, data...))
}

func (s *store) truncated(from uint64) error { return s.number(recordTruncated, from) }
func (s *store) final(upTo uint64) error     { return s.number(recordFinal, upTo) }

func (s *store) number(kind byte, n uint64) error {
	if s == nil {
		return nil
	}
	return s.blocks.Append(binary.BigEndian.AppendUint64([]byte{kind}, n))
}

// history is what the records of blocks say.
type history struct {
	genesis common.Hash
	blocks  []*types.Block // from number 1 on
	final   uint64
}

func (s *store) history() (*history, error) {
	h := new(history)
	records := 0
	err := s.blocks.Replay(func(record []byte) error {
		records++
		if err := h.read(record); err != nil {
			return fmt.Errorf("node: record %d of the blocks: %w", records, err)
		}
		return nil
	})
	return h, err
}

// errRecord: a record that the node did not write.
var errRecord = errors.New("malformed")

func (h *history) read(record []byte) error {
	if len(record) == 0 {
		return errRecord
	}
	kind, data := record[0], record[1:]
	if kind == recordGenesis {
		h.genesis = common.BytesToHash(data)
		return nil
	}
	if kind == recordBlock {
		b := new(types.Block)
		if err := rlp.DecodeBytes(data, b); err != nil {
			return fmt.Errorf("%w: %w", errRecord, err)
		}
		if b.NumberU64() != uint64(len(h.blocks))+1 {
			return fmt.Errorf("%w: block %d after %d", errRecord, b.NumberU64(), len(h.blocks))
		}
		h.blocks = append(h.blocks, b)
		return nil
	}
	if len(data) != 8 {
		return errRecord
	}
	switch number := binary.BigEndian.Uint64(data); {
	case kind == recordTruncated && number > h.final && number <= uint64(len(h.blocks)):
		h.blocks = h.blocks[:number-1]
	case kind == recordFinal && number <= uint64(len(h.blocks)):
		h.final = max(h.final, number)
	default:
		return fmt.Errorf("%w: %q %d after %d blocks", errRecord, kind, number, len(h.blocks))
	}
	return nil
}
