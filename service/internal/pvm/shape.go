package pvm

// Shape is the format of an instruction's operands in the code (GP A.5).
type Shape uint8

// The shapes are named after their operands, in the order in which the assembler
// writes them. An Offset is counted from the first byte of the instruction.
const (
	None Shape = iota
	Immediate
	Offset
	RegisterImmediate
	RegisterImmediateOffset
	TwoRegisters
	TwoRegistersImmediate
	TwoRegistersOffset
	ThreeRegisters
)

// operands are the decoded operands of an instruction. a, b and d are registers; in an
// instruction with three registers, d receives the result. x and y are numbers, extended
// to 64 bits with their sign.
type operands struct {
	a, b, d int
	x, y    uint64
}

// decode decodes the operands of an instruction with skip bytes after its opcode.
func (s Shape) decode(raw [12]byte, skip int) (o operands) {
	low, high := min(12, int(raw[0]%16)), min(12, int(raw[0]/16))
	switch s {
	case Immediate, Offset:
		o.x = signed(raw[:], skip)
	case RegisterImmediate:
		o.a, o.x = low, signed(raw[1:], skip-1)
	case RegisterImmediateOffset:
		length := min(4, int(raw[0]/16%8))
		o.a, o.x, o.y = low, signed(raw[1:], length), signed(raw[1+length:], skip-length-1)
	case TwoRegisters:
		o.a, o.b = low, high
	case TwoRegistersImmediate, TwoRegistersOffset:
		o.a, o.b, o.x = low, high, signed(raw[1:], skip-1)
	case ThreeRegisters:
		o.a, o.b, o.d = low, high, min(12, int(raw[1]))
	}
	return o
}

// signed decodes a little-endian number and extends its sign.
func signed(raw []byte, length int) uint64 {
	length = max(0, min(4, length))
	shift := 64 - 8*length
	return uint64(int64(uint64(little(raw[:length]))<<shift) >> shift)
}
