package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/jamq/jamq/pebble/pebbledb"
	"github.com/jamq/jamq/pebble/pebblejournal"
	"github.com/jamq/jamq/submit/journal"
)

// ErrOtherChain is returned if the data directory belongs to a chain with a
// different genesis.
var ErrOtherChain = errors.New("node: data directory of another chain")

// ErrDisk is wrapped by errors after the disk of the data directory has failed,
// for example because it is full. The node then refuses transactions and must
// be started again once the disk works. Everything that was acknowledged is
// kept.
var ErrDisk = pebbledb.ErrDisk

// store is a database with three journals, for blocks, queue and pool. A block
// is written before it is enqueued, a step of the queue before its effects are
// carried out, and a transaction before its sender gets an answer. reconcile.go
// repairs a crash between two of them. A nil store keeps nothing.
type store struct {
	db                  *pebbledb.DB
	blocks, queue, pool journal.Journal
	opened              []*pebblejournal.Journal // these three
}

// openStore opens the data directory. It does nothing if there is none.
func (n *Node) openStore() (err error) {
	if n.cfg.DataDir == "" {
		return nil
	}
	s := new(store)
	if s.db, err = pebbledb.Open(filepath.Join(n.cfg.DataDir, "db"), nil); err != nil {
		return fmt.Errorf("node: open the data directory, which only one process can use: %w", err)
	}
	for name, into := range map[string]*journal.Journal{"blocks": &s.blocks, "queue": &s.queue, "pool": &s.pool} {
		j, err := pebblejournal.Open(filepath.Join(n.cfg.DataDir, name), pebblejournal.Options{DB: s.db.Pebble(), Check: s.db.Err, Prefix: []byte(name + "/")})
		if err != nil {
			return errors.Join(err, s.close())
		}
		if cut := j.Cut(); cut > 0 {
			n.log.Error("the journal was damaged and has been cut after its last whole record", "journal", name, "records", cut)
		}
		*into = j
		s.opened = append(s.opened, j)
	}
	n.store = s
	return nil
}

// failure returns the reason why nothing can be written any more, or nil. It
// wraps ErrDisk if the disk is the reason.
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

// The first byte of a record of blocks is its kind.
const (
	recordGenesis   = 'G' // the genesis hash
	recordBlock     = 'B' // an executed block, RLP
	recordTruncated = 'X' // 8 bytes: the first removed block
	recordFinal     = 'F' // 8 bytes: the last final block
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

// history is the content of the records of blocks.
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

// errRecord is returned for a record that the node did not write.
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
