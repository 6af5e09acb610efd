package service

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/service/internal/pvm"
	"github.com/jamq/jamq/submit/codec"
)

// invocation is one call of the program by a chain. The shared test cases and the processes with
// other PVMs have it as JSON.
type invocation struct {
	Entry     int             `json:"entry"` // 0: refine or is-authorized; 5: accumulate
	Gas       int64           `json:"gas"`
	Arguments hexutil.Bytes   `json:"arguments"`
	Payload   hexutil.Bytes   `json:"payload,omitempty"` // of refine
	Item      uint64          `json:"item,omitempty"`    // index in the package, of refine
	Inputs    []hexutil.Bytes `json:"inputs,omitempty"`  // of accumulate
	Storage   entries         `json:"storage,omitempty"` // before accumulate
	// Package has what is-authorized can fetch, by the kind of fetch.
	Package packageParts `json:"package,omitempty"`
	// Writes is how many writes the balance suffices for, less than 0 for any number.
	Writes int `json:"writes"`
}

// packageParts are the parts of a package that is-authorized can fetch, by the kind of fetch.
type packageParts map[uint64]hexutil.Bytes

// authorizerGas is what JAM grants is-authorized (G_I).
const authorizerGas = 50_000_000

// outcome is the result of an invocation. After a panic, gas and storage have no meaning.
type outcome struct {
	Status  string  `json:"status"`
	Left    int64   `json:"left"`
	Output  string  `json:"output,omitempty"` // hexadecimal
	Storage entries `json:"storage,omitempty"`
}

// entries are a storage as JSON.
type entries map[string][]byte

func (e entries) MarshalJSON() ([]byte, error) {
	out := map[string]hexutil.Bytes{}
	for k, v := range e {
		out[hexutil.Encode([]byte(k))] = v
	}
	return json.Marshal(out)
}

func (e *entries) UnmarshalJSON(raw []byte) error {
	var in map[string]hexutil.Bytes
	if err := json.Unmarshal(raw, &in); err != nil {
		return err
	}
	*e = entries{}
	for k, v := range in {
		key, err := hexutil.Decode(k)
		if err != nil {
			return err
		}
		(*e)[string(key)] = v
	}
	return nil
}

// The results of the host's calls.
const (
	none     = 1<<64 - 1
	what     = 1<<64 - 2
	fullHost = 1<<64 - 5
	callGas  = 10
)

// host answers the program as a chain does.
type host struct {
	*invocation
	storage entries
	calls   map[string]uint64
}

func newHost(i invocation, version codec.Version) *host {
	h := &host{invocation: &i, storage: entries{}, calls: hostCalls[version]}
	maps.Copy(h.storage, i.Storage)
	return h
}

func (h *host) Call(number uint64, m *pvm.Machine) pvm.Status {
	if status := m.Charge(callGas); status != pvm.Running {
		return status
	}
	switch r := &m.Registers; number {
	case h.calls["fetch"]:
		value, found := h.fetched(r[10], r[11])
		return h.answer(m, value, found, r[7], r[8], r[9])
	case h.calls["read"]:
		key, ok := m.Read(r[8], r[9])
		if !ok {
			return pvm.Panicked
		}
		if r[7] != none { // other services have nothing
			return h.answer(m, nil, false, r[10], r[11], r[12])
		}
		value, found := h.storage[string(key)]
		return h.answer(m, value, found, r[10], r[11], r[12])
	case h.calls["write"]:
		return h.write(m)
	}
	m.Registers[7] = what
	return pvm.Running
}

func (h *host) fetched(kind, index uint64) ([]byte, bool) {
	if value, found := h.Package[kind]; found {
		return value, true
	}
	switch {
	case kind == 13 && h.Entry == 0 && index == h.Item:
		return h.Payload, true
	case kind == 15 && h.Entry != 0 && index < uint64(len(h.Inputs)):
		return h.Inputs[index], true
	}
	return nil, false
}

// answer copies a part of a value to the program's memory and returns the full length.
func (h *host) answer(m *pvm.Machine, value []byte, found bool, to, offset, length uint64) pvm.Status {
	size := uint64(len(value))
	offset = min(offset, size)
	part := value[offset:][:min(length, size-offset)]
	if !m.Write(to, part) {
		return pvm.Panicked
	}
	m.Registers[7] = size
	if !found {
		m.Registers[7] = none
	}
	return pvm.Running
}

func (h *host) write(m *pvm.Machine) pvm.Status {
	r := &m.Registers
	raw, readable := m.Read(r[7], r[8])
	value, ok := m.Read(r[9], r[10])
	if !ok || !readable {
		return pvm.Panicked
	}
	key := string(raw)
	old, found := h.storage[key]
	switch {
	case len(value) == 0:
		delete(h.storage, key)
	case h.Writes == 0:
		r[7] = fullHost
		return pvm.Running
	default:
		h.Writes--
		h.storage[key] = append([]byte{}, value...)
	}
	r[7] = uint64(len(old))
	if !found {
		r[7] = none
	}
	return pvm.Running
}

// program returns the assembled service of a version.
func program(t testing.TB, version codec.Version) *pvm.Program {
	t.Helper()
	return load(t, &serviceProgram, version)
}

func load(t require.TestingT, s *source, version codec.Version) *pvm.Program {
	blob, err := s.blob(version)
	require.NoError(t, err)
	length, rest, err := codec.DecodeNatural(blob)
	require.NoError(t, err)
	p, err := pvm.Load(rest[length:])
	require.NoError(t, err)
	return p
}

// run executes an invocation on the interpreter.
func (i invocation) run(p *pvm.Program, version codec.Version) outcome {
	h := newHost(i, version)
	r := p.Run(i.Entry, i.Gas, i.Arguments, h)
	out := outcome{Status: r.Status.String()}
	if r.Status == pvm.Halted {
		if len(h.storage) == 0 {
			h.storage = nil
		}
		out.Left, out.Output, out.Storage = r.Gas, hexutil.Encode(r.Output), h.storage
	}
	return out
}

// encodeNaturals returns the arguments of an entry point, which begin with naturals.
func encodeNaturals(numbers ...uint64) (out []byte) {
	for _, n := range numbers {
		out = codec.AppendNatural(out, n)
	}
	return out
}

// encodeOperand returns an input of accumulate with a result of refine (GP C). An output of nil is
// the error with this number.
func encodeOperand(o Operand, gas uint64, failure byte, trace []byte) []byte {
	out := append([]byte{0}, o.Package[:]...)
	out = append(out, make([]byte, 32)...) // segment root
	out = append(out, o.Authorizer[:]...)
	out = append(out, make([]byte, 32)...) // payload hash
	out = codec.AppendNatural(out, gas)
	if o.Output == nil {
		out = append(out, failure)
	} else {
		out = append(codec.AppendNatural(append(out, 0), uint64(len(o.Output))), o.Output...)
	}
	return append(codec.AppendNatural(out, uint64(len(trace))), trace...)
}

// encodeTransfer returns an input of accumulate with a transfer: sender, receiver, amount, memo and
// gas.
func encodeTransfer(amount uint64) []byte {
	out := append([]byte{1}, make([]byte, 8)...)
	out = binary.LittleEndian.AppendUint64(out, amount)
	return append(out, make([]byte, 128+8)...)
}
