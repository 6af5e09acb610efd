package rpcapi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/node"
)

// traceMethods implements the namespace trace, which shows the calls inside
// transactions. OpenEthereum defined this namespace, and Erigon, Nethermind and reth
// serve it to explorers. The node executes the blocks again, so it must still have the
// states before them. A call has the same rate limits as the methods of the namespace
// debug.
type traceMethods struct{ *api }

// Block implements trace_block. It returns the traces of all transactions of a block,
// or null if the block does not exist.
func (t *traceMethods) Block(ctx context.Context, at rpc.BlockNumberOrHash) (_ []*flatTrace, err error) {
	defer ledger.Recover(&err)
	b, err := t.resolve(at)
	if err != nil {
		return nil, nil
	}
	if b, err = whole(b); err != nil {
		return nil, err
	}
	all := &traceAnswer{most: t.cfg.BatchBytes}
	err = t.limited(ctx, func(ctx context.Context) error { return t.run(ctx, b, 0, len(b.Transactions()), all) })
	return all.result(err)
}

// Transaction implements trace_transaction. It returns null if the transaction is
// not in a block.
func (t *traceMethods) Transaction(ctx context.Context, hash common.Hash) (_ []*flatTrace, err error) {
	defer ledger.Recover(&err)
	b, index, known := t.node.Transaction(hash)
	if !known {
		return nil, nil
	}
	all := &traceAnswer{most: t.cfg.BatchBytes}
	err = t.limited(ctx, func(ctx context.Context) error { return t.run(ctx, b, index, index+1, all) })
	return all.result(err)
}

// traceCriteria is the parameter of trace_filter.
type traceCriteria struct {
	// FromBlock and ToBlock are the first and the last block, latest by default.
	FromBlock *rpc.BlockNumber `json:"fromBlock"`
	ToBlock   *rpc.BlockNumber `json:"toBlock"`
	// FromAddress and ToAddress select traces by their sender and receiver. An empty list
	// selects all traces. If both lists are set, a trace matches if its sender or its receiver
	// is in the list or, with Mode "intersection", if both are. The default Mode is "union".
	FromAddress []common.Address `json:"fromAddress"`
	ToAddress   []common.Address `json:"toAddress"`
	Mode        string           `json:"mode"`
	// After is the number of traces to skip. Count is the maximum number of traces to
	// return; if it is nil, all are returned.
	After *math.HexOrDecimal64 `json:"after"`
	Count *math.HexOrDecimal64 `json:"count"`
}

// Filter implements trace_filter. It executes at most Config.TraceRange blocks
// again.
func (t *traceMethods) Filter(ctx context.Context, criteria traceCriteria) (_ []*flatTrace, err error) {
	defer ledger.Recover(&err)
	first, last, err := t.blocks(&criteria)
	if err != nil {
		return nil, err
	}
	answer := &traceAnswer{most: t.cfg.BatchBytes, criteria: &criteria}
	err = t.limited(ctx, func(ctx context.Context) error {
		for number := first; number <= last && !answer.complete(); number++ {
			b, err := whole(t.node.BlockByNumber(number))
			switch {
			case err != nil:
				return err
			case b == nil:
				return errHeaderNotFound // it was undone meanwhile
			}
			if err := t.run(ctx, b, 0, len(b.Transactions()), answer); err != nil {
				return err
			}
		}
		return nil
	})
	return answer.result(err)
}

// blocks returns the first and the last block of trace_filter.
func (t *traceMethods) blocks(criteria *traceCriteria) (first, last uint64, err error) {
	ends := [2]uint64{}
	for i, at := range []*rpc.BlockNumber{criteria.FromBlock, criteria.ToBlock} {
		number := rpc.LatestBlockNumber
		if at != nil {
			number = *at
		}
		b := t.node.Resolve(number)
		if b == nil {
			return 0, 0, errHeaderNotFound
		}
		ends[i] = b.NumberU64()
	}
	switch first, last = ends[0], ends[1]; {
	case criteria.Mode != "" && criteria.Mode != "union" && criteria.Mode != "intersection":
		return 0, 0, invalidParams("mode is %.40q, want union or intersection", criteria.Mode)
	case first > last:
		return 0, 0, errLogRange
	case last-first >= t.cfg.TraceRange:
		return 0, 0, invalidParams("block range of %d blocks is too large, want at most %d", last-first+1, t.cfg.TraceRange)
	}
	return first, last, nil
}

// limited applies the client's rate limit, and then calls run with the maximum duration
// of a trace.
func (t *traceMethods) limited(ctx context.Context, run func(context.Context) error) error {
	if err := t.limits.call(ctx, "debug", 0); err != nil {
		return err
	}
	ctx, end := t.withTimeout(ctx)
	defer end()
	return run(ctx)
}

// run executes transactions of a block, from index first up to, but not including,
// index last. It adds their traces to an answer until the answer is complete.
func (t *traceMethods) run(ctx context.Context, b *node.Block, first, last int, answer *traceAnswer) error {
	return t.executeAll(ctx, b, first, last, parts{trace: true}, func(x *executed) (more bool, err error) {
		err = answer.add(x.traces)
		return !answer.complete(), err
	})
}

// executed is the result of executing a transaction again, with the requested parts
// only.
type executed struct {
	traces   []*flatTrace
	output   []byte // of the first call
	diff     stateDiff
	diffSize int // about that of the JSON, in bytes
}

// executeAll executes transactions of a block in order, and calls each with every
// result. It stops when each returns false or an error.
func (t *traceMethods) executeAll(ctx context.Context, b *node.Block, first, last int, p parts, each func(*executed) (more bool, err error)) error {
	if first == last {
		return nil
	}
	sdb, block, err := t.node.Prestate(b, first)
	if err != nil {
		return err
	}
	for i := first; i < last; i++ {
		x, err := t.execute(ctx, b, i, sdb, block, p)
		if err != nil {
			return err
		}
		if more, err := each(x); err != nil || !more {
			return err
		}
	}
	return nil
}

// execute runs a transaction on the state before it, and collects the requested parts.
func (t *traceMethods) execute(ctx context.Context, b *node.Block, index int, sdb *state.StateDB, block vm.BlockContext, p parts) (*executed, error) {
	tx, config := b.Transactions()[index], t.node.ChainConfig()
	msg, err := core.TransactionToMessage(tx, t.signer, b.BaseFee())
	if err != nil {
		return nil, err
	}
	msg.SkipEOACheck() // the block had it
	rules, hooks := config.Rules(block.BlockNumber, true, block.Time), new(tracing.Hooks)
	contracts := t.node.Precompiles(block.BlockNumber, block.Time)
	flat := &flatTracer{block: b, index: index, left: t.cfg.BatchBytes, precompiled: contracts}
	diff := &diffTracer{sdb, make(map[common.Address]*account)}
	if p.trace {
		flat.hook(hooks)
	}
	if p.stateDiff {
		diff.hook(hooks)
	}
	machine := vm.NewEVM(block, state.NewHookedState(sdb, hooks), config, vm.Config{Tracer: hooks})
	machine.SetPrecompiles(contracts)
	defer machine.Release()
	flat.stop = machine.Cancel
	stop := context.AfterFunc(ctx, machine.Cancel)
	defer stop()
	sdb.SetTxContext(tx.Hash(), index, uint32(index+1))
	result, err := core.ApplyMessage(machine, msg, core.NewGasPool(msg.GasLimit))
	switch {
	case flat.left < 0:
		return nil, tooManyTraces(t.cfg.BatchBytes)
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	if err = errors.Join(err, sdb.Error()); err != nil {
		return nil, fmt.Errorf("transaction %s: %w", tx.Hash(), err)
	}
	sdb.Finalise(rules)
	x := &executed{traces: flat.traces}
	if result.Err == nil || errors.Is(result.Err, vm.ErrExecutionReverted) {
		x.output = result.ReturnData // otherwise it is the code that was rejected
	}
	if p.stateDiff {
		x.diff, x.diffSize = diff.result()
	}
	return x, nil
}

func tooManyTraces(most int) error {
	return codedError{fmt.Errorf("the traces have more than %d bytes", most), codeTooMany}
}

// traceAnswer collects traces for an answer: all traces, or those that match the
// criteria.
type traceAnswer struct {
	criteria *traceCriteria
	most     int // bytes
	size     int
	skipped  uint64
	traces   []*flatTrace
}

// complete reports whether the answer has as many traces as the client wants.
func (a *traceAnswer) complete() bool {
	return a.criteria != nil && a.criteria.Count != nil && uint64(len(a.traces)) >= uint64(*a.criteria.Count)
}

func (a *traceAnswer) add(traces []*flatTrace) error {
	for _, trace := range traces {
		switch {
		case a.complete():
			return nil
		case a.criteria == nil:
		case !a.criteria.matches(trace):
			continue
		case a.criteria.After != nil && a.skipped < uint64(*a.criteria.After):
			a.skipped++
			continue
		}
		if a.size += trace.size; a.size > a.most {
			return tooManyTraces(a.most)
		}
		a.traces = append(a.traces, trace)
	}
	return nil
}

// result returns the answer, or err if it is not nil.
func (a *traceAnswer) result(err error) ([]*flatTrace, error) {
	if err != nil {
		return nil, err
	}
	return append([]*flatTrace{}, a.traces...), nil
}

// matches reports whether a trace matches the senders and receivers in the criteria.
func (c *traceCriteria) matches(t *flatTrace) bool {
	from, to := t.ends()
	inFrom, inTo := slices.Contains(c.FromAddress, from), to != nil && slices.Contains(c.ToAddress, *to)
	switch {
	case len(c.FromAddress) == 0:
		return len(c.ToAddress) == 0 || inTo
	case len(c.ToAddress) == 0:
		return inFrom
	case c.Mode == "intersection":
		return inFrom && inTo
	}
	return inFrom || inTo
}
