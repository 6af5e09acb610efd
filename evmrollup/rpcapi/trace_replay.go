package rpcapi

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/node"
)

// replayed is the answer for a replayed transaction, in OpenEthereum's format. Parts
// that the client did not request are empty.
type replayed struct {
	Output    hexutil.Bytes `json:"output"`    // of the first call
	StateDiff stateDiff     `json:"stateDiff"` // nil: not wanted
	Trace     []*callTrace  `json:"trace"`
	// TransactionHash is set in an answer about a block.
	TransactionHash *common.Hash `json:"transactionHash,omitempty"`
	VMTrace         *struct{}    `json:"vmTrace"` // always null
}

// parts are the parts of an answer that a client can request.
type parts struct{ trace, stateDiff bool }

// errVMTrace is returned to a client that requests vmTrace, which is not supported.
var errVMTrace = codedError{errors.New("vmTrace is not supported: want trace or stateDiff; debug_traceTransaction without a tracer returns each instruction"), CodeUnsupported}

// partsOf parses the names of the parts that a client requests.
func partsOf(names []string) (p parts, err error) {
	for _, name := range names {
		switch name {
		case "trace":
			p.trace = true
		case "stateDiff":
			p.stateDiff = true
		case "vmTrace":
			return parts{}, errVMTrace
		default:
			return parts{}, invalidParams("the part of a trace is %.40q, want trace or stateDiff", name)
		}
	}
	return p, nil
}

// ReplayTransaction implements trace_replayTransaction. names are the parts that the
// client requests: "trace" and "stateDiff". The answer is null if the transaction is
// not in a block.
func (t *traceMethods) ReplayTransaction(ctx context.Context, hash common.Hash, names []string) (_ *replayed, err error) {
	defer ledger.Recover(&err)
	p, err := partsOf(names)
	if err != nil {
		return nil, err
	}
	b, index, known := t.node.Transaction(hash)
	if !known {
		return nil, nil
	}
	all, err := t.replay(ctx, b, index, index+1, p)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// ReplayBlockTransactions implements trace_replayBlockTransactions. It executes all
// transactions of a block again. It returns null if the block does not exist.
func (t *traceMethods) ReplayBlockTransactions(ctx context.Context, at rpc.BlockNumberOrHash, names []string) (_ []*replayed, err error) {
	defer ledger.Recover(&err)
	p, err := partsOf(names)
	if err != nil {
		return nil, err
	}
	b, err := t.resolve(at)
	if err != nil {
		return nil, nil
	}
	if b, err = whole(b); err != nil {
		return nil, err
	}
	all, err := t.replay(ctx, b, 0, len(b.Transactions()), p)
	for i := range all {
		hash := b.Transactions()[i].Hash()
		all[i].TransactionHash = &hash
	}
	return all, err
}

// replay executes transactions of a block again, from index first up to, but not
// including, index last. The answer has at most Config.BatchBytes bytes.
func (t *traceMethods) replay(ctx context.Context, b *node.Block, first, last int, p parts) ([]*replayed, error) {
	all, left := []*replayed{}, t.cfg.BatchBytes
	err := t.limited(ctx, func(ctx context.Context) error {
		return t.executeAll(ctx, b, first, last, p, func(x *executed) (more bool, err error) {
			r := &replayed{Output: x.output, StateDiff: x.diff, Trace: []*callTrace{}}
			left -= emptyTrace + 2*len(x.output) + x.diffSize
			for _, trace := range x.traces {
				r.Trace = append(r.Trace, &trace.callTrace)
				left -= trace.size
			}
			if left < 0 {
				return false, tooManyTraces(t.cfg.BatchBytes)
			}
			all = append(all, r)
			return true, nil
		})
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
