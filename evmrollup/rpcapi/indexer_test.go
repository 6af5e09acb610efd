package rpcapi

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/internal/wait"
	"github.com/jamq/jamq/jamtest"
)

var undone = flag.Int("indexer.undone", 1, "the number of blocks that are undone under an indexer")

// explorer reads the chain as the indexer of a block explorer does, with nothing but the RPC. It
// asks for one block after the other by number. When the parent of a block is not the block that
// the explorer has, it takes that block out and asks for its number again.
type explorer struct {
	s        *served
	client   *rpc.Client
	chain    []*indexed               // by number
	replaced map[common.Hash]*indexed // the blocks that were taken out

	told <-chan types.Log // a subscription, from the first block on
	logs []types.Log      // those that it has told and not taken back
}

// newExplorer returns an explorer that has no block yet.
func newExplorer(s *served) *explorer {
	told := make(chan types.Log)
	_, err := s.eth(s.ws()).SubscribeFilterLogs(s.t.Context(), ethereum.FilterQuery{}, told)
	require.NoError(s.t, err)
	client, replaced := s.dial(s.server.URL), make(map[common.Hash]*indexed)
	return &explorer{s: s, client: client, replaced: replaced, told: told}
}

// indexed is a block with everything that an explorer shows of it.
type indexed struct {
	Number       hexutil.Uint64
	Hash         common.Hash
	ParentHash   common.Hash
	GasUsed      hexutil.Uint64
	Transactions []struct{ Hash, BlockHash common.Hash }

	receipts []*types.Receipt
	logs     []*types.Log
	traces   []*flatTrace
	calls    []struct {
		TxHash common.Hash
		Result callFrame
	}
}

// callFrame is a call as callTracer returns it.
type callFrame struct {
	GasUsed hexutil.Uint64
	Error   string
	Calls   []callFrame
}

// count returns the number of calls in a tree.
func (f *callFrame) count() int {
	n := 1
	for i := range f.Calls {
		n += f.Calls[i].count()
	}
	return n
}

// until reads the chain until ready is true.
func (x *explorer) until(ready func() bool, state string) {
	x.s.t.Helper()
	wait.Until(x.s.t, func() bool {
		require.NoError(x.s.t, x.catchUp(x.s.t.Context()))
		x.listen()
		return ready()
	}, "%s", state)
}

// listen takes what the subscription has told since the last call.
func (x *explorer) listen() {
	for {
		select {
		case log := <-x.told:
			if !log.Removed {
				x.logs = append(x.logs, log)
				continue
			}
			log.Removed = false
			same := func(l types.Log) bool { return reflect.DeepEqual(l, log) }
			i := slices.IndexFunc(x.logs, same)
			require.GreaterOrEqual(x.s.t, i, 0, "a log is taken back that was never told: %+v", log)
			x.logs = slices.Delete(x.logs, i, i+1)
		default:
			return
		}
	}
}

// call calls a method of the node.
func (x *explorer) call(ctx context.Context, result any, method string, args ...any) error {
	return x.client.CallContext(ctx, result, method, args...)
}

// catchUp reads blocks up to the latest one. It returns early if one is undone meanwhile.
func (x *explorer) catchUp(ctx context.Context) error {
	for {
		var latest indexed
		if err := x.call(ctx, &latest, "eth_getBlockByNumber", "latest", true); err != nil {
			return err
		}
		next := min(uint64(latest.Number), uint64(len(x.chain)))
		if next < uint64(len(x.chain)) && x.chain[next].Hash == latest.Hash {
			return nil
		}
		b, err := x.read(ctx, next)
		if b == nil || err != nil {
			return err
		}
		x.put(b)
	}
}

// put appends a block, after it has taken out the blocks that are in its place and above, and the
// block below if that is not its parent. In the latter case it does not append the block.
func (x *explorer) put(b *indexed) {
	for uint64(len(x.chain)) > uint64(b.Number) {
		x.takeOut()
	}
	if b.Number > 0 && x.chain[b.Number-1].Hash != b.ParentHash {
		x.takeOut()
		return
	}
	delete(x.replaced, b.Hash)
	x.chain = append(x.chain, b)
}

func (x *explorer) takeOut() {
	last := len(x.chain) - 1
	x.replaced[x.chain[last].Hash] = x.chain[last]
	x.chain = x.chain[:last]
}

// read reads a block by its number in one batch, and its logs by its hash. It returns nil if the
// block was undone meanwhile.
func (x *explorer) read(ctx context.Context, number uint64) (*indexed, error) {
	b, at, calls := new(indexed), hexutil.Uint64(number), m{"tracer": "callTracer"}
	batch := []rpc.BatchElem{
		{Method: "eth_getBlockByNumber", Args: []any{at, true}, Result: b},
		{Method: "eth_getBlockReceipts", Args: []any{at}, Result: &b.receipts},
		{Method: "trace_block", Args: []any{at}, Result: &b.traces},
		{Method: "debug_traceBlockByNumber", Args: []any{at, calls}, Result: &b.calls},
	}
	if number == 0 {
		batch = batch[:3] // go-ethereum's tracers refuse the genesis
	}
	if err := x.client.BatchCallContext(ctx, batch); err != nil {
		return nil, err
	}
	err := x.call(ctx, &b.logs, "eth_getLogs", m{"blockHash": b.Hash})
	for _, e := range batch {
		err = errors.Join(err, e.Error)
	}
	if err == nil {
		err = b.check()
	}
	if err == nil {
		return b, nil
	}
	// The answers may differ because the block was undone between them, and only for that reason.
	var now *indexed
	if err := x.call(ctx, &now, "eth_getBlockByNumber", at, true); err != nil {
		return nil, err
	}
	if now == nil || now.Hash != b.Hash {
		return nil, nil
	}
	return nil, fmt.Errorf("block %d: %w", number, err)
}

// check compares the answers about a block with each other.
func (b *indexed) check() error {
	n := len(b.Transactions)
	if len(b.receipts) != n || b.Number != 0 && len(b.calls) != n {
		return fmt.Errorf("%d receipts and %d calls, want %d", len(b.receipts), len(b.calls), n)
	}
	var used uint64
	var logs []*types.Log
	traces := b.traces
	for i, r := range b.receipts {
		used += r.GasUsed
		logs = append(logs, r.Logs...)
		count := min(b.calls[i].Result.count(), len(traces))
		if what := b.difference(i, used, traces[:count]); what != "" {
			return fmt.Errorf("transaction %d, %s: %s", i, r.TxHash, what)
		}
		traces = traces[count:]
	}
	switch {
	case used != uint64(b.GasUsed):
		return fmt.Errorf("%d gas used, want the %d of the receipts", b.GasUsed, used)
	case len(traces) > 0:
		return fmt.Errorf("%d traces more than calls", len(traces))
	}
	return sameLogs(b.logs, logs)
}

// difference names a difference between the answers about a transaction, if there is one. used is
// the gas of the block up to the transaction.
func (b *indexed) difference(i int, used uint64, traces []*flatTrace) string {
	tx, r, call, number := b.Transactions[i], b.receipts[i], &b.calls[i], uint64(b.Number)
	failed := r.Status == types.ReceiptStatusFailed
	for _, x := range []struct {
		what string
		same bool
	}{
		{"the transaction's block", tx.BlockHash == b.Hash},
		{"the receipt's block", r.BlockHash == b.Hash && r.BlockNumber.Uint64() == number},
		{"the receipt's transaction", r.TxHash == tx.Hash && r.TransactionIndex == uint(i)},
		{"the receipt's cumulative gas", r.CumulativeGasUsed == used},
		{"the calls' transaction", call.TxHash == tx.Hash},
		{"the calls' gas", uint64(call.Result.GasUsed) == r.GasUsed},
		{"the calls' failure", (call.Result.Error != "") == failed},
		{"the number of traces", len(traces) == call.Result.count()},
	} {
		if !x.same {
			return x.what
		}
	}
	for at, trace := range traces {
		switch {
		case trace.BlockHash != b.Hash || trace.BlockNumber != number:
			return "a trace's block"
		case trace.TransactionHash != tx.Hash || trace.TransactionPosition != i:
			return "a trace's transaction"
		case (at == 0) != (len(trace.TraceAddress) == 0):
			return "a trace's position"
		case at == 0 && (trace.Error != "") != failed:
			return "the traces' failure"
		}
	}
	return ""
}

// sameLogs returns an error if two lists of logs differ.
func sameLogs(have, want []*types.Log) error {
	same := func(a, b *types.Log) bool { return reflect.DeepEqual(a, b) }
	if !slices.EqualFunc(have, want, same) {
		return fmt.Errorf("%d logs, want the %d of the receipts", len(have), len(want))
	}
	return nil
}

// find returns the block that has a transaction, or nil.
func (x *explorer) find(tx common.Hash) *indexed {
	for _, b := range slices.Backward(x.chain) {
		for _, t := range b.Transactions {
			if t.Hash == tx {
				return b
			}
		}
	}
	return nil
}

// isFinal reports whether a block that the explorer has is final.
func (x *explorer) isFinal(b *indexed) bool {
	return uint64(b.Number) <= x.s.node.Resolve(rpc.FinalizedBlockNumber).NumberU64()
}

// undo lets the block of a transaction fail once the explorer has it, if it is not final before.
func (x *explorer) undo(tx common.Hash) {
	x.s.t.Helper()
	var b *indexed
	x.until(func() bool { b = x.find(tx); return b != nil }, "the explorer has the transaction")
	err := x.s.node.GiveUp(x.s.t.Context(), uint64(b.Number), "an explorer must notice")
	if !errors.Is(err, bundlequeue.ErrWrongNumber) { // else it is final
		require.NoError(x.s.t, err)
	}
	x.until(func() bool {
		return x.replaced[b.Hash] != nil || x.isFinal(b)
	}, "the block is undone or final")
}

// An explorer reads the chain from the genesis on, while blocks that it has are undone and their
// transactions are executed in others. It ends with the node's chain, and has noticed each block
// that is no longer in it.
func TestIndexer(t *testing.T) {
	s := serve(t, func(c *node.Config, api *Config) {
		c.MaxTxsPerBundle, c.RetainStates = 3, 10_000
		c.JAM.Script, c.JAM.FinalityLag = branches(t), 18
		api.CallTime, api.RequestTime = time.Hour, time.Hour
	})
	x := newExplorer(s)
	at := s.counter(0)
	var sent []common.Hash
	for len(x.replaced) < *undone {
		for _, tx := range []*types.Transaction{
			s.send(0, &at, 0, nil), // logs
			s.send(1, &at, 0, nil),
			s.send(2, nil, 100, common.FromHex(calling("33ff", "f1")+creating("fe"))),
			s.send(3, &at, 0, []byte{1}), // is reverted
		} {
			sent = append(sent, tx.Hash())
		}
		x.undo(sent[len(sent)-1])
	}
	x.until(func() bool {
		return !slices.ContainsFunc(sent, func(tx common.Hash) bool {
			b := x.find(tx)
			return b == nil || !x.isFinal(b)
		})
	}, "all transactions are final")

	require.Equal(t, s.node.Resolve(rpc.PendingBlockNumber).Hash(), x.chain[len(x.chain)-1].Hash)
	found := make(map[common.Hash]bool)
	for i, b := range x.chain {
		require.Equal(t, uint64(i), uint64(b.Number))
		require.True(t, i == 0 || b.ParentHash == x.chain[i-1].Hash, "the parent of block %d", i)
		for j, tx := range b.Transactions {
			require.False(t, found[tx.Hash], "%s is in two blocks", tx.Hash)
			found[tx.Hash] = true
			require.Equal(t, b.receipts[j], s.receipt(tx.Hash))
		}
	}
	require.Len(t, found, len(sent)+1, "those that were sent, and the deployment")
	x.checkReplaced(found)
	x.checkLogs()
}

// checkReplaced checks that the node knows no block that was taken out, and that another block has
// its number. The transactions must be found.
func (x *explorer) checkReplaced(found map[common.Hash]bool) {
	t := x.s.t
	for _, b := range x.replaced {
		require.NotEqual(t, b.Hash, x.chain[b.Number].Hash)
		var still *indexed
		require.NoError(t, x.call(t.Context(), &still, "eth_getBlockByHash", b.Hash, true))
		require.Nil(t, still)
		for _, tx := range b.Transactions {
			require.True(t, found[tx.Hash], "%s of an undone block is lost", tx.Hash)
		}
	}
}

// checkLogs compares the logs of the blocks with those of ranges, and of the subscription.
func (x *explorer) checkLogs() {
	t := x.s.t
	var all []*types.Log
	for blocks := range slices.Chunk(x.chain, 7) {
		var have, want []*types.Log
		for _, b := range blocks {
			want = append(want, b.logs...)
		}
		criteria := m{"fromBlock": blocks[0].Number, "toBlock": blocks[len(blocks)-1].Number}
		require.NoError(t, x.call(t.Context(), &have, "eth_getLogs", criteria))
		require.NoError(t, sameLogs(have, want))
		all = append(all, want...)
	}
	newest := *all[len(all)-1]
	x.until(func() bool {
		return len(x.logs) > 0 && reflect.DeepEqual(x.logs[len(x.logs)-1], newest)
	}, "the subscription has told the newest log")
	require.Equal(t, len(all), len(x.logs), "the logs that the subscription has told")
	for i, log := range x.logs {
		require.Equal(t, *all[i], log)
	}
}

// branches returns faults of a JAM chain: again and again a branch begins 16 blocks below the best
// block, and wins. A package of the last 8 of these blocks is dead on the branch, because its
// anchor is at most 8 blocks older. The first branch begins after 48 slots, and the time to the
// next one grows by a tenth, so that it is once enough for blocks to become final on any machine.
func branches(t *testing.T) *jamtest.Script {
	var text strings.Builder
	for at, next := 48, 48; at < 1<<20; at, next = at+next, next+next/10 {
		fmt.Fprintf(&text, "at %d fork 16\nat %d reorg\nat %d abandon\n", at, at, at)
	}
	script, err := jamtest.ParseScript(text.String())
	require.NoError(t, err)
	return script
}
