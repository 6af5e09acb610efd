// Package ethchain lets an executor of package eoa talk to a node by JSON-RPC, in batches, through go-ethereum's rpc.Client; and sign by a remote
// signer.
//
//	client, err := ethchain.Dial(ctx, url)
//	chain, err := ethchain.New(client, ethchain.Options{})
//	e, err := eoa.New(cfg, account, store, chain, signer)
//
// Any rpc.Client will do; one of [Dial] also hears, over HTTP, for how long a node asks to be left alone (Retry-After).
//
// A look at the chain is one batch, or two where finality is a depth. Receipts come one by one in a batch where few are asked for, and by the block
// where one block has many of them, which costs a node a fraction.
package ethchain
