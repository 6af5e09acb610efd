package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/jamq/jamq/submit/journal"
)

// ErrOtherChain: the data directory belongs to a chain with another genesis.
var ErrOtherChain = errors.New("node: data directory of another chain")

// The first byte of a record says what follows it.
const (
	recordGenesis     = 'G' // the genesis hash
	recordBlock       = 'B' // a finalized block, RLP
	recordTransaction = 'T' // an accepted transaction, binary
)

// store keeps what must survive the process: finalized blocks and accepted transactions. The embedded JAM chain dies with the process,
// so what was not final never happened: it is executed anew from the transactions. A nil file keeps nothing.
type store struct {
	mu   sync.Mutex
	file journal.Journal
}

func (s *store) append(kind byte, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	return s.file.Append(append([]byte{kind}, data...))
}

func (s *store) block(b *types.Block) error {
	data, err := rlp.EncodeToBytes(b)
	if err != nil {
		return err
	}
	return s.append(recordBlock, data)
}

func (s *store) transaction(tx *types.Transaction) error {
	data, err := tx.MarshalBinary()
	if err != nil {
		return err
	}
	return s.append(recordTransaction, data)
}

func (s *store) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// openJournal reads the data directory, executes its blocks and takes back its transactions.
func (n *Node) openJournal() error {
	n.journal = &store{}
	if n.cfg.DataDir == "" {
		return nil
	}
	if err := os.MkdirAll(n.cfg.DataDir, 0o755); err != nil {
		return fmt.Errorf("node: data directory: %w", err)
	}
	file, err := journal.Open(filepath.Join(n.cfg.DataDir, "rollup.journal"))
	if err != nil {
		return err
	}
	if cut := file.Cut(); cut > 0 {
		n.log.Warn("journal ended in a torn record", "bytes cut", cut)
	}
	if err := n.recover(file); err != nil {
		return errors.Join(err, file.Close())
	}
	n.journal.file = file
	return nil
}

func (n *Node) recover(file *journal.File) error {
	genesis := n.ledger.head().Hash()
	var waiting types.Transactions
	records := 0
	err := file.Replay(func(record []byte) error {
		records++
		if len(record) == 0 {
			return errors.New("node: empty journal record")
		}
		kind, data := record[0], record[1:]
		switch {
		case records == 1 && (kind != recordGenesis || common.BytesToHash(data) != genesis):
			return fmt.Errorf("%w: want genesis %s", ErrOtherChain, genesis)
		case kind == recordBlock:
			return n.recoverBlock(data)
		case kind == recordTransaction:
			tx := new(types.Transaction)
			if err := tx.UnmarshalBinary(data); err != nil {
				return fmt.Errorf("node: journaled transaction: %w", err)
			}
			waiting = append(waiting, tx)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if records == 0 {
		return file.Append(append([]byte{recordGenesis}, genesis[:]...))
	}
	back := 0
	for _, tx := range waiting {
		if _, _, done := n.ledger.transaction(tx.Hash()); done {
			continue
		}
		if err := n.pool.Add(tx); err != nil {
			n.log.Warn("journaled transaction not taken back", "tx", tx.Hash(), "err", err)
			continue
		}
		back++
	}
	n.log.Info("recovered", "blocks", n.ledger.head().NumberU64(), "transactions", back)
	return nil
}

// recoverBlock executes a journaled block.
func (n *Node) recoverBlock(data []byte) error {
	sealed := new(types.Block)
	if err := rlp.DecodeBytes(data, sealed); err != nil {
		return fmt.Errorf("node: journaled block: %w", err)
	}
	b, err := n.replay(n.ledger.head(), sealed)
	if err != nil {
		return err
	}
	if err := n.ledger.recovered(b); err != nil {
		return err
	}
	if err := n.states.Pin(b.Root()); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.tracker.Executed(headOf(b)); err != nil {
		return err
	}
	if _, _, err := n.tracker.Finalized(b.NumberU64()); err != nil {
		return err
	}
	return n.states.SetCanonical(b.Root())
}
