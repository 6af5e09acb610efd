// Package eoa sends transactions from externally owned accounts. It assigns
// nonces, signs, sends, watches for inclusion and raises prices. It resumes
// after a crash at any instruction: no request is executed twice, and no nonce
// gap remains.
//
//	store := memstore.New() // or pebbleeoa, or redisstore
//	e, err := eoa.New(eoa.DefaultConfig(), account, store, chain, signer)
//	go e.Run(ctx)
//	_, err = e.Submit(ctx, eoa.Request{Key: "invoice 17", To: &to, Value: wei})
//	record, err := e.Wait(ctx, "invoice 17", eoa.Confirmed)
//
// When Submit returns without an error, the request is durable. After any error
// it can be repeated with the same key. [Fleet] runs many accounts.
//
// # Structure
//
// [Executor] drives one account. [Executor.Step] does all work that is due and
// returns when the next step is due; [Executor.Run] repeats it. Within, an account
// is a value that calls nothing and has no clock: every decision is a method that
// depends only on the value and its arguments, and returns a [Batch], an atomic step
// that a [Store] commits. A [Client] submits from any process, and needs only the
// store.
//
// # Safety rules
//
// A nonce belongs to its request from assignment to finality. Signed bytes are
// durable before they are sent, and the same bytes are sent again if it is
// unknown whether a node has them.
//
// A send is accepted, rejected, or unknown ([Classify]). No result takes the
// nonce from its request, because a gateway may return the refusal of one node
// for bytes that another node took. The same bytes are sent again. After several
// refusals in a row for its price or gas, the request is signed again with its
// nonce. After more of them for a permanent reason, a transaction that does
// nothing (a noop) takes the nonce. The transaction that is mined decides.
//
// A lease carries an epoch that only grows, and each commit names the version
// of the account that it was decided on. A worker that lost its lease therefore
// cannot write, and neither can a delayed write. If a commit fails and may
// still take effect, the worker commits an empty step first, which makes the
// delayed one a conflict. A worker without a lease can still send bytes, but
// only bytes that the store holds; its successor sends the same ones.
//
// A request is superseded only if a finalized block has used its nonce and a node
// names the other transaction. If an authorization (EIP-7702) or a contract
// creation used the nonce, the request gets another one.
//
// # Blobs
//
// A signed attempt of kind [Blob] (EIP-4844) has only the hashes of its blobs.
// The blobs are stored once, with the request, and are attached each time the
// bytes are sent. A replacement must at least double all three prices. The
// blobs of a finished record are dropped; submitting its key again still finds
// the same request. At most [MaxPendingBlobs] blobs wait for a nonce; Submit
// returns [ErrTooManyBlobs] beyond that.
//
// Nodes keep blob transactions in a separate pool. It takes at most 16 of an
// account, none ahead of a missing nonce, and no account that has transactions
// in the other pool. Therefore:
//
//   - Only a blob transaction ever fills a nonce that a blob transaction had.
//     The noop has one blob of zeros, and [Client.Replace] keeps the kind.
//   - A blob request waits until no other transaction is in flight, and the
//     reverse. The requests behind it wait as well, so use a separate account
//     for blobs.
//   - If a reorg takes back both kinds, they are sent one kind after the other.
//
// From the Osaka fork on, networks expect cell proofs instead of one proof per
// blob: see [Config.CellProofs]. The transaction hash does not depend on it.
//
// # What the operator decides
//
// [FeePolicy] limits the prices of all requests; [Request.MaxFee] and [Request.MaxBlobFee]
// limit those of one. [Client.ResetNonce] with force is the only way to give up a transaction
// that may still be mined. If the store lost writes, or the node is on another chain, the
// account stops ([ErrStopped], [EventStopped]) until the operator calls [Client.Resume].
// [Fleet.Health] has the problems of all accounts, and [Fleet.Undelivered] their events.
package eoa
