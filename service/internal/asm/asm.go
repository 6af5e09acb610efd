package asm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/jamq/jamq/service/internal/pvm"
	"github.com/jamq/jamq/submit/codec"
)

// ErrSource is returned for a source that cannot be assembled.
var ErrSource = errors.New("asm")

// Source is a part of a program: Text, and the Name that errors give it.
type Source struct{ Name, Text string }

// Assemble returns the program of all sources, in their order, with standard
// initialisation (GP A.7). Calls has the numbers of the host's calls by their
// names. Errors wrap ErrSource and have the place of the statement.
func Assemble(calls map[string]uint64, sources ...Source) ([]byte, error) {
	a := &assembler{calls: calls, symbols: map[string]int64{}, labels: map[string]int{}}
	var statements []statement
	for _, s := range sources {
		more, err := parse(s)
		if err != nil {
			return nil, err
		}
		statements = append(statements, more...)
	}
	for _, pass := range []func(statement) error{a.layData, a.layCode} {
		a.section = ""
		for _, s := range statements {
			if err := pass(s); err != nil {
				return nil, fmt.Errorf("%w: %s: %q: %w", ErrSource, s.place, s.text, err)
			}
		}
		a.placeData()
	}
	if err := a.setTargets(); err != nil {
		return nil, err
	}
	blob := a.blob()
	if _, err := pvm.Load(blob); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSource, err) // too much data
	}
	return blob, nil
}

// assembler is the program that grows. The first pass lays out the data, so that
// the second one knows the addresses, and with them the lengths of all
// instructions.
type assembler struct {
	calls   map[string]uint64
	section string // of the present statement
	symbols map[string]int64
	ro, rw  []byte
	movable []string // symbols in rw, which are offsets during the first pass

	code    []byte
	begins  []int          // offsets of the instructions
	ended   bool           // the last instruction ends a basic block
	labels  map[string]int // offsets in the code
	targets []target
	table   []int
}

// target is a place in the code that waits for the offset of a label.
type target struct {
	statement
	label       string
	instruction int // offset
	at          int // offset of its 4 bytes
}

// layData executes a statement of the first pass: constants and data.
func (a *assembler) layData(s statement) error {
	if a.enter(s) || a.section == codeSection && s.operator != "=" {
		return nil
	}
	if s.operator == "=" {
		value, err := a.value(s.operands[0])
		if err != nil {
			return err
		}
		return a.define(s.label, value)
	}
	data, base := &a.ro, int64(pvm.ReadOnlyStart)
	if a.section == ".rw" {
		data, base = &a.rw, 0
	}
	if s.label != "" {
		if a.section == ".rw" {
			a.movable = append(a.movable, s.label)
		}
		if err := a.define(s.label, base+int64(len(*data))); err != nil {
			return err
		}
	}
	more, err := a.datum(s)
	*data = append(*data, more...)
	return err
}

const codeSection = ".code"

// enter reports whether the statement begins a section.
func (a *assembler) enter(s statement) bool {
	switch s.operator {
	case ".ro", ".rw", codeSection:
		a.section = s.operator
		return true
	}
	return false
}

func (a *assembler) define(name string, value int64) error {
	if _, taken := a.symbols[name]; taken {
		return fmt.Errorf("%s is defined twice", name)
	}
	a.symbols[name] = value
	return nil
}

// datum returns the bytes of a directive.
func (a *assembler) datum(s statement) (data []byte, err error) {
	if a.section == "" {
		return nil, errors.New("no section has begun")
	}
	switch s.operator {
	case "":
		return nil, nil
	case ".text":
		return []byte(strings.Trim(s.operands[0], `"`)), nil
	case ".space":
		n, err := a.value(s.operands[0])
		if err != nil || n < 0 || n > pvm.MaxMemory {
			return nil, fmt.Errorf("%d bytes of space: %w", n, errors.Join(err, errRange))
		}
		return make([]byte, n), nil
	case ".u8", ".u64":
		for _, text := range s.operands {
			v, err := a.value(text)
			if err != nil {
				return nil, err
			}
			if s.operator == ".u64" {
				data = binary.LittleEndian.AppendUint64(data, uint64(v))
			} else if data = append(data, byte(v)); v < 0 || v > 255 {
				return nil, fmt.Errorf("%d: %w", v, errRange)
			}
		}
		return data, nil
	}
	return nil, errors.New("not a directive")
}

// placeData turns the offsets in rw into addresses, which begin after those of the
// read-only data.
func (a *assembler) placeData() {
	for _, name := range a.movable {
		a.symbols[name] += int64(pvm.DataStart(len(a.ro)))
	}
	a.movable = nil
}

// layCode executes a statement of the second pass: labels and instructions.
func (a *assembler) layCode(s statement) error {
	if a.enter(s) || a.section != codeSection || s.operator == "=" {
		return nil
	}
	if s.label != "" {
		if _, taken := a.labels[s.label]; taken {
			return fmt.Errorf("%s is defined twice", s.label)
		}
		if len(a.code) > 0 && !a.ended {
			a.begin(instructions["fallthrough"])
		}
		a.labels[s.label] = len(a.code)
	}
	if s.operator == "" {
		return nil
	}
	return a.instruct(s)
}

// setTargets writes the offsets of labels into the jumps to them.
func (a *assembler) setTargets() error {
	if have, most := len(a.code), 1<<(8*tableEntry); have > most {
		return fmt.Errorf("%w: %d bytes of code, want at most %d", ErrSource, have, most)
	}
	for _, t := range a.targets {
		at, known := a.labels[t.label]
		if !known {
			return fmt.Errorf("%w: %s: no label %s", ErrSource, t.place, t.label)
		}
		binary.LittleEndian.PutUint32(a.code[t.at:], uint32(at-t.instruction))
	}
	return nil
}

// tableEntry is the size of an entry of the jump table, in bytes.
const tableEntry = 2

// blob encodes the program. Zeros at the end of rw become zero pages.
func (a *assembler) blob() []byte {
	const page = 1 << 12
	rw := []byte(strings.TrimRight(string(a.rw), "\x00"))
	pages := (len(a.rw)+page-1)/page - (len(rw)+page-1)/page
	out := appendLittle(nil, len(a.ro), 3)
	out = appendLittle(out, len(rw), 3)
	out = appendLittle(out, pages, 2)
	out = appendLittle(out, 0, 3) // no stack
	out = append(append(out, a.ro...), rw...)

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

// instructions are those of package pvm by name.
var instructions = func() map[string]*pvm.Instruction {
	named := map[string]*pvm.Instruction{}
	for i := range pvm.Instructions {
		named[pvm.Instructions[i].Name] = &pvm.Instructions[i]
	}
	return named
}()
