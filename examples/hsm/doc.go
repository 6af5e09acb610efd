// Command hsm sends ether from an account whose key never leaves a PKCS#11 token: a
// hardware security module, or SoftHSM. It shows how package eoa/kms connects a key
// service to an executor.
//
//	softhsm2-util --init-token --free --label jamq --so-pin 1234 --pin 1234
//	export HSM_PIN=1234
//	go run ./examples/hsm -create   # makes a key, and prints its address
//	go run ./examples/hsm -rpc http://127.0.0.1:8545 -to 0x... -wei 1
//
// It needs cgo, because a PKCS#11 module is a C library. The request is kept in memory:
// see examples/relayer for one that survives the program.
package main
