package pvm

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jamq/jamq/submit/codec"
)

// ErrProgram is returned if a blob is not a program.
var ErrProgram = errors.New("pvm: not a program")

// MaxMemory is the maximum amount of memory that the header of a program may
// request, in bytes. Real PVMs allow almost 4 GiB, but this interpreter allocates
// every byte.
const MaxMemory = 1 << 24

// Program is a loaded program. It is safe for concurrent use.
type Program struct {
	code     []byte
	begins   []bool // an instruction begins here
	blocks   []bool // a basic block begins here
	steps    []step // the instruction at each offset
	table    []uint32
	readOnly []byte
	data     []byte
	heap     int // zero pages after the data
	stack    int // bytes
}

// Load decodes a program in the format of standard initialisation (GP A.7). The
// error wraps ErrProgram if blob is not such a program.
func Load(blob []byte) (*Program, error) {
	p := new(Program)
	if len(blob) < 11 {
		return nil, fmt.Errorf("%w: %d bytes, want a header of 11", ErrProgram, len(blob))
	}
	readOnly, data := little(blob[:3]), little(blob[3:6])
	p.heap, p.stack = int(little(blob[6:8])), int(little(blob[8:11]))
	if want := readOnly + data + p.heap*pageSize + p.stack; want > MaxMemory {
		return nil, fmt.Errorf("%w: memory of %d bytes, want at most %d", ErrProgram, want, MaxMemory)
	}
	rest := blob[11:]
	if want := readOnly + data + 4; len(rest) < want {
		return nil, fmt.Errorf("%w: %d bytes after the header, want at least %d", ErrProgram, len(rest), want)
	}
	p.readOnly, p.data, rest = rest[:readOnly], rest[readOnly:readOnly+data], rest[readOnly+data:]
	if have, want := len(rest)-4, little(rest[:4]); have != want {
		return nil, fmt.Errorf("%w: code of %d bytes, want %d", ErrProgram, have, want)
	}
	return p, p.loadCode(rest[4:])
}

// little decodes a little-endian number of at most 4 bytes.
func little(raw []byte) int {
	var padded [8]byte
	copy(padded[:], raw)
	return int(binary.LittleEndian.Uint64(padded[:]))
}

// loadCode decodes the jump table, the instructions, and their mask (GP A.2).
func (p *Program) loadCode(raw []byte) error {
	entries, raw, err := codec.DecodeNatural(raw)
	if err != nil {
		return fmt.Errorf("%w: the number of jumps: %w", ErrProgram, err)
	}
	if len(raw) == 0 {
		return fmt.Errorf("%w: the code ends after the number of jumps", ErrProgram)
	}
	size, raw := uint64(raw[0]), raw[1:]
	length, raw, err := codec.DecodeNatural(raw)
	if err != nil {
		return fmt.Errorf("%w: the length of the instructions: %w", ErrProgram, err)
	}
	if entries > uint64(len(raw)) || size > 4 || length > uint64(len(raw)) {
		return fmt.Errorf("%w: %d jumps of %d bytes and %d bytes of instructions in %d bytes", ErrProgram, entries, size, length, len(raw))
	}
	if have, want := uint64(len(raw)), entries*size+length+(length+7)/8; have != want {
		return fmt.Errorf("%w: %d bytes of jumps, instructions and mask, want %d", ErrProgram, have, want)
	}
	for range entries {
		p.table, raw = append(p.table, uint32(little(raw[:size]))), raw[size:]
	}
	p.code = raw[:length]
	// The mask marks where instructions begin.
	p.begins = make([]bool, length)
	for i := range p.begins {
		p.begins[i] = raw[int(length)+i/8]>>(i%8)&1 == 1
	}
	p.findBlocks()
	p.steps = make([]step, length)
	for at := range p.steps {
		p.steps[at] = p.decode(at)
	}
	return nil
}

// step is a decoded instruction. Load decodes each instruction once instead of at each
// execution, because loops execute the same instructions many times.
type step struct {
	effect   func(*Machine, operands)
	operands operands
	next     int // offset of the following instruction
}

// decode returns the instruction at an offset; an unknown opcode is a trap.
func (p *Program) decode(at int) step {
	instruction := table[p.code[at]]
	if instruction == nil {
		instruction = &Instructions[0]
	}
	skip := p.skip(at)
	return step{instruction.effect, instruction.Shape.decode(p.argument(at), skip), at + 1 + skip}
}

// findBlocks marks the offsets at which basic blocks begin, which jumps may reach.
func (p *Program) findBlocks() {
	// The last block can begin behind the code.
	p.blocks = make([]bool, len(p.code)+maxSkip+1)
	p.blocks[0] = true
	for at, begins := range p.begins {
		if i := table[p.code[at]]; begins && i != nil && i.Ends() {
			p.blocks[at+1+p.skip(at)] = true
		}
	}
}

// maxSkip is the maximum number of bytes that an instruction has after its opcode.
const maxSkip = 24

// skip returns the number of bytes between an opcode and the next instruction.
func (p *Program) skip(at int) int {
	n := 0
	for n < maxSkip && at+1+n < len(p.code) && !p.begins[at+1+n] {
		n++
	}
	return n
}

// argument returns the bytes after an opcode, padded with zeros at the end.
func (p *Program) argument(at int) (raw [12]byte) {
	copy(raw[:], p.code[min(at+1, len(p.code)):])
	return raw
}
