// Package account decides what an externally owned account does next. It is the
// state machine behind package eoa: a [View] holds an account as its worker sees
// it, and each method of View is one decision. The package has no clock, no lock
// and no I/O, so that the same calls always have the same results: the caller
// passes the time, the answers of the chain, and the orders of users.
//
// A decision returns a [Batch], which the store writes as a whole, or the work that
// the caller must do, for example a [Job] to sign or bytes to send. The caller
// commits the batch and passes it to [View.Apply]. Nothing else changes the
// account, except for notes that may be lost in a crash.
//
// The file step.go has all decisions, in the order in which a step of package eoa
// makes them. The rules have a file each:
//
//	cancel.go      orders of users: cancel, replace, reset, resume
//	confirm.go     observations of the chain: mined, confirmed, final, reorganized, lost
//	stop.go        a doubt about the node or the store stops the account
//	broadcast.go   which stored bytes are sent, and what the answers mean
//	bump.go        which transactions are replaced, and at which price
//	choose.go      which requests may get a nonce
//	refuse.go      requests that cannot be sent now, or that would revert
//	assign.go      nonces and prices
//	fill.go        noops for the nonces without a known transaction
//	sign.go        signatures become part of the record
//	retain.go      which ended requests are dropped
//	problem.go     why the account makes no progress
//
// The files refusal.go, gas.go, price.go, policy.go, fees.go, job.go, blob.go and
// kzg.go have the rules that these share, view.go and batch.go the account, and the
// rest its values. A file calls only files below it, in the order of
// internal/tidy/order_test.go.
package account
