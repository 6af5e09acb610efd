// Package asm assembles programs for JAM's virtual machine, the PVM.
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
// Sections may alternate, and several sources make one program. Mnemonics and
// opcodes are those of package pvm; the register that an instruction changes
// comes first. Four statements are made of others:
//
//   - "call rL, label" is a load_imm_jump with a new entry of the jump table for
//     the instruction after it. "call rL, label, 1, x" loads these values into
//     r7 and r8 before.
//   - "return rL" is a jump_ind to the address in that register
//   - "ecalli name" takes the number of the host's call from a table that
//     depends on the version of the Gray Paper
//   - a label gets a fallthrough in front of it if the instruction before it does
//     not end a basic block. Jumps reach basic blocks only.
//
// A jump whose target is a number goes this many bytes forward, so that tests
// can write programs that are wrong.
package asm
