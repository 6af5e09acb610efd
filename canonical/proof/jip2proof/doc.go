// Package jip2proof makes the JAM part of a finality proof from the answers of a
// JAM node over JIP-2: the signatures of validators over the output log, and the
// path from there to the hash that the rollup's service yielded.
//
//	output, err := client.AccumulationOutputProof(ctx, block, service)
//	signed, err := client.BeefyCommitments(ctx, block)
//	document.Beefy, document.Log, err = jip2proof.Links(service, output, signed)
//
// block is the final JAM block that accumulated the rollup block's package, and the
// service must have yielded the commitment there (proof.Commitment.Yield). The
// host adds the claim, the commitment and the transaction; see proof.Document.
//
// A service yields once per call of accumulate. If a call applied several rollup
// blocks, only the last one was yielded. A proof of an earlier one leads through
// the service's storage instead: see [State].
//
// # Signatures over a later block
//
// If the node has too few signatures for block, those for a later final block do
// as well, because the log after it contains the same leaf:
//
//	outer, err := client.BeefyMMRProof(ctx, later, output.LeafIndex)
//	output.BeefyRoot, output.Outer = outer.BeefyRoot, outer.Proof
//	signed, err := client.BeefyCommitments(ctx, later)
//
// # Several outputs of a service
//
// JIP-2 proves the first output of a service in a block. For a later one, the host
// decodes Client.AccumulationOutputs (proof.DecodeOutputs) and makes
// proof.YieldProof.Output with proof.ProveOutput.
//
// # Trust
//
// [Links] finds answers that contradict each other. It verifies no signature,
// because it does not know the validators. That is for proof.Document.Verify, which
// also refuses a document with one wrong signature among enough.
package jip2proof
