// Package service is the part of a rollup that runs on JAM: the code of its
// service for JAM's virtual machine, the PVM, with the layout of its storage and
// the genesis of its account.
//
//	code, err := service.Blob(codec.V072)            // the preimage of the code hash
//	entries, err := service.Genesis{…}.Entries()     // for a development chain
//	payload := append(service.EncodeHeader(c), block…)
//
// A payload begins with a header of 136 bytes. The service's refine makes a
// proof.Commitment of it, and its accumulate stores those that continue the last
// block, so that package canonical/proof can prove the rollup's transactions.
// Refine does not execute the rollup's block: it looks at nothing after the
// header. Instead, accumulate accepts packages of one authorizer only, which lets
// those pass that the rollup's builder has signed. [Signer] signs them.
//
// The programs are in the folder program, in assembly. [Refine], [Accumulate] and
// [Authorize] are the same rules in Go: the specification to read, and a service
// for simulated chains. Tests compare both, on an interpreter in this folder and
// on the PVMs of others.
//
// docs/service.md has the storage, the costs, and the reasons of the rules.
package service
