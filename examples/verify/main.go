// Command verify checks a proof that a transaction of a rollup is final, or a proof of an account,
// without trust in the rollup's node. docs/refnode.md explains the flags.
//
//	go run ./examples/verify -trust trust.json -tx 0x… -receipt proof.json
//	go run ./examples/verify -trust trust.json -account 0x… -slot 0x0 proof.json
//	go run ./examples/verify -trust trust.json -save trust.json -tx 0x… -node http://127.0.0.1:8545
//
// The exit status is 0 if the proof is valid, 1 if it is not, and 2 for wrong usage.
package main

import (
	"os"

	"github.com/jamq/jamq/examples/verify/command"
)

func main() { os.Exit(command.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
