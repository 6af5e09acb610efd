package evm

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/vm"
	"pgregory.net/rapid"
)

// assembler draws programs: a few steps, each of which leaves the stack as it was.
type assembler struct {
	*rapid.T
	people []common.Address
	code   []byte
}

// program draws code that uses some addresses. It creates contracts with the
// code of such a program, nested deep times.
func program(t *rapid.T, people []common.Address, deep int) []byte {
	a := &assembler{T: t, people: people}
	for range rapid.IntRange(2, 9).Draw(t, "steps") {
		a.step(deep)
	}
	switch rapid.IntRange(0, 8).Draw(t, "end") {
	case 6:
		a.op(vm.PUSH0, vm.PUSH0, vm.REVERT)
	case 7:
		a.op(vm.INVALID)
	case 8:
		a.push(64)
		a.op(vm.PUSH0, vm.RETURN)
	}
	return a.code
}

func (a *assembler) op(ops ...vm.OpCode) {
	for _, op := range ops {
		a.code = append(a.code, byte(op))
	}
}

func (a *assembler) push(b ...byte) {
	a.op(vm.PUSH0 + vm.OpCode(len(b)))
	a.code = append(a.code, b...)
}

// pushAddress pushes an address.
func (a *assembler) pushAddress() {
	if i := rapid.IntRange(-3, len(a.people)-1).Draw(a.T, "who"); i >= 0 {
		a.push(a.people[i][:]...)
	} else {
		a.op([]vm.OpCode{vm.ADDRESS, vm.CALLER, vm.COINBASE}[i+3])
	}
}

// slot pushes a slot: one in the header, one far from it, or one that would be
// the account's balance if it wrapped.
func (a *assembler) slot() {
	a.push(rapid.SampledFrom([][]byte{{0}, {1}, {0xff, 0xff}, append([]byte{0xff}, make([]byte, 31)...)}).Draw(a.T, "slot")...)
}

func (a *assembler) small() { a.push(rapid.Byte().Draw(a.T, "small") % 3) }

func (a *assembler) step(deep int) {
	switch rapid.IntRange(0, 10).Draw(a.T, "step") {
	case 0:
		a.small()
		a.slot()
		a.op(vm.SSTORE)
	case 1:
		a.slot()
		a.op(vm.SLOAD)
		a.slot()
		a.op(vm.SSTORE)
	case 2:
		a.pushAddress()
		a.op(rapid.SampledFrom([]vm.OpCode{vm.BALANCE, vm.EXTCODESIZE, vm.EXTCODEHASH}).Draw(a.T, "look"))
		a.slot()
		a.op(vm.SSTORE)
	case 3:
		a.small()
		a.slot()
		a.op(vm.TSTORE)
		a.slot()
		a.op(vm.TLOAD, vm.POP)
	case 4, 5:
		a.call()
	case 6, 7:
		if deep > 0 {
			a.create(deep)
		}
	case 8:
		a.small()
		a.push(32)
		a.op(vm.PUSH0, vm.LOG1)
	case 9:
		a.push(rapid.Byte().Draw(a.T, "back"))
		a.op(vm.NUMBER, vm.SUB, vm.BLOCKHASH)
		a.slot()
		a.op(vm.SSTORE)
	case 10:
		if a.pushAddress(); rapid.IntRange(0, 2).Draw(a.T, "last") == 2 {
			a.op(vm.SELFDESTRUCT)
		} else {
			a.push(32)
			a.op(vm.PUSH0, vm.PUSH0, vm.DUP4, vm.EXTCODECOPY, vm.POP)
		}
	}
}

// call calls an account and stores whether the call succeeded.
func (a *assembler) call() {
	kind := rapid.SampledFrom([]vm.OpCode{vm.CALL, vm.CALL, vm.CALLCODE, vm.DELEGATECALL, vm.STATICCALL}).Draw(a.T, "call")
	a.push(4)
	a.op(vm.PUSH0)
	a.push(36)
	a.op(vm.PUSH0)
	if kind == vm.CALL || kind == vm.CALLCODE {
		a.small()
	}
	a.pushAddress()
	if rapid.Bool().Draw(a.T, "all gas") {
		a.op(vm.GAS)
	} else {
		a.push(0x40, 0)
	}
	a.op(kind)
	a.slot()
	a.op(vm.SSTORE)
}

// create creates a contract, whose init code stands in the middle of the code, and may call it.
func (a *assembler) create(deep int) {
	init := program(a.T, a.people, deep-1)
	if rapid.Bool().Draw(a.T, "deploys") {
		init = deployer(init)
	}
	if len(init) > 255 {
		return
	}
	size, start := byte(len(init)), len(a.code)
	a.push(size)
	a.push(0, 0) // position; see below
	a.op(vm.PUSH0, vm.CODECOPY)
	if rapid.Bool().Draw(a.T, "create2") {
		a.small()
		a.push(size)
		a.op(vm.PUSH0)
		a.small()
		a.op(vm.CREATE2)
	} else {
		a.push(size)
		a.op(vm.PUSH0)
		a.small()
		a.op(vm.CREATE)
	}
	if rapid.Bool().Draw(a.T, "call it") {
		a.op(vm.PUSH0, vm.PUSH0, vm.PUSH0, vm.PUSH0, vm.PUSH0, vm.DUP6, vm.GAS, vm.CALL, vm.POP)
	}
	a.op(vm.POP)
	over := len(a.code)
	a.push(0, 0) // behind it
	a.op(vm.JUMP)
	a.code[start+3], a.code[start+4] = byte(len(a.code)>>8), byte(len(a.code))
	a.code = append(a.code, init...)
	a.code[over+1], a.code[over+2] = byte(len(a.code)>>8), byte(len(a.code))
	a.op(vm.JUMPDEST)
}
