// Package ethchain connects an executor of package eoa to an Ethereum node over
// JSON-RPC, and to a remote signer.
//
//	client, err := ethchain.Dial(ctx, url)
//	chain, err := ethchain.New(client, ethchain.Options{})
//	e, err := eoa.New(cfg, account, store, chain, signer)
//
// Any rpc.Client of go-ethereum works. One from [Dial] also reads the
// Retry-After header of HTTP responses, so that the executor waits as long as
// the node asks.
//
// A look at the chain is one batch, or two if Options.FinalityDepth is set. A
// few receipts are fetched one by one, in a batch. Many receipts of the same
// block are fetched with eth_getBlockReceipts, which costs a node far less.
package ethchain
