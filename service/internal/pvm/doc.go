// Package pvm runs programs of JAM's virtual machine, the PVM, so that tests can
// execute the rollup's service and its authorizer. It is an interpreter for exactly
// the instructions that these two programs use. Any other opcode panics, as an
// unknown opcode does in every PVM.
//
//	program, err := pvm.Load(blob)                        // standard initialisation
//	result := program.Run(0, 1_000_000, arguments, host)  // entry point and gas
//	result.Status, result.Output, result.Gas
//
// The rules are those of the Gray Paper, version 0.7.2, appendix A: each
// instruction costs 1 gas, jumps reach only the begin of basic blocks, and memory
// consists of four regions. Real PVMs distinguish a panic from a page fault. Both
// end an invocation in the same way, so this package has one status for them.
//
// The table in instructions.go has the name, the opcode, the shape and the effect
// of each instruction. The assembler reads the same table.
package pvm
