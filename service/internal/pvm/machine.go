package pvm

// Status tells whether a program still runs or how it ended. Host.Call also returns a
// Status, which tells the machine whether to continue the program after a host call.
type Status uint8

// A program is Running until it has Halted with an output, has Panicked, or is
// OutOfGas. A page fault counts as a panic.
const (
	Running Status = iota
	Halted
	Panicked
	OutOfGas
)

// String returns the name of the status that the shared test cases use.
func (s Status) String() string {
	return [...]string{"running", "halt", "panic", "out of gas"}[s]
}

// Host answers the host calls of a program. Call finds the arguments in the
// machine's registers, charges the gas with [Machine.Charge], and writes the result
// to register 7. It returns Running if the program may continue.
type Host interface {
	Call(number uint64, m *Machine) Status
}

// Result is the outcome of running a program.
type Result struct {
	// Status is Halted, Panicked or OutOfGas.
	Status Status
	// Gas is the gas that is left. It is meaningless if Status is OutOfGas.
	Gas int64
	// Output is the output of the program. It is empty unless the program halted.
	Output []byte
}

// Machine is the state of a running program. A [Host] gets it to read and change
// the registers and the memory.
type Machine struct {
	// Registers are the registers r0 to r12.
	Registers [13]uint64

	gas     int64
	program *Program
	memory  []region
	host    Host
	at      int // offset of the current instruction
	next    int // offset of the following one
	status  Status
}

// Run executes the program until it ends. entry is the offset of the first
// instruction. If arguments has more than MaxArguments bytes, the program panics.
// The gas limits the time that Run takes.
func (p *Program) Run(entry int, gas int64, arguments []byte, host Host) Result {
	if len(arguments) > MaxArguments {
		return Result{Status: Panicked, Gas: gas}
	}
	m := &Machine{gas: gas, program: p, memory: newMemory(p, arguments), host: host, next: entry}
	m.Registers[0], m.Registers[1] = haltAddress, stackEnd
	m.Registers[7], m.Registers[8] = argumentStart, uint64(len(arguments))
	for m.status == Running {
		m.step()
	}
	result := Result{Status: m.status, Gas: m.gas}
	if m.status == Halted {
		result.Output, _ = m.Read(m.Registers[7], m.Registers[8])
	}
	return result
}

// Charge subtracts the gas for a host call, or returns OutOfGas if not enough gas
// is left.
func (m *Machine) Charge(gas int64) Status {
	if m.gas < gas {
		return OutOfGas
	}
	m.gas -= gas
	return Running
}

// step executes one instruction.
func (m *Machine) step() {
	m.at = m.next
	m.status = m.Charge(1)
	if m.status != Running {
		return
	}
	if m.at < 0 || m.at >= len(m.program.steps) {
		m.status = Panicked
		return
	}
	s := &m.program.steps[m.at]
	m.next = s.next
	s.effect(m, s.operands)
}

// branch jumps by an offset from the current instruction.
func (m *Machine) branch(offset uint64) { m.goTo(uint64(m.at) + offset) }

func (m *Machine) goTo(target uint64) {
	if target >= uint64(len(m.program.blocks)) || !m.program.blocks[target] {
		m.status = Panicked
		return
	}
	m.next = int(target)
}

// jumpIndirect continues at the address in an entry of the jump table.
func (m *Machine) jumpIndirect(address uint32) {
	// The entries have the addresses 2, 4, 6 and so on.
	entry := int(address/2) - 1
	switch {
	case address == haltAddress:
		m.status = Halted
	case address%2 == 1 || entry < 0 || entry >= len(m.program.table):
		m.status = Panicked
	default:
		m.goTo(uint64(m.program.table[entry]))
	}
}
