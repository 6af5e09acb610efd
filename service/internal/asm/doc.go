// Package asm is an assembler for JAM's virtual machine, the PVM. Package service
// uses it for its two programs.
//
// A source is text with one statement per line. A semicolon begins a comment.
//
//	limit = 64                      ; a constant
//
//	.ro                             ; data that the program cannot change
//	greeting: .text "hello"
//	table:    .u8 1, 2, limit-1
//	          .u64 0x6a09e667f3bcc908
//	.rw                             ; data that it can
//	counter:  .space 8
//
//	.code
//	again:                          ; a label
//	    load_u64 r1, counter        ; the value at an address
//	    load_imm r2, counter+8      ; an address
//	    call r5, step               ; r5 is where to return to
//	    branch_lt_u_imm r1, limit, again
//	    trap
//	step:
//	    add_imm_64 r1, r1, 1
//	    return r5
//
// Sections may alternate, and several sources can form one program. Mnemonics and
// opcodes are those of package pvm. If an instruction changes a register, that
// register is its first operand. Four statements stand for other instructions:
//
//   - "call rL, label" is a load_imm_jump with a new entry in the jump table, which
//     leads to the next instruction. "call rL, label, 1, x" first loads the two
//     values into r7 and r8.
//   - "return rL" is a jump_ind to the address in that register.
//   - "ecalli name" gets the number of the host call from a table, because it
//     depends on the version of the Gray Paper.
//   - A label inserts a fallthrough if the instruction before it does not end a
//     basic block, because a jump can reach only the begin of a basic block.
//
// If the target of a jump is a number, the jump goes that many bytes forward. Tests
// use this to write invalid programs.
package asm
