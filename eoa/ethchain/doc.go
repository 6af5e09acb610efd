// Package ethchain connects an executor of package eoa to an Ethereum node over
// JSON-RPC, and to a remote signer.
//
//	client, err := ethchain.Dial(ctx, url)
//	chain, err := ethchain.New(client, ethchain.Options{ChainID: 1})
//	e, err := eoa.New(cfg, account, store, chain, signer)
//
// Any rpc.Client of go-ethereum works. One from [Dial] also reads the
// Retry-After header of HTTP responses, so that the executor waits as long as
// the node asks.
//
// Several endpoints, for example of different providers, become one chain:
//
//	chain, err := ethchain.Join(first, second, third) // each from New
//
// [Joined] sends transactions to all of them, and believes a refusal only if all
// that work refuse. Other questions go to one endpoint, and to the next if that one fails.
//
// A node may take fewer calls in a batch than [Options.MaxBatch]. The chain finds
// that out from its refusal, and remembers the number.
//
// A look at the chain is one batch, or two if Options.FinalityDepth is set. With
// [Options.HeadAge] all accounts share its blocks and prices. A few receipts are
// fetched one by one, in a batch. Many receipts of the same block are fetched
// with eth_getBlockReceipts, which costs a node far less.
package ethchain
