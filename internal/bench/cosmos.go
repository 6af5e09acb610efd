package main

import (
	"cmp"
	"context"
	"math"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/mempool"
	"github.com/ethereum/go-ethereum/core/types"
	protov2 "google.golang.org/protobuf/proto"
)

// cosmos is the pool of cosmos-sdk. It only orders transactions, without checks
// or eviction.
type cosmos struct {
	*mempool.PriorityNonceMempool[int64]
	wrapped map[*types.Transaction]*cosmosTx // made before the clock runs
}

// cosmosTx is a transaction in the form that the pool of cosmos-sdk requires.
type cosmosTx struct {
	signers  []mempool.SignerData
	priority int64
}

func (*cosmosTx) GetMsgs() []sdk.Msg                    { return nil }
func (*cosmosTx) GetMsgsV2() ([]protov2.Message, error) { return nil, nil }

// extractor returns the sender and nonce that the transaction contains.
type extractor struct{}

func (extractor) GetSigners(tx sdk.Tx) ([]mempool.SignerData, error) {
	return tx.(*cosmosTx).signers, nil
}

func openCosmos(limits) pool {
	return &cosmos{
		PriorityNonceMempool: mempool.NewPriorityMempool(mempool.PriorityNonceMempoolConfig[int64]{
			TxPriority: mempool.TxPriority[int64]{
				GetTxPriority: func(_ context.Context, tx sdk.Tx) int64 { return tx.(*cosmosTx).priority },
				Compare:       cmp.Compare[int64],
				MinValue:      math.MinInt64,
			},
			TxReplacement:   func(old, new int64, _, _ sdk.Tx) bool { return new >= old+old/8 },
			SignerExtractor: extractor{},
		}),
		wrapped: make(map[*types.Transaction]*cosmosTx),
	}
}

// wrap converts transactions to cosmosTx.
func (c *cosmos) wrap(txs []*types.Transaction) {
	for _, tx := range txs {
		from := sender(tx)
		c.wrapped[tx] = &cosmosTx{
			signers:  []mempool.SignerData{{Signer: sdk.AccAddress(from[:]), Sequence: tx.Nonce()}},
			priority: tx.GasTipCap().Int64(),
		}
	}
}

func (c *cosmos) add(tx *types.Transaction) {
	must(c.Insert(context.Background(), c.wrapped[tx], mempool.InsertOption{}))
}

func (c *cosmos) addAll(txs []*types.Transaction) {
	for _, tx := range txs {
		c.add(tx)
	}
}

func (c *cosmos) best(n int) int {
	got := 0
	c.SelectBy(context.Background(), nil, func(mempool.PooledTx) bool {
		got++
		return got < n
	})
	return got
}

func (c *cosmos) commit(block []*types.Transaction) {
	for _, tx := range block {
		must(c.Remove(c.wrapped[tx]))
	}
}

func (c *cosmos) look(tx *types.Transaction) {
	w := c.wrapped[tx]
	_ = w.signers[0].Signer[0]
}

func (c *cosmos) size() int { return c.CountTx() }
func (c *cosmos) close()    {}
