// Package eoa sends transactions from externally owned accounts: it gives nonces, signs, sends, watches, raises prices, and goes on after a kill at
// any instruction, without sending anything twice and without leaving a hole.
//
//	store := memstore.New()                              // or pebblestore, or redisstore
//	e, err := eoa.New(eoa.DefaultConfig(), account, store, chain, signer)
//	go e.Run(ctx)
//	_, err = e.Submit(ctx, eoa.Request{Key: "invoice 17", To: &to, Value: wei})
//	record, err := e.Wait(ctx, "invoice 17", eoa.Confirmed)
//
// Once Submit returns without an error the request is durable. It may be repeated with the same key after any error.
//
// # How it is built
//
// [View] is an account as a value, with all decisions as pure methods: [View.Recover] (what must be sent again), [View.Confirm] (what a look at the
// chain means), [View.Choose], [View.Assign] and [View.Prepared] (new transactions), [View.Bumps], [View.Obey] (cancel, replace, reset). Each returns a
// [Batch], one atomic step that a [Store] commits. [Executor] is the thin driver of one account; [Executor.Step] does what can be done now and says when
// there is more to do.
//
// # The rules that make it safe
//
// A nonce belongs to its request from assignment to finality. Signed bytes are durable before they leave, and the same bytes are sent again whenever
// it is not known where they are. A send has three results: accepted, rejected for certain, or unknown ([Classify]). Unknown never frees a nonce. Nothing does
// but a certain no to the only bytes that a request has, from the first node they were given to, heard by the worker that signed them; then the next
// request, or a transaction that does nothing, fills the nonce.
//
// A lease carries an epoch that only grows, and each commit names the account's version: a worker that lost the account, or whose last write is still
// on its way, can write nothing. After a commit without an answer a worker first commits an empty step, so that the lost one is refused if it arrives after
// all, and only then goes on. What such a worker may still send are bytes that the store holds, and the next worker sends the same.
//
// A request is superseded by somebody else's transaction only with proof: the nonce is used in the finalized block, and at two heads, of which
// the first is final by the second, a node that is not behind says of each attempt that it is in no block.
//
// # Blobs
//
// Transactions of kind [Blob] (EIP-4844) differ in what nodes do with them. What is signed, and kept as an attempt, has only hashes of the blobs; these are
// kept once, with the request, and go with the bytes each time they are sent, so whatever a signer gives back, the blobs are ours. A replacement must pay
// twice as much, by all three prices. Once it is over a record has no blobs: what it was sent with is on the chain, and its key still means the same
// request. At most [MaxPendingBlobs] wait for a nonce; more are refused with [ErrTooManyBlobs].
// Nodes keep them in a pool of their own, at most 16 of an account, none ahead of a missing nonce, and an account in one of the two pools at a time.
// Hence the rule: a nonce that a blob transaction has is only ever filled by another one. The noop has one blob of zeros, [Executor.Replace] does not
// cross over, and requests of one sort wait until nothing of the other is in flight, as those behind them do. Where a reorganization takes back both,
// they are sent one sort after the other. Give blobs an account of their own.
//
// From the Osaka fork on networks want blobs with proofs of their cells, before it with one proof each: see [Config.CellProofs]. A chain that is about to
// pass the fork is served by setting it then: go-ethereum 1.16 and 1.17 take the old form after it as well, and the hash is the same.
//
// # What the operator decides
//
// [FeePolicy] bounds prices, [Request.MaxFee] and [Request.MaxBlobFee] for one request. [Executor.ResetNonce] with force is the only way to give up what may still be mined.
package eoa
