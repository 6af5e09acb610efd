// Package eoa sends transactions from externally owned accounts. It assigns nonces, signs,
// sends, watches for inclusion and raises prices. It resumes after a crash at any instruction:
// no request is executed twice, and no nonce gap remains. This sends one payment through a node:
//
//	func pay(ctx context.Context, url string, store eoa.Store, key *ecdsa.PrivateKey, to common.Address, wei *uint256.Int) error {
//		client, err := ethchain.Dial(ctx, url)
//		if err != nil {
//			return err
//		}
//		chain, err := ethchain.New(client, ethchain.Options{ChainID: 1})
//		if err != nil {
//			return err
//		}
//		cfg, account := eoa.DefaultConfig(), eoa.Account{ChainID: 1, Address: crypto.PubkeyToAddress(key.PublicKey)}
//		cfg.Logger = slog.Default() // for failures that are tried again
//		e, err := eoa.New(cfg, account, store, chain, eoa.NewKeySigner(1, key))
//		if err != nil {
//			return err
//		}
//		go e.Run(ctx) // works until ctx ends
//		payment, err := e.Send(ctx, eoa.Request{Key: "invoice 17", To: &to, Value: wei})
//		if err != nil {
//			return err
//		}
//		receipt, err := payment.Wait(ctx, 3) // blocks
//		if err != nil {
//			return err // for example ErrReverted
//		}
//		fmt.Println(receipt.Tx, "is in block", receipt.Height, "and used", receipt.GasUsed, "gas")
//		return nil
//	}
//
// When Send returns without an error, the request is in the store. If pay fails, call it again
// with the same store: the key of the request makes sure that it pays only once. memstore.New
// makes a store in memory, and a store on disk or in a database (pebbleeoa, redisstore) outlives
// the process. The handle also cancels and replaces the request, and [Client.Deliver] passes on
// all events of the account. [Fleet] runs many accounts. A program that sends blobs imports
// package eoa/blobs.
//
// An [Executor] works in steps. In a step, it takes the account's lease in the store, reads the
// state of the account and its chain from the node, and makes its decisions. Each decision is
// stored, as a [Batch], before anything that depends on it is sent.
//
//   - A request is in flight from when it gets a nonce until a block contains one of its
//     transactions.
//   - A gap is a nonce that no known transaction has. The chain executes nothing behind a gap.
//   - A no-op is a transaction that does nothing: it transfers 0 wei from the account to itself.
//     A no-op fills a gap or withdraws a request.
//   - A bump signs a request again with the same nonce, at a higher price.
//
// # Safety rules
//
// A nonce belongs to its request from assignment to finality. Signed bytes are stored before
// they are sent, and the same bytes are sent again if it is unknown whether a node has them.
//
// The result of a send is accepted, rejected, or unknown ([Classify]). No result takes the nonce
// from its request, because a gateway may return the refusal of one node for bytes that another
// node has accepted. After several refusals in a row because of price or gas, the request is
// signed again with the same nonce. After more of them for a permanent reason, a no-op is signed
// for the nonce. Which of these transactions counts is decided by the chain, when it includes
// one.
//
// A lease carries an epoch that only grows, and each commit names the version of the account on
// which it was decided. A worker that has lost its lease therefore cannot write, and neither can
// a delayed write be applied. Such a worker can still send bytes, but only bytes from the store,
// and its successor sends the same bytes.
//
// A request is superseded only if a finalized block has used its nonce and a node names the
// other transaction. If an authorization (EIP-7702) or a contract creation used the nonce, the
// request gets another nonce instead.
//
// # Decisions of the operator
//
// [FeePolicy] limits the prices of all requests; [Request.MaxFee] and [Request.MaxBlobFee] limit
// the prices of one request. [Client.ResetNonce] with force is the only way to give up a
// transaction that may still be mined. If the store has lost writes, or the node is on another
// chain, the account stops ([ErrStopped], [EventStopped]) until the operator calls
// [Client.Resume]. [Fleet.Health] returns the problems of all accounts, and [Fleet.Deliver]
// their events.
package eoa
