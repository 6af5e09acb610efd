// Package account decides what an externally owned account does next. It is the
// state machine behind package eoa: a [View] holds the account as its worker sees
// it, and each method of View is one decision. The caller passes in the time, the
// answers of the chain, and the orders of users. The package has no clock, lock or
// I/O, so that the same calls always give the same results.
//
// A decision returns a [Batch], which the store writes as a whole, or the work that
// the caller must do, for example a [Job] to sign or bytes to send. The caller
// commits the batch and passes it to [View.Apply]. Nothing else changes the
// account, except for notes that may be lost in a crash.
//
// A step of package eoa makes the decisions in this order, and each has a file:
//
//	View.CarryOut                    cancel.go     orders of users: cancel, replace, reset, resume
//	View.Trust                       trust.go      may anything be decided on what the node says
//	View.Questions, View.Confirm     confirm.go    mined, confirmed, final, reorganized, lost
//	View.ToSend, View.ApplyResults   broadcast.go  which stored bytes are sent, and the answers
//	View.Bumps, View.EstimatedBumps  bump.go       which transactions are replaced, at which price
//	View.Choose                      choose.go     which requests may get a nonce
//	View.Assign                      assign.go     nonces and prices
//	View.Prepare                     sign.go       signatures become part of the record
//	View.DropOld                     retain.go     which ended requests are dropped
//	View.Problems                    problem.go    why the account makes no progress
//
// The files refuse.go, stop.go, refusal.go, gas.go, price.go, policy.go, fees.go,
// job.go, blob.go and kzg.go have the rules that these share, view.go and batch.go the
// account, and the rest its values. A file calls only files below it, in the order of
// internal/tidy/order_test.go.
package account
