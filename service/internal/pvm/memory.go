package pvm

import "slices"

// ReadOnlyStart is the address of the read-only data.
const ReadOnlyStart = zoneSize

const (
	pageSize = 1 << 12
	zoneSize = 1 << 16
	// These are the other fixed addresses of standard initialisation (GP A.7).
	stackEnd      = 1<<32 - 2*zoneSize - MaxArguments
	argumentStart = 1<<32 - zoneSize - MaxArguments
	haltAddress   = 1<<32 - zoneSize
)

// MaxArguments is the maximum length of a program's arguments, in bytes.
const MaxArguments = 1 << 24

// DataStart returns the address of the writable data, given the length of the
// read-only data.
func DataStart(readOnly int) uint64 { return 2*zoneSize + roundUp(readOnly, zoneSize) }

func roundUp(n, unit int) uint64 { return uint64((n + unit - 1) / unit * unit) }

// region is a range of the memory that the program can read, and can write if
// writable is set.
type region struct {
	start    uint64
	bytes    []byte
	writable bool
}

// newMemory returns the memory with which a program starts.
func newMemory(p *Program, arguments []byte) []region {
	pages := func(data []byte, more int) []byte {
		size := int(roundUp(len(data), pageSize)) + int(roundUp(more, pageSize))
		return append(slices.Grow(slices.Clone(data), size-len(data)), make([]byte, size-len(data))...)
	}
	return []region{
		{DataStart(len(p.readOnly)), pages(p.data, p.heap*pageSize), true},
		{ReadOnlyStart, pages(p.readOnly, 0), false},
		{argumentStart, pages(arguments, 0), false},
		{stackEnd - roundUp(p.stack, pageSize), pages(nil, p.stack), true},
	}
}

// Read returns the bytes at an address. It returns false if the program may not
// read all of them. The result is valid until the program continues.
func (m *Machine) Read(address, length uint64) ([]byte, bool) {
	return m.find(address, length, false)
}

// Write copies data to an address. It returns false and changes nothing if the
// program may not write all bytes of that range.
func (m *Machine) Write(address uint64, data []byte) bool {
	to, ok := m.find(address, uint64(len(data)), true)
	copy(to, data)
	return ok
}

func (m *Machine) find(address, length uint64, write bool) ([]byte, bool) {
	if length == 0 {
		return nil, true
	}
	for _, r := range m.memory {
		size := uint64(len(r.bytes))
		if address >= r.start && address-r.start < size && length <= size-(address-r.start) {
			return r.bytes[address-r.start:][:length], r.writable || !write
		}
	}
	return nil, false
}
