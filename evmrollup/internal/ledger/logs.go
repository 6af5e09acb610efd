package ledger

import (
	"fmt"
	"iter"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/jamq/jamq/statedb"
)

// Logs returns the numbers of the blocks in a range that may contain a log that matches
// a query. A log matches if it has one of the addresses and, at each position, one of
// the topics. An empty list matches everything. The caller must check each block,
// because some of them contain no matching log.
func (l *Ledger) Logs(from, to uint64, addresses []common.Address, topics [][]common.Hash) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		next := from
		if final := l.Final(); l.old != nil && final >= from {
			if q := l.old.query(min(to, final), addresses, topics); len(q) > 0 {
				for number, more := q.seek(from); more; number, more = q.seek(number + 1) {
					if !yield(number) {
						return
					}
				}
				next = final + 1
			}
		}
		for ; next <= to; next++ {
			if !yield(next) {
				return
			}
		}
	}
}

// Logs returns the logs of a block, in their order.
func (b *Block) Logs() (logs []*types.Log) {
	for _, r := range b.Receipts {
		logs = append(logs, r.Logs...)
	}
	return logs
}

// LogsOf returns the logs of the block with the given number, or false if there is no
// such block. If the block is on the disk, only its logs are read. For a pruned block,
// the list is empty.
func (l *Ledger) LogsOf(number uint64) ([]*types.Log, bool) {
	l.mu.RLock()
	onDisk := number < l.first
	l.mu.RUnlock()
	switch {
	case l.pruned(number):
		return nil, true
	case onDisk:
		logs, err := l.old.logsOf(number)
		l.old.check(err)
		return logs, true
	}
	b := l.ByNumber(number)
	if b == nil {
		return nil, false
	}
	return b.Logs(), true
}

// indexOf returns the index records for the logs of a block: one for each address and
// each topic.
func indexOf(logs []*types.Log, number []byte) (records []statedb.Record) {
	for _, l := range logs {
		records = append(records, statedb.Record{Key: key(keyAddress, l.Address[:], number), Value: []byte{}})
		for _, topic := range l.Topics {
			records = append(records, statedb.Record{Key: key(keyTopic, topic[:], number), Value: []byte{}})
		}
	}
	return records
}

// storedLogs is the RLP of the logs of a block.
type storedLogs struct {
	Block common.Hash
	Time  uint64
	Logs  []storedLog
}

type storedLog struct {
	Index uint64 // of the transaction
	Hash  common.Hash
	Log   *types.Log
}

// logRecord returns the record with the logs of a block that has at least one log.
func logRecord(b *Block) (r statedb.Record, err error) {
	stored := storedLogs{Block: b.Hash(), Time: b.Time()}
	for i, receipt := range b.Receipts {
		for _, l := range receipt.Logs {
			stored.Logs = append(stored.Logs, storedLog{uint64(i), b.Transactions()[i].Hash(), l})
		}
	}
	r.Key = key(keyLogs, numbered(b.NumberU64()))
	r.Value, err = rlp.EncodeToBytes(&stored)
	return r, err
}

// logsOf returns the logs of a block.
func (d *database) logsOf(number uint64) ([]*types.Log, error) {
	raw, err := d.get(key(keyLogs, numbered(number)))
	if err != nil || raw == nil {
		return nil, err
	}
	var stored storedLogs
	if err := rlp.DecodeBytes(raw, &stored); err != nil {
		return nil, fmt.Errorf("%w: logs of block %d: %w", ErrDamaged, number, err)
	}
	logs := make([]*types.Log, len(stored.Logs))
	for i, s := range stored.Logs {
		l := s.Log
		l.BlockNumber, l.BlockHash, l.BlockTimestamp = number, stored.Block, stored.Time
		l.TxHash, l.TxIndex, l.Index = s.Hash, uint(s.Index), uint(i)
		logs[i] = l
	}
	return logs, nil
}
