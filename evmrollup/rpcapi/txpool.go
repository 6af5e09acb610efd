package rpcapi

import (
	"context"
	"fmt"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/jamq/jamq/evmrollup/internal/ledger"
)

// txpoolMethods implements the namespace txpool. In its answers, "pending" contains the
// transactions whose nonces follow the account's nonce without a gap, and "queued"
// contains those behind a gap.
type txpoolMethods struct{ *api }

// Status implements txpool_status. It returns the numbers of pending and queued
// transactions.
func (a *txpoolMethods) Status(ctx context.Context) (map[string]hexutil.Uint, error) {
	if answer, asked, err := askLeader[map[string]hexutil.Uint](ctx, a.api, "txpool_status"); asked {
		return answer, err
	}
	pending, queued := a.node.PoolCounts()
	return map[string]hexutil.Uint{"pending": hexutil.Uint(pending), "queued": hexutil.Uint(queued)}, nil
}

// ContentFrom implements txpool_contentFrom. It returns the pool's transactions from
// one sender. The keys are their nonces in decimal.
func (a *txpoolMethods) ContentFrom(ctx context.Context, sender common.Address) (_ map[string]map[string]object, err error) {
	defer ledger.Recover(&err)
	all, err := a.Content(ctx)
	if err != nil {
		return nil, err
	}
	content := map[string]map[string]object{"pending": {}, "queued": {}}
	for name := range content {
		if txs := all[name][sender.Hex()]; txs != nil {
			content[name] = txs
		}
	}
	return content, nil
}

// Content implements txpool_content. It returns all transactions in the pool, grouped
// by sender address and then by nonce in decimal.
func (a *txpoolMethods) Content(ctx context.Context) (_ map[string]map[string]map[string]object, err error) {
	defer ledger.Recover(&err)
	if answer, asked, err := askLeader[map[string]map[string]map[string]object](ctx, a.api, "txpool_content"); asked {
		return answer, err
	}
	pending, queued := a.node.PoolContent()
	content := make(map[string]map[string]map[string]object, 2)
	for name, senders := range map[string]map[common.Address][]*types.Transaction{"pending": pending, "queued": queued} {
		content[name] = make(map[string]map[string]object, len(senders))
		for sender, txs := range senders {
			byNonce := make(map[string]object, len(txs))
			for _, tx := range txs {
				o, err := a.pooledTransaction(tx, a.node.PooledProgress())
				if err != nil {
					return nil, fmt.Errorf("rpcapi: txpool content: %w", err)
				}
				byNonce[quoteNonce(tx.Nonce())] = o
			}
			content[name][sender.Hex()] = byNonce
		}
	}
	return content, nil
}

// Inspect implements txpool_inspect. It returns the same transactions as Content,
// each as one line of text.
func (a *txpoolMethods) Inspect(ctx context.Context) (map[string]map[string]map[string]string, error) {
	if answer, asked, err := askLeader[map[string]map[string]map[string]string](ctx, a.api, "txpool_inspect"); asked {
		return answer, err
	}
	pending, queued := a.node.PoolContent()
	content := make(map[string]map[string]map[string]string, 2)
	for name, senders := range map[string]map[common.Address][]*types.Transaction{"pending": pending, "queued": queued} {
		content[name] = make(map[string]map[string]string, len(senders))
		for sender, txs := range senders {
			byNonce := make(map[string]string, len(txs))
			for _, tx := range txs {
				to := "contract creation"
				if tx.To() != nil {
					to = tx.To().Hex()
				}
				byNonce[quoteNonce(tx.Nonce())] = fmt.Sprintf("%s: %v wei + %v gas × %v wei", to, tx.Value(), tx.Gas(), tx.GasPrice())
			}
			content[name][sender.Hex()] = byNonce
		}
	}
	return content, nil
}

// quoteNonce returns a nonce in decimal, as the keys of txpool_content have it.
func quoteNonce(nonce uint64) string { return strconv.FormatUint(nonce, 10) }
