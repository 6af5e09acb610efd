package ethchain

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/eoa"
)

// Client makes JSON-RPC calls. go-ethereum's [rpc.Client] implements it.
type Client interface {
	// BatchCallContext sends all calls as one batch, as rpc.Client does.
	BatchCallContext(ctx context.Context, b []rpc.BatchElem) error
}

// Options configures a [Chain]. The zero value is valid.
type Options struct {
	// ChainID is the id of the chain that the node must be on, which is also the
	// id in the accounts. The chain asks the node for its id (eth_chainId) before
	// the first call, and again after each failed call. While the node returns
	// another id, all calls fail with ErrNode. 0 disables the check.
	ChainID uint64
	// FinalityDepth is how many blocks must be on top of a block before the block
	// counts as final. 0 means that the node decides, with its block tag
	// "finalized".
	FinalityDepth uint64
	// Preconfirmed means that the chain promises transactions before their block
	// exists, and that the node counts the promised transactions under the block
	// tag "pending". It must be false on other chains, because there the tag counts
	// the transactions in the pool.
	Preconfirmed bool
	// MaxBatch is the maximum number of calls in a batch; 0 means 100. If the node
	// accepts fewer, the chain finds that out by itself.
	MaxBatch int
}

const (
	defaultBatch = 100
	// If at least blockwise receipts are wanted, the receipts of whole blocks are fetched,
	// because many of the transactions are probably in the same blocks. This is done for at
	// most probes blocks.
	blockwise, probes = 8, 4
)

// ErrNode is wrapped by the error of a call if the node's answer cannot be right,
// for example because a field is missing.
var ErrNode = errors.New("ethchain: unusable answer")

// Chain is an [eoa.Chain] for a node that is reached by JSON-RPC. Create it with
// [New]. Any number of accounts may share a Chain, which is safe for concurrent
// use.
type Chain struct {
	client Client
	o      Options
	most   atomic.Int64 // number of calls that the node accepts in a batch; 0: not known
	proven atomic.Bool  // the node is known to be on chain o.ChainID
}

var _ eoa.Chain = (*Chain)(nil)

// New returns a chain that uses client. It returns an error if client is nil, or if
// MaxBatch is negative.
func New(client Client, o Options) (*Chain, error) {
	if client == nil || o.MaxBatch < 0 {
		return nil, fmt.Errorf("ethchain: client %v and MaxBatch %d, want a client and at least 0", client, o.MaxBatch)
	}
	o.MaxBatch = cmp.Or(o.MaxBatch, defaultBatch)
	return &Chain{client: client, o: o}, nil
}

// call returns a call for a batch, whose answer is decoded into result.
func call(result any, method string, args ...any) rpc.BatchElem {
	return rpc.BatchElem{Method: method, Args: args, Result: result}
}

// do makes calls, and returns an error if any of them fails.
func (c *Chain) do(ctx context.Context, calls ...rpc.BatchElem) error {
	if err := c.batch(ctx, calls); err != nil {
		return err
	}
	return worked(calls)
}

// worked returns the error of the first call that failed, or nil.
func worked(calls []rpc.BatchElem) error {
	for i := range calls {
		if err := calls[i].Error; err != nil {
			return fmt.Errorf("ethchain: %s: %w", calls[i].Method, refused(err))
		}
	}
	return nil
}

// Estimate implements [eoa.Chain].
func (c *Chain) Estimate(ctx context.Context, from common.Address, requests []*eoa.Request) []eoa.Estimated {
	out := make([]eoa.Estimated, len(requests))
	gas := make([]hexutil.Uint64, len(requests))
	var calls []rpc.BatchElem
	var of []int // index of the request of each call
	for i, r := range requests {
		args, err := estimateArgs(from, r)
		if err != nil {
			out[i].Err = err
			continue
		}
		calls, of = append(calls, call(&gas[i], "eth_estimateGas", args)), append(of, i)
	}
	failed := c.batch(ctx, calls)
	for k := range calls {
		out[of[k]] = estimated(calls[k], gas[of[k]], failed)
	}
	return out
}

// estimated returns the estimate from one call and the error of its batch.
func estimated(call rpc.BatchElem, gas hexutil.Uint64, failed error) eoa.Estimated {
	err := cmp.Or(failed, worked([]rpc.BatchElem{call}))
	switch {
	case err != nil && reverted(err):
		return eoa.Estimated{Err: fmt.Errorf("%w: %w", eoa.ErrReverted, err)}
	case err != nil:
		return eoa.Estimated{Err: err}
	case gas == 0:
		return eoa.Estimated{Err: fmt.Errorf("%w: estimate of 0 gas", ErrNode)}
	}
	return eoa.Estimated{Gas: uint64(gas)}
}

// estimateArgs returns the arguments of eth_estimateGas.
func estimateArgs(from common.Address, r *eoa.Request) (map[string]any, error) {
	args := map[string]any{"from": from, "input": hexutil.Bytes(r.Data)}
	if r.To != nil {
		args["to"] = r.To
	}
	if r.Value != nil {
		args["value"] = (*hexutil.Big)(r.Value.ToBig())
	}
	if len(r.AccessList) > 0 {
		args["accessList"] = r.AccessList
	}
	if len(r.Authorizations) > 0 {
		args["authorizationList"] = r.Authorizations
	}
	hashes, err := r.BlobHashes()
	if len(hashes) > 0 {
		args["blobVersionedHashes"] = hashes
	}
	return args, err
}

// Ask implements eoa.Chain.
func (c *Chain) Ask(ctx context.Context, q eoa.Questions) (eoa.Answers, error) {
	out := eoa.Answers{
		Number: ^uint64(0), Receipts: map[common.Hash]eoa.Receipt{}, Missing: map[common.Hash]bool{}, Blocks: map[uint64]common.Hash{},
		Users: map[uint64]common.Hash{},
	}
	left := q.Txs
	for probe := 0; probe < probes && len(left) >= blockwise; probe++ {
		var err error
		if left, err = c.blockwise(ctx, &out, left); err != nil {
			return eoa.Answers{}, err
		}
	}
	receipts := make([]*receipt, len(left))
	blocks := make([]*header, len(q.Heights))
	var calls []rpc.BatchElem
	for i, h := range left {
		calls = append(calls, call(&receipts[i], "eth_getTransactionReceipt", h))
	}
	for i, height := range q.Heights {
		calls = append(calls, call(&blocks[i], "eth_getBlockByNumber", hexutil.Uint64(height), false))
	}
	for from, n := 0, 0; from < len(calls); from += n {
		n = min(max(1, c.limit()-1), len(calls)-from) // ask adds one
		if err := c.ask(ctx, &out, calls[from:from+n]); err != nil {
			return eoa.Answers{}, err
		}
	}
	for i, h := range left {
		if calls[i].Error == nil {
			note(&out, h, receipts[i])
		}
	}
	for i, height := range q.Heights {
		if b := blocks[i]; calls[len(left)+i].Error == nil && b != nil && b.Hash != nil && b.Number != nil && uint64(*b.Number) == height {
			out.Blocks[height] = *b.Hash
		}
	}
	if err := c.users(ctx, &out, q.Account, q.Nonces); err != nil {
		return eoa.Answers{}, err
	}
	return out, nil
}

// ask makes calls, and lowers out.Number to the height of the node's newest block.
func (c *Chain) ask(ctx context.Context, out *eoa.Answers, calls []rpc.BatchElem) error {
	// Ask for the height of the newest block first, usually in the same batch. The node that
	// answers the other calls then has at least that block.
	var head hexutil.Uint64
	batch := append([]rpc.BatchElem{call(&head, "eth_blockNumber")}, calls...)
	if err := c.batch(ctx, batch); err != nil {
		return err
	}
	if batch[0].Error != nil {
		return fmt.Errorf("ethchain: eth_blockNumber: %w", refused(batch[0].Error))
	}
	out.Number = min(out.Number, uint64(head))
	copy(calls, batch[1:])
	return nil
}

// receipt has those fields of a receipt that the chain uses. A receipt with the
// hash of another transaction is ignored.
type receipt struct {
	Tx      *common.Hash    `json:"transactionHash"`
	Block   *common.Hash    `json:"blockHash"`
	Number  *hexutil.Uint64 `json:"blockNumber"`
	Status  *hexutil.Uint64 `json:"status"`
	GasUsed hexutil.Uint64  `json:"gasUsed"`

	// These fields are optional. They are decoded separately, so that a node that
	// returns one of them in an unusual form can still be used.
	GasPrice json.RawMessage `json:"effectiveGasPrice"`
	Contract json.RawMessage `json:"contractAddress"`
	Logs     json.RawMessage `json:"logs"`
}

// details copies those optional fields that can be decoded to out.
func (r *receipt) details(out *eoa.Receipt) {
	var price *hexutil.Big
	if json.Unmarshal(r.GasPrice, &price) == nil && price != nil {
		if wei, over := uint256.FromBig(price.ToInt()); !over {
			out.GasPrice = wei
		}
	}
	if json.Unmarshal(r.Contract, &out.Contract) != nil {
		out.Contract = nil
	}
	var logs []struct {
		Address common.Address `json:"address"`
		Topics  []common.Hash  `json:"topics"`
		Data    hexutil.Bytes  `json:"data"`
	}
	if json.Unmarshal(r.Logs, &logs) != nil {
		return
	}
	for _, l := range logs {
		out.Logs = append(out.Logs, eoa.Log{Address: l.Address, Topics: l.Topics, Data: l.Data})
	}
}

// note adds the receipt of tx to the answers; nil means no block.
func note(out *eoa.Answers, tx common.Hash, r *receipt) {
	switch {
	case r == nil:
		out.Missing[tx] = true
	case r.Tx == nil || *r.Tx != tx || r.Block == nil || r.Number == nil || r.Status == nil:
		// The receipt is for another transaction, or belongs to no block.
	default:
		one := eoa.Receipt{Number: uint64(*r.Number), Block: *r.Block, Success: *r.Status == 1, GasUsed: uint64(r.GasUsed)}
		r.details(&one)
		out.Receipts[tx] = one
	}
}

// blockwise fetches the receipts of one block, and returns the transactions that
// are left.
func (c *Chain) blockwise(ctx context.Context, out *eoa.Answers, txs []common.Hash) ([]common.Hash, error) {
	// Find out which block has the first transaction, and then fetch all receipts of that
	// block in one call.
	var first *receipt
	calls := []rpc.BatchElem{call(&first, "eth_getTransactionReceipt", txs[0])}
	if err := c.ask(ctx, out, calls); err != nil {
		return nil, err
	}
	if calls[0].Error != nil {
		return txs[1:], nil
	}
	note(out, txs[0], first)
	if _, found := out.Receipts[txs[0]]; !found {
		return txs[1:], nil
	}
	var all []receipt
	calls = []rpc.BatchElem{call(&all, "eth_getBlockReceipts", *first.Number)}
	if err := c.ask(ctx, out, calls); err != nil {
		return nil, err
	}
	byHash := make(map[common.Hash]*receipt, len(all))
	for i := range all {
		if all[i].Tx != nil && calls[0].Error == nil {
			byHash[*all[i].Tx] = &all[i]
		}
	}
	var left []common.Hash
	for _, h := range txs[1:] {
		if r := byHash[h]; r != nil {
			note(out, h, r)
		} else {
			left = append(left, h)
		}
	}
	return left, nil
}
