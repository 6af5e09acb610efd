package asm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jamq/jamq/service/internal/pvm"
	"github.com/jamq/jamq/submit/codec"
)

// ErrSource is returned if a source cannot be assembled.
var ErrSource = errors.New("asm")

var (
	errOperands = errors.New("wrong operands")
	errRange    = errors.New("out of range")
)

// Source is one part of a program: its Text in assembly, and the Name in errors.
type Source struct{ Name, Text string }

// The assembler passes over all sources four times. Data is laid out twice, because
// the address of the writable data depends on the length of the read-only data.
// Code is laid out twice, because a jump can come before its label. Two passes are
// enough, because the length of an instruction does not depend on labels.
const (
	firstData = iota
	lastData
	firstCode
	lastCode
	passes
)

// assembler is the program as far as one call of Assemble has built it.
type assembler struct {
	calls   map[string]uint64
	pass    int
	section string
	defined map[string]bool  // names in this pass
	symbols map[string]int64 // constants, and addresses of data
	labels  map[string]int   // offsets in the code

	data   map[string][]byte // by section
	start  int64             // address of the data that can change
	code   []byte
	begins []int // offsets of the instructions
	ended  bool  // the last instruction ends a basic block
	table  []int // offsets to return to
}

// Assemble returns the program that consists of all sources, in their order, in the
// format of standard initialisation (GP A.7). calls maps the names of the host
// calls to their numbers. Errors wrap ErrSource and name the source and the line.
func Assemble(calls map[string]uint64, sources ...Source) ([]byte, error) {
	a := &assembler{calls: calls, symbols: map[string]int64{}, labels: map[string]int{}, data: map[string][]byte{}}
	for a.pass = range passes {
		a.section, a.defined, a.code, a.begins, a.table = "", map[string]bool{}, nil, nil, nil
		a.start = int64(pvm.DataStart(len(a.data[".ro"])))
		if a.pass <= lastData {
			a.data = map[string][]byte{}
		}
		for _, s := range sources {
			number := 0
			for line := range strings.Lines(s.Text) {
				number++
				text, _, _ := strings.Cut(line, ";")
				if err := a.statement(strings.TrimSpace(text)); err != nil {
					return nil, fmt.Errorf("%w: %s:%d: %q: %w", ErrSource, s.Name, number, strings.TrimSpace(text), err)
				}
			}
		}
	}
	if have, most := len(a.code), 1<<(8*tableEntry); have > most {
		return nil, fmt.Errorf("%w: %d bytes of code, want at most %d", ErrSource, have, most)
	}
	blob := a.blob()
	if _, err := pvm.Load(blob); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSource, err) // too much data
	}
	return blob, nil
}

// statement processes one line of a source.
func (a *assembler) statement(text string) error {
	// The line is a constant, the beginning of a section, or a label with data or
	// an instruction.
	if name, value, constant := strings.Cut(text, "="); constant {
		if a.pass > lastData {
			return nil
		}
		v, err := a.value(value)
		return errors.Join(define(a, a.symbols, strings.TrimSpace(name), v), err)
	}
	label, rest, labelled := strings.Cut(text, ":")
	if !labelled {
		label, rest = "", text
	}
	operator, list, _ := strings.Cut(strings.TrimSpace(rest), " ")
	operands := strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
	for i := range operands {
		operands[i] = strings.TrimSpace(operands[i])
	}
	switch {
	case operator == ".ro" || operator == ".rw" || operator == ".code":
		a.section = operator
		return nil
	case text == "" || (a.section == ".code") != (a.pass >= firstCode):
		return nil
	case a.section == ".code":
		return a.instruction(label, operator, operands)
	}
	return a.datum(label, operator, operands)
}

// define gives a name its value.
func define[V any](a *assembler, values map[string]V, name string, value V) error {
	switch {
	case name == "" || strings.ContainsAny(name, " \t\""):
		return fmt.Errorf("%q is not a name", name)
	// Each pass defines all names again, so only a name that occurs twice in one
	// pass is an error.
	case a.defined[name]:
		return fmt.Errorf("%s is defined twice", name)
	}
	a.defined[name], values[name] = true, value
	return nil
}

// datum appends the data of one directive to the present section.
func (a *assembler) datum(label, operator string, operands []string) error {
	if a.section == "" {
		return errors.New("no section has begun")
	}
	data := a.data[a.section]
	if label != "" {
		start := int64(pvm.ReadOnlyStart)
		if a.section == ".rw" {
			start = a.start
		}
		if err := define(a, a.symbols, label, start+int64(len(data))); err != nil || operator == "" {
			return err
		}
	}
	if len(operands) == 0 {
		return fmt.Errorf("%s without a value", operator)
	}
	if operator == ".text" {
		a.data[a.section] = append(data, strings.Trim(operands[0], `"`)...)
		return nil
	}
	for _, text := range operands {
		v, err := a.value(text)
		switch {
		case err != nil:
			return err
		case operator == ".u64":
			data = binary.LittleEndian.AppendUint64(data, uint64(v))
		case operator == ".u8" && v == int64(byte(v)):
			data = append(data, byte(v))
		case operator == ".space" && v >= 0 && v <= pvm.MaxMemory:
			data = append(data, make([]byte, v)...)
		case operator == ".u8", operator == ".space":
			return fmt.Errorf("%d: %w", v, errRange)
		default:
			return errors.New("not a directive")
		}
	}
	a.data[a.section] = data
	return nil
}

// firstArgument is the number of the register that holds the first argument of a
// call.
const firstArgument = 7

// instruction appends the machine instructions for a statement of the code section.
func (a *assembler) instruction(label, name string, operands []string) error {
	if label != "" {
		if len(a.code) > 0 && !a.ended {
			a.begin(instructions["fallthrough"])
		}
		if err := define(a, a.labels, label, len(a.code)); err != nil || name == "" {
			return err
		}
	}
	switch {
	case name == "call" && len(operands) >= 2:
		// A call with arguments is several instructions.
		for i, argument := range operands[2:] {
			if err := a.encode("load_imm", fmt.Sprintf("r%d", firstArgument+i), argument); err != nil {
				return err
			}
		}
		err := a.encode("load_imm_jump", operands[0], strconv.Itoa(2*(len(a.table)+1)), operands[1])
		a.table = append(a.table, len(a.code))
		return err
	case name == "return" && len(operands) == 1:
		return a.encode("jump_ind", operands[0], "0")
	}
	return a.encode(name, operands...)
}

// begin appends the opcode that begins an instruction.
func (a *assembler) begin(i *pvm.Instruction) {
	a.begins = append(a.begins, len(a.code))
	a.code = append(a.code, i.Opcode)
	a.ended = i.Ends()
}

// forms describes how each shape of instruction is written in assembly. Each letter is
// one operand, in the order of the source:
//
//   - a and b are the registers in the first byte.
//   - d is the register in the second byte.
//   - n is a number.
//   - c is the name of a host call.
//   - t is the target of a jump.
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

// encode appends one instruction.
func (a *assembler) encode(name string, operands ...string) error {
	instruction := instructions[name]
	if instruction == nil {
		return errors.New("no such instruction")
	}
	at, form := len(a.code), forms[instruction.Shape]
	if len(operands) != len(form) {
		return fmt.Errorf("%w: %d, want %d", errOperands, len(operands), len(form))
	}
	a.begin(instruction)
	registers, rest := []byte{0}[:min(1, strings.Count(form, "a"))], []byte(nil)
	for i, kind := range form {
		value, err := a.operand(kind, operands[i], at)
		if err != nil {
			return err
		}
		switch kind {
		case 'a':
			registers[0] |= value[0]
		case 'b':
			registers[0] |= value[0] << 4
		default:
			rest = append(rest, value...)
		}
		if form == "ant" && kind == 'n' {
			registers[0] |= byte(len(value)) << 4
		}
	}
	a.code = append(append(a.code, registers...), rest...)
	return nil
}

// operand returns the bytes of one operand.
func (a *assembler) operand(kind rune, text string, at int) ([]byte, error) {
	switch kind {
	case 'n':
		v, err := a.value(text)
		if err == nil && v != int64(int32(v)) {
			err = fmt.Errorf("%d: %w", v, errRange)
		}
		return shortest(v), err
	case 'c':
		number, known := a.calls[text]
		if !known {
			return nil, fmt.Errorf("%w: no call %q", errOperands, text)
		}
		return shortest(int64(number)), nil
	case 't':
		offset, err := strconv.ParseInt(text, 0, 32)
		if target, known := a.labels[text]; known {
			// at is the offset of the instruction, from which jumps are counted.
			offset = int64(target - at)
		} else if err != nil && a.pass == lastCode {
			return nil, fmt.Errorf("no label %s", text)
		}
		return binary.LittleEndian.AppendUint32(nil, uint32(offset)), nil
	}
	number, named := strings.CutPrefix(text, "r")
	r, err := strconv.ParseUint(number, 10, 8)
	if !named || err != nil || r > 12 {
		return nil, fmt.Errorf("%w: %q, want a register", errOperands, text)
	}
	return []byte{byte(r)}, nil
}

// shortest encodes a number in as few bytes as possible.
func shortest(v int64) []byte {
	size := 0
	// The machine extends the sign when it decodes the bytes.
	for unused := 64; v<<unused>>unused != v; unused -= 8 {
		size++
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(v))[:size]
}

// spaced prepares the text of a sum: it puts a space before each + and -, so that
// splitting at spaces gives the terms.
var spaced = strings.NewReplacer(" ", "", "+", " +", "-", " -")

// value computes a sum of numbers and symbols.
func (a *assembler) value(text string) (sum int64, err error) {
	terms := strings.Fields(spaced.Replace(text))
	if len(terms) == 0 {
		return 0, fmt.Errorf("%w: a value is missing", errOperands)
	}
	for _, term := range terms {
		name := strings.TrimLeft(term, "+-")
		value, known := a.symbols[name]
		if !known {
			// Numbers up to 2^64-1 are allowed and wrap around.
			n, err := strconv.ParseUint(name, 0, 64)
			if err != nil {
				return 0, fmt.Errorf("%w: no symbol %q", errOperands, name)
			}
			value = int64(n)
		}
		if strings.HasPrefix(term, "-") {
			value = -value
		}
		sum += value
	}
	return sum, nil
}

// tableEntry is the size of an entry in the jump table, in bytes.
const tableEntry = 2

// blob encodes the program.
func (a *assembler) blob() []byte {
	const page = 1 << 12
	ro, all := a.data[".ro"], a.data[".rw"]
	// A program can declare pages of zeros at the end of its data without storing them, which
	// keeps the program small.
	rw := []byte(strings.TrimRight(string(all), "\x00"))
	pages := (len(all)+page-1)/page - (len(rw)+page-1)/page
	out := appendLittle(nil, len(ro), 3)
	out = appendLittle(out, len(rw), 3)
	out = appendLittle(out, pages, 2)
	out = appendLittle(out, 0, 3) // no stack
	out = append(append(out, ro...), rw...)

	code := append(codec.AppendNatural(nil, uint64(len(a.table))), tableEntry)
	code = codec.AppendNatural(code, uint64(len(a.code)))
	for _, at := range a.table {
		code = appendLittle(code, at, tableEntry)
	}
	code = append(code, a.code...)
	mask := make([]byte, (len(a.code)+7)/8)
	for _, at := range a.begins {
		mask[at/8] |= 1 << (at % 8)
	}
	code = append(code, mask...)
	return append(appendLittle(out, len(code), 4), code...)
}

func appendLittle(b []byte, n, size int) []byte {
	return append(b, binary.LittleEndian.AppendUint64(nil, uint64(n))[:size]...)
}

// instructions maps the names of the instructions to those of package pvm.
var instructions = func() map[string]*pvm.Instruction {
	named := map[string]*pvm.Instruction{}
	for i := range pvm.Instructions {
		named[pvm.Instructions[i].Name] = &pvm.Instructions[i]
	}
	return named
}()
