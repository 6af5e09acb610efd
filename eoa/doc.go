// Package eoa sends transactions from externally owned accounts. It assigns
// nonces, signs, sends, watches for inclusion and raises prices. It resumes
// after a crash at any instruction: no request is executed twice, and no nonce
// gap remains. This sends one payment through a node:
//
//	func pay(ctx context.Context, url string, key *ecdsa.PrivateKey, to common.Address, wei *uint256.Int) error {
//		client, err := ethchain.Dial(ctx, url)
//		if err != nil {
//			return err
//		}
//		chain, err := ethchain.New(client, ethchain.Options{ChainID: 1})
//		if err != nil {
//			return err
//		}
//		account := eoa.Account{ChainID: 1, Address: crypto.PubkeyToAddress(key.PublicKey)}
//		e, err := eoa.New(eoa.DefaultConfig(), account, memstore.New(), chain, eoa.NewKeySigner(1, key))
//		if err != nil {
//			return err
//		}
//		go e.Run(ctx) // works until ctx ends
//		payment, err := e.Send(ctx, eoa.Request{Key: "invoice 17", To: &to, Value: wei})
//		if err != nil {
//			return err // nothing is lost: send it again with the same key
//		}
//		receipt, err := payment.Wait(ctx, 3) // blocks
//		if err != nil {
//			return err // for example ErrReverted
//		}
//		fmt.Println(receipt.Tx, "is in block", receipt.Height, "and used", receipt.GasUsed, "gas")
//		return nil
//	}
//
// When Send returns without an error, the request is in the store. Its handle also
// cancels and replaces it, and [Client.Deliver] passes on all events of the account. A
// store on disk or in a database (pebbleeoa, redisstore) outlives the process. [Fleet]
// runs many accounts. A program that sends blobs imports package eoa/blobs.
//
// # Words
//
// An [Executor] works in steps. A step takes the account's lease in the store, takes a
// look at the account and its chain through the node, and makes its decisions. Each is
// stored, as a [Batch], before anything that depends on it is sent. A request is in flight
// from when it has a nonce until a block has one of its transactions. A gap is a nonce that
// no known transaction has: the chain executes nothing behind it. A noop is a transaction
// that does nothing, 0 wei from the account to itself. It fills a gap, or withdraws a
// request. A bump signs a request again with its nonce, at a higher price.
//
// # Safety rules
//
// A nonce belongs to its request from assignment to finality. Signed bytes are
// stored before they are sent, and the same bytes are sent again if it is
// unknown whether a node has them.
//
// A send is accepted, rejected, or unknown ([Classify]). No result takes the nonce from
// its request, because a gateway may return the refusal of one node for bytes that another
// node took. After several refusals in a row for its price or gas, the request is signed
// again with its nonce. After more of them for a permanent reason, a noop takes the nonce.
// The transaction that is mined decides.
//
// A lease carries an epoch that only grows, and each commit names the version of the
// account that it was decided on. A worker that has lost its lease therefore cannot write,
// and neither can a delayed write. It can still send bytes, but only bytes that the store
// has; its successor sends the same ones.
//
// A request is superseded only if a finalized block has used its nonce and a node
// names the other transaction. If an authorization (EIP-7702) or a contract
// creation used the nonce, the request gets another one.
//
// # Decisions of the operator
//
// [FeePolicy] limits the prices of all requests; [Request.MaxFee] and [Request.MaxBlobFee]
// limit those of one. [Client.ResetNonce] with force is the only way to give up a transaction
// that may still be mined. If the store lost writes, or the node is on another chain, the
// account stops ([ErrStopped], [EventStopped]) until the operator calls [Client.Resume].
// [Fleet.Health] has the problems of all accounts, and [Fleet.Deliver] their events.
package eoa
