package load

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/history"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/rpcapi"
)

// watcher records the transactions of each block, and the time at which the
// block reaches each tag.
type watcher struct {
	eth   *ethclient.Client
	raw   *rpc.Client
	first uint64

	mu     sync.Mutex
	blocks map[uint64]*seen // newest version by number
	queued int              // maximum length of the queue
	full   int              // polls with a full queue
	polls  int              // all polls
}

// seen is a block with the times at which it reached the tags.
type seen struct {
	hash                       common.Hash
	txs                        []common.Hash
	gasUsed, gasLimit          uint64
	pending, latest, finalized time.Time
}

// pollInterval is the interval between two polls of the heads.
const pollInterval = 25 * time.Millisecond

func newWatcher(eth *ethclient.Client, raw *rpc.Client, first uint64) *watcher {
	return &watcher{eth: eth, raw: raw, first: first, blocks: map[uint64]*seen{}}
}

func (w *watcher) run(ctx context.Context) error {
	for {
		if err := w.once(ctx); err != nil {
			return err
		}
		if err := sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// once polls the heads and fetches each block that reached one, because the
// block may have been replaced since it was first seen.
func (w *watcher) once(ctx context.Context) error {
	var s rpcapi.QueueStatus
	if err := w.raw.CallContext(ctx, &s, "jam_queueStatus"); err != nil {
		return err
	}
	now := time.Now()
	for _, number := range w.due(&s) {
		b, err := w.fetch(ctx, number)
		if err != nil {
			return err
		}
		if b != nil {
			w.note(number, b, &s, now)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.polls++
	waiting := s.Bundles["queued"]
	w.queued = max(w.queued, waiting)
	if waiting >= fullQueue {
		w.full++
	}
	return nil
}

// fullQueue is the number of waiting bundles at which the queue accepts no
// more: bundlequeue's default depth.
const fullQueue = 12

// due removes blocks that no longer exist. It returns the numbers of blocks
// that are new or have reached a tag.
func (w *watcher) due(s *rpcapi.QueueStatus) (numbers []uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.blocks, func(number uint64, _ *seen) bool { return number > uint64(s.Pending) })
	for number := w.first; number <= uint64(s.Pending); number++ {
		b := w.blocks[number]
		if b == nil || b.latest.IsZero() && number <= uint64(s.Latest) || b.finalized.IsZero() && number <= uint64(s.Finalized) {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// note records a block and the tags that it has reached.
func (w *watcher) note(number uint64, b *seen, s *rpcapi.QueueStatus, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if before := w.blocks[number]; before != nil && before.hash == b.hash {
		b = before
	} else {
		b.pending = now
		w.blocks[number] = b
	}
	if number <= uint64(s.Latest) && b.latest.IsZero() {
		b.latest = now
	}
	if number <= uint64(s.Finalized) && b.finalized.IsZero() {
		b.finalized = now
	}
}

// fetch returns a block with the hashes of its transactions, or nil if there is
// none.
func (w *watcher) fetch(ctx context.Context, number uint64) (*seen, error) {
	var b *struct {
		Hash         common.Hash
		Transactions []common.Hash
		GasUsed      hexutil.Uint64
		GasLimit     hexutil.Uint64
	}
	if err := w.raw.CallContext(ctx, &b, "eth_getBlockByNumber", hexutil.Uint64(number), false); err != nil || b == nil {
		return nil, err
	}
	return &seen{hash: b.Hash, txs: b.Transactions, gasUsed: uint64(b.GasUsed), gasLimit: uint64(b.GasLimit)}, nil
}

// settle waits until want transactions are in finalized blocks.
func (w *watcher) settle(ctx context.Context, want int, timeout time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		final := 0
		w.mu.Lock()
		for _, b := range w.blocks {
			if !b.finalized.IsZero() {
				final += len(b.txs)
			}
		}
		w.mu.Unlock()
		if final >= want {
			return nil
		}
		if sleep(waiting, pollInterval) == nil {
			continue
		}
		if interrupted := context.Cause(ctx); interrupted != nil {
			return fmt.Errorf("%w: %d of %d transactions: %w", ErrIncomplete, final, want, interrupted)
		}
		return fmt.Errorf("%w: %d of %d transactions after %v", ErrIncomplete, final, want, timeout)
	}
}

// pruned reports whether an error is that of a block of which the node has only the header.
func pruned(err error) bool {
	var coded rpc.Error
	return errors.As(err, &coded) && coded.ErrorCode() == (&history.PrunedHistoryError{}).ErrorCode()
}

// final returns the current finalized blocks. It fetches each of them again,
// because the watcher may have seen a block that was replaced later. A block that the node has
// pruned since the watcher saw that it was final was not replaced.
func (w *watcher) final(ctx context.Context) ([]*seen, error) {
	head, err := w.eth.HeaderByNumber(ctx, big.NewInt(int64(rpc.FinalizedBlockNumber)))
	if err != nil {
		return nil, err
	}
	var out []*seen
	for number := w.first; number <= head.Number.Uint64(); number++ {
		b, err := w.fetch(ctx, number)
		before := w.blocks[number]
		switch {
		case pruned(err) && before != nil && !before.finalized.IsZero():
			b = before
		case pruned(err):
			return nil, fmt.Errorf("load: the node has pruned block %d before it was read as a final one; use a larger -history.blocks, or 0: %w", number, err)
		case err != nil:
			return nil, err
		case b == nil:
			return nil, fmt.Errorf("%w: finalized block %d no longer exists", ErrUnsafe, number)
		}
		if before != nil && before.hash == b.hash {
			b = before
		}
		out = append(out, b)
	}
	return out, nil
}
