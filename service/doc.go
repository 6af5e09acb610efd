// Package service is the part of a rollup that runs on JAM. It contains the code of
// the rollup's service for JAM's virtual machine (the PVM), the layout of its
// storage, and the account with which a chain begins.
//
//	code, err := service.Blob(codec.V072)            // the preimage of the code hash
//	entries, err := service.Genesis{…}.Entries()     // for a development chain
//	payload := append(service.EncodeHeader(c), block…)
//
// The payload of each work item begins with a header of 136 bytes that describes a
// block of the rollup. The service's refine turns the header into a
// proof.Commitment. Its accumulate stores the commitments that continue the last
// block, so that package canonical/proof can prove the rollup's transactions.
//
// Refine does not execute the block, and does not even read the payload after the
// header. Instead, accumulate accepts packages of one authorizer only, and that
// authorizer accepts only packages that the rollup's builder has signed. [Signer]
// signs them.
//
// The programs are written in assembly, in the folder program. [Refine],
// [Accumulate] and [Authorize] implement the same rules in Go. They serve as the
// readable specification and as the service of simulated chains. Tests compare the
// programs with them, on an interpreter in this folder and on the PVMs of other
// implementations.
//
// The page docs/service.md describes the storage and the costs, and gives the
// reasons for the rules.
package service
