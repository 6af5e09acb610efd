// Command verify checks a proof that a transaction of a rollup is final, with its
// receipt, or a proof of an account in the state after a final block. It reads a document of
// package canonical/proof, or one of evmrollup/stateproof for an account,
// and needs no network:
//
//	go run ./examples/verify -trust trust.json -tx 0x… proof.json
//	go run ./examples/verify -trust trust.json -tx 0x… -receipt proof.json
//	go run ./examples/verify -trust trust.json -account 0x… -slot 0x0 proof.json
//
// With -node it requests the document from a node of the rollup and checks the
// answer in the same way:
//
//	go run ./examples/verify -trust trust.json -tx 0x… -node http://127.0.0.1:8545
//
// The trust file has the keys of JAM's validators and the rollup's service.
// Obtain it from a source that you trust, and not from the author of the proof.
// To try the command, omit -trust with -node: the node then supplies the trust
// as well, and the output warns about that. The files may be the output of curl
// for jam_getTrust and the method with the proof: jam_getFinalityProof,
// jam_getReceiptProof or jam_getAccountProof.
//
// A trust file is about one validator set. With -node the command asks the node
// for the proofs of later sets that it needs, and without it reads them from the
// files of -handoff (jam_getHandoff). With -save it writes the trust in the last
// set. Do that before the validators of the old set have left JAM: then they can
// lie without a penalty. See proof.Handoff.
//
//	go run ./examples/verify -trust trust.json -save trust.json -tx 0x… -node http://127.0.0.1:8545
//
// The exit status is 0 if the proof is valid, 1 if it is not, and 2 for wrong
// usage.
package main

import (
	"os"

	"github.com/jamq/jamq/examples/verify/command"
)

func main() { os.Exit(command.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
