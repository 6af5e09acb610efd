package pvm

import (
	"encoding/binary"
	"math/bits"
)

// Instruction is an instruction of the machine: the Name by which the assembler
// knows it, its Opcode, the Shape of its operands, and its effect.
type Instruction struct {
	Name   string
	Opcode byte
	Shape  Shape
	effect func(m *Machine, o operands)
}

// Instructions are all instructions that this package executes (GP A.5), in the
// order of their opcodes.
var Instructions = [...]Instruction{
	{"trap", 0, None, func(m *Machine, _ operands) { m.status = Panicked }},
	{"fallthrough", 1, None, func(*Machine, operands) {}},
	{"ecalli", 10, Immediate, func(m *Machine, o operands) { m.status = m.host.Call(o.x, m) }},
	{"jump", 40, Offset, func(m *Machine, o operands) { m.branch(o.x) }},
	{"jump_ind", 50, RegisterImmediate, func(m *Machine, o operands) { m.jumpIndirect(uint32(m.Registers[o.a] + o.x)) }},
	{"load_imm", 51, RegisterImmediate, func(m *Machine, o operands) { m.Registers[o.a] = o.x }},
	{"load_u64", 58, RegisterImmediate, func(m *Machine, o operands) { m.load(o.a, o.x, 8) }},
	{"store_u32", 61, RegisterImmediate, func(m *Machine, o operands) { m.store(o.a, o.x, 4) }},
	{"store_u64", 62, RegisterImmediate, func(m *Machine, o operands) { m.store(o.a, o.x, 8) }},
	{"load_imm_jump", 80, RegisterImmediateOffset, func(m *Machine, o operands) { m.Registers[o.a] = o.x; m.branch(o.y) }},
	{"branch_eq_imm", 81, RegisterImmediateOffset, branchImmediate(equal)},
	{"branch_ne_imm", 82, RegisterImmediateOffset, branchImmediate(differ)},
	{"branch_lt_u_imm", 83, RegisterImmediateOffset, branchImmediate(less)},
	{"branch_ge_u_imm", 85, RegisterImmediateOffset, branchImmediate(notLess)},
	{"move_reg", 100, TwoRegisters, func(m *Machine, o operands) { m.Registers[o.a] = m.Registers[o.b] }},
	{"store_ind_u8", 120, TwoRegistersImmediate, func(m *Machine, o operands) { m.store(o.a, m.Registers[o.b]+o.x, 1) }},
	{"store_ind_u64", 123, TwoRegistersImmediate, func(m *Machine, o operands) { m.store(o.a, m.Registers[o.b]+o.x, 8) }},
	{"load_ind_u8", 124, TwoRegistersImmediate, func(m *Machine, o operands) { m.load(o.a, m.Registers[o.b]+o.x, 1) }},
	{"load_ind_u64", 130, TwoRegistersImmediate, func(m *Machine, o operands) { m.load(o.a, m.Registers[o.b]+o.x, 8) }},
	{"and_imm", 132, TwoRegistersImmediate, computeImmediate(and)},
	{"xor_imm", 133, TwoRegistersImmediate, computeImmediate(xor)},
	{"add_imm_64", 149, TwoRegistersImmediate, computeImmediate(add)},
	{"shlo_l_imm_64", 151, TwoRegistersImmediate, computeImmediate(shiftLeft)},
	{"shlo_r_imm_64", 152, TwoRegistersImmediate, computeImmediate(shiftRight)},
	{"rot_r_64_imm", 158, TwoRegistersImmediate, computeImmediate(rotateRight)},
	{"branch_eq", 170, TwoRegistersOffset, branch(equal)},
	{"branch_ne", 171, TwoRegistersOffset, branch(differ)},
	{"add_64", 200, ThreeRegisters, compute(add)},
	{"sub_64", 201, ThreeRegisters, compute(subtract)},
	{"mul_64", 202, ThreeRegisters, compute(multiply)},
	{"shlo_l_64", 207, ThreeRegisters, compute(shiftLeft)},
	{"shlo_r_64", 208, ThreeRegisters, compute(shiftRight)},
	{"and", 210, ThreeRegisters, compute(and)},
	{"xor", 211, ThreeRegisters, compute(xor)},
	{"or", 212, ThreeRegisters, compute(or)},
	{"mul_upper_u_u", 214, ThreeRegisters, compute(multiplyUpper)},
	{"set_lt_u", 216, ThreeRegisters, compute(setLess)},
}

// table maps each opcode to its instruction, or to nil.
var table [256]*Instruction

func init() {
	for i := range Instructions {
		table[Instructions[i].Opcode] = &Instructions[i]
	}
}

// Ends reports whether a basic block ends after the instruction.
func (i *Instruction) Ends() bool {
	switch i.Shape {
	case Offset, RegisterImmediateOffset, TwoRegistersOffset, None:
		return true
	}
	return i.Name == "jump_ind"
}

func equal(a, b uint64) bool   { return a == b }
func differ(a, b uint64) bool  { return a != b }
func less(a, b uint64) bool    { return a < b }
func notLess(a, b uint64) bool { return a >= b }

func add(a, b uint64) uint64         { return a + b }
func subtract(a, b uint64) uint64    { return a - b }
func multiply(a, b uint64) uint64    { return a * b }
func and(a, b uint64) uint64         { return a & b }
func or(a, b uint64) uint64          { return a | b }
func xor(a, b uint64) uint64         { return a ^ b }
func shiftLeft(a, b uint64) uint64   { return a << (b % 64) }
func shiftRight(a, b uint64) uint64  { return a >> (b % 64) }
func rotateRight(a, b uint64) uint64 { return bits.RotateLeft64(a, -int(b%64)) }

func multiplyUpper(a, b uint64) uint64 {
	high, _ := bits.Mul64(a, b)
	return high
}

func setLess(a, b uint64) uint64 {
	if a < b {
		return 1
	}
	return 0
}

func compute(f func(a, b uint64) uint64) func(*Machine, operands) {
	return func(m *Machine, o operands) { m.Registers[o.d] = f(m.Registers[o.a], m.Registers[o.b]) }
}

func computeImmediate(f func(a, b uint64) uint64) func(*Machine, operands) {
	return func(m *Machine, o operands) { m.Registers[o.a] = f(m.Registers[o.b], o.x) }
}

func branch(holds func(a, b uint64) bool) func(*Machine, operands) {
	return func(m *Machine, o operands) {
		if holds(m.Registers[o.a], m.Registers[o.b]) {
			m.branch(o.x)
		}
	}
}

func branchImmediate(holds func(a, b uint64) bool) func(*Machine, operands) {
	return func(m *Machine, o operands) {
		if holds(m.Registers[o.a], o.x) {
			m.branch(o.y)
		}
	}
}

// load reads size bytes of the memory into a register.
func (m *Machine) load(register int, address, size uint64) {
	// load and store use the low 32 bits of the address.
	from, ok := m.Read(uint64(uint32(address)), size)
	if !ok {
		m.status = Panicked
		return
	}
	var raw [8]byte
	copy(raw[:], from)
	m.Registers[register] = binary.LittleEndian.Uint64(raw[:])
}

func (m *Machine) store(register int, address, size uint64) {
	raw := binary.LittleEndian.AppendUint64(nil, m.Registers[register])
	if !m.Write(uint64(uint32(address)), raw[:size]) {
		m.status = Panicked
	}
}
