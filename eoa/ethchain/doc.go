// Package ethchain connects package eoa to an Ethereum node over JSON-RPC.
//
//	client, err := ethchain.Dial(ctx, url)
//	chain, err := ethchain.New(client, ethchain.Options{ChainID: 1})
//	e, err := eoa.New(cfg, account, store, chain, signer)
//
// Any rpc.Client of go-ethereum works. A client from [Dial] also reads the
// Retry-After header of HTTP responses, so that the executor waits as long as the
// node requests. To use several nodes, put a gateway in front of them.
//
// # Calls
//
// The state of an account and its chain is read in one batch of calls, or in two if
// Options.FinalityDepth is set. If the node accepts fewer calls in a batch than
// [Options.MaxBatch], the chain learns the number from the refusal and remembers
// it. A few receipts are fetched one by one, in a batch. If many transactions were
// mined, the receipts are fetched by the block (eth_getBlockReceipts), which costs
// a node far less.
package ethchain
