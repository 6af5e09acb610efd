package asm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jamq/jamq/service/internal/pvm"
)

var (
	errOperands = errors.New("wrong operands")
	errRange    = errors.New("out of range")
)

// begin appends an opcode.
func (a *assembler) begin(i *pvm.Instruction) {
	a.begins = append(a.begins, len(a.code))
	a.code = append(a.code, i.Opcode)
	a.ended = i.Ends()
}

// firstArgument is the number of the register with a call's first argument.
const firstArgument = 7

// instruct appends the instruction of a statement.
func (a *assembler) instruct(s statement) error {
	name, operands := s.operator, s.operands
	switch {
	case name == "call" && len(operands) >= 2:
		for i, argument := range operands[2:] {
			argument := statement{operator: "load_imm", operands: []string{fmt.Sprintf("r%d", firstArgument+i), argument}}
			if err := a.instruct(argument); err != nil {
				return err
			}
		}
		name, operands = "load_imm_jump", []string{operands[0], strconv.Itoa(2 * (len(a.table) + 1)), operands[1]}
		defer func() { a.table = append(a.table, len(a.code)) }()
	case name == "return" && len(operands) == 1:
		name, operands = "jump_ind", []string{operands[0], "0"}
	}
	instruction := instructions[name]
	if instruction == nil {
		return errors.New("no such instruction")
	}
	at := len(a.code)
	a.begin(instruction)
	form := forms[instruction.Shape]
	if len(operands) != len(form) {
		return fmt.Errorf("%w: %d, want %d", errOperands, len(operands), len(form))
	}
	return a.encode(s, form, operands, at)
}

// forms has the kinds of a shape's operands in the order of the source: a and b
// are the registers of the first byte, d is one in the second byte, n is a
// number, c the name of a call, and t a target.
var forms = map[pvm.Shape]string{
	pvm.None:                    "",
	pvm.Immediate:               "c",
	pvm.Offset:                  "t",
	pvm.RegisterImmediate:       "an",
	pvm.RegisterImmediateOffset: "ant",
	pvm.TwoRegisters:            "ab",
	pvm.TwoRegistersImmediate:   "abn",
	pvm.TwoRegistersOffset:      "abt",
	pvm.ThreeRegisters:          "dab",
}

// encode appends the operands of the instruction at an offset of the code.
func (a *assembler) encode(s statement, form string, operands []string, at int) error {
	var registers, last, number []byte
	for i, kind := range form {
		var r byte
		var err error
		switch kind {
		case 'a':
			r, err = register(operands[i])
			registers = []byte{r}
		case 'b':
			r, err = register(operands[i])
			registers[0] |= r << 4
		case 'd':
			r, err = register(operands[i])
			last = []byte{r}
		case 'n':
			number, err = a.number(operands[i])
		case 'c':
			number, err = a.call(operands[i])
		}
		if err != nil {
			return err
		}
	}
	if form == "ant" {
		registers[0] |= byte(len(number)) << 4
	}
	a.code = append(append(append(a.code, registers...), last...), number...)
	if strings.HasSuffix(form, "t") {
		return a.aim(s, operands[len(operands)-1], at)
	}
	return nil
}

// register reads the name of a register, r0 to r12.
func register(text string) (byte, error) {
	number, named := strings.CutPrefix(text, "r")
	r, err := strconv.ParseUint(number, 10, 8)
	if !named || err != nil || r > 12 {
		return 0, fmt.Errorf("%w: %q, want a register", errOperands, text)
	}
	return byte(r), nil
}

// call encodes the number of a call of the host.
func (a *assembler) call(name string) ([]byte, error) {
	number, known := a.calls[name]
	if !known {
		return nil, fmt.Errorf("%w: no call %q", errOperands, name)
	}
	return a.number(strconv.FormatUint(number, 10))
}

// number encodes a number in the fewest bytes whose sign can be extended.
func (a *assembler) number(text string) ([]byte, error) {
	v, err := a.value(text)
	if err != nil {
		return nil, err
	}
	if v != int64(int32(v)) {
		return nil, fmt.Errorf("%d: %w", v, errRange)
	}
	size := 0
	for unused := 64; v<<unused>>unused != v; unused -= 8 {
		size++
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(v))[:size], nil
}

// aim appends the 4 bytes of an offset. If the target is a label, setTargets
// writes them.
func (a *assembler) aim(s statement, label string, at int) error {
	offset := uint32(0)
	if n, err := strconv.ParseInt(label, 0, 32); err == nil {
		offset = uint32(n)
	} else {
		a.targets = append(a.targets, target{statement: s, label: label, instruction: at, at: len(a.code)})
	}
	a.code = binary.LittleEndian.AppendUint32(a.code, offset)
	return nil
}
