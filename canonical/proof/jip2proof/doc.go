// Package jip2proof makes the JAM part of a finality proof from the answers of a
// JAM node over JIP-2. That part consists of the validators' signatures over the
// output log, and of the path from the log to the hash that the rollup's service
// yielded.
//
//	output, err := client.AccumulationOutputProof(ctx, block, service)
//	signed, err := client.BeefyCommitments(ctx, block)
//	document.Beefy, document.Log, err = jip2proof.Links(service, output, signed)
//
// Here, block is the final JAM block that accumulated the rollup block's package.
// The service must have yielded the commitment in that block
// (proof.Commitment.Yield). The host adds the claim, the commitment and the
// transaction; see proof.Document.
//
// A service yields only one hash per call of accumulate. If a call applied several
// rollup blocks, only the commitment to the last of them was yielded. To prove an
// earlier block, the host goes through the service's storage instead: see [State].
//
// # Signatures over a later block
//
// If the node has too few signatures for block, the signatures for a later final
// block serve as well, because the log after that block contains the same leaf:
//
//	outer, err := client.BeefyMMRProof(ctx, later, output.LeafIndex)
//	output.BeefyRoot, output.Outer = outer.BeefyRoot, outer.Proof
//	signed, err := client.BeefyCommitments(ctx, later)
//
// # Several outputs of a service
//
// JIP-2 proves only the first output of a service in a block. To prove a later
// output, the host decodes the result of Client.AccumulationOutputs with
// proof.DecodeOutputs, and makes proof.YieldProof.Output with proof.ProveOutput.
//
// # Trust
//
// [Links] detects answers that contradict each other. It does not verify
// signatures, because it does not know the validators. proof.Document.Verify does
// that, and refuses a document if a single signature is wrong, even if the others
// are enough.
package jip2proof
