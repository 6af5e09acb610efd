// Package pvm runs programs of JAM's virtual machine, the PVM, for the tests of
// the rollup's service and its authorizer. It is an interpreter of the
// instructions that these use, and nothing more: any other opcode panics, as an
// unknown one does in every PVM.
//
//	program, err := pvm.Load(blob)                        // standard initialisation
//	result := program.Run(0, 1_000_000, arguments, host)  // entry point and gas
//	result.Status, result.Output, result.Gas
//
// The rules are those of the Gray Paper, version 0.7.2, appendix A: gas of 1
// per instruction, jumps that reach basic blocks only, and memory in four
// regions. A real PVM tells a panic from a page fault; both end an invocation
// in the same way, so this package has one status for them.
//
// The table in instructions.go holds name, opcode, shape and effect of each
// instruction. The assembler reads the same table.
package pvm
