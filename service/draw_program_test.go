package service

import (
	"encoding/binary"

	"pgregory.net/rapid"

	"github.com/jamq/jamq/service/internal/pvm"
)

// randomProgram is a program as bytes: code that the assembler would not write.
type randomProgram struct {
	code   []byte
	begins []int
}

func (p *randomProgram) add(code ...byte) {
	p.begins = append(p.begins, len(p.code))
	p.code = append(p.code, code...)
}

// drawProgram returns a program of random instructions, with metadata. If it reaches its end, it
// outputs all registers. It has one page of data, at 0x30000.
func drawProgram(t *rapid.T) []byte {
	p := new(randomProgram)
	for range rapid.IntRange(1, 20).Draw(t, "instructions") {
		p.drawInstruction(t)
	}
	if rapid.IntRange(0, 3).Draw(t, "block") > 0 {
		p.add(opcode("fallthrough"))
	}
	const data = 0x30000
	for r := range 13 {
		p.add(binary.LittleEndian.AppendUint32([]byte{opcode("store_u64"), byte(r)}, uint32(data+8*r))...)
	}
	p.add(opcode("load_imm"), 7, 0, 0, 3)
	p.add(opcode("load_imm"), 8, 13*8)
	p.add(opcode("load_imm"), 0, 0, 0, 0xff) // the address to halt at
	p.add(opcode("jump_ind"), 0)

	readOnly := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "read-only")
	out := []byte{0, byte(len(readOnly)), 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}
	out = append(out, readOnly...)
	code := append(encodeNaturals(2), 1) // a jump table of two entries of one byte
	code = append(code, encodeNaturals(uint64(len(p.code)))...)
	for range 2 {
		code = append(code, byte(rapid.SampledFrom(p.begins).Draw(t, "entry")))
	}
	code = append(code, p.code...)
	mask := make([]byte, (len(p.code)+7)/8)
	for _, at := range p.begins {
		mask[at/8] |= 1 << (at % 8)
	}
	code = append(code, mask...)
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(code))), code...)
}

func opcode(name string) byte {
	for _, i := range pvm.Instructions {
		if i.Name == name {
			return i.Opcode
		}
	}
	panic(name)
}

// drawInstruction adds an instruction with operands of any length that are often of use. It leaves
// out two encodings that the Gray Paper defines and the PVMs of others read in another way: a third
// register above 15, and a first length above 7.
func (p *randomProgram) drawInstruction(t *rapid.T) {
	i := rapid.SampledFrom(pvm.Instructions[:]).Draw(t, "instruction")
	if i.Shape == pvm.Immediate || i.Name == "trap" && rapid.IntRange(0, 3).Draw(t, "trap") > 0 {
		return // the cases of the service call the host
	}
	code, least := []byte{i.Opcode}, 1
	registers := rapid.Byte().Draw(t, "registers")
	switch i.Shape {
	case pvm.None:
	case pvm.Offset:
		code = append(code, drawNumber(t, offsets)...)
	case pvm.RegisterImmediateOffset:
		code, least = append(append(code, registers&0x7f), drawNumber(t, numbers)...), 2
		code = append(code, drawNumber(t, offsets)...)
	case pvm.TwoRegistersOffset:
		code = append(append(code, registers), drawNumber(t, offsets)...)
	case pvm.ThreeRegisters:
		code, least = append(code, registers, rapid.ByteMax(15).Draw(t, "result")), 3
	default:
		code = append(append(code, registers), drawNumber(t, numbers)...)
	}
	code = code[:rapid.OneOf(rapid.Just(len(code)), rapid.IntRange(least, len(code))).Draw(t, "length")]
	p.add(append(code, make([]byte, rapid.SampledFrom([]int{0, 0, 0, 0, 1, 3}).Draw(t, "more"))...)...)
}

var (
	offsets = rapid.OneOf(rapid.Int32Range(-40, 60), rapid.Int32())
	numbers = rapid.OneOf(rapid.Int32Range(-3, 20), rapid.Int32(), rapid.Int32Range(0xfff0, 0x10010), rapid.Int32Range(0x30000, 0x30080),
		rapid.Int32Range(0x30ff0, 0x31000), rapid.Just[int32](-0x1010000), rapid.Just[int32](-0x10000))
)

// drawNumber returns a number in enough bytes, or in a random number of them.
func drawNumber(t *rapid.T, of *rapid.Generator[int32]) []byte {
	n := of.Draw(t, "number")
	raw := binary.LittleEndian.AppendUint32(nil, uint32(n))
	size := 4
	for size > 0 && n<<(40-8*size)>>(40-8*size) == n {
		size--
	}
	return raw[:rapid.SampledFrom([]int{size, size, size, 4, 0, 1, 2, 3}).Draw(t, "size")]
}

// randomRun is a run of a random program.
type randomRun struct {
	program []byte
	invocation
}

func drawRandom(t *rapid.T) randomRun {
	return randomRun{drawProgram(t), invocation{Gas: rapid.Int64Range(0, 200).Draw(t, "gas"),
		Arguments: rapid.SliceOfN(rapid.Byte(), 0, 24).Draw(t, "arguments"), Writes: -1}}
}
