// This program runs test cases on the PVM of strawberry
// (https://github.com/eigerco/strawberry), as pvms.js in service/testdata/node does
// on other PVMs. It uses an internal package of that repository and is therefore
// built inside it: docs/service.md has the commands.
//
// Each line of the input is an invocation as JSON, with a program including its
// metadata, and with the chain's answers to host calls. Each line of the output is
// the outcome of one invocation.
package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/eigerco/strawberry/internal/pvm"
)

// These are results of host calls, and the gas that a host call costs.
const (
	none    = math.MaxUint64
	what    = math.MaxUint64 - 1
	full    = math.MaxUint64 - 4
	callGas = 10
)

// octets are bytes that JSON shows in hexadecimal with 0x.
type octets string

func (o octets) String() string { return "0x" + hex.EncodeToString([]byte(o)) }

func (o octets) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

func (o *octets) UnmarshalText(text []byte) error {
	raw, err := hex.DecodeString(strings.TrimPrefix(string(text), "0x"))
	*o = octets(raw)
	return err
}

// invocation and outcome have the same fields as the types of these names in
// service/host_test.go.
type invocation struct {
	Program   octets            `json:"program"`
	Calls     map[string]uint64 `json:"calls"`
	Entry     uint64            `json:"entry"`
	Gas       uint64            `json:"gas"`
	Arguments octets            `json:"arguments"`
	Payload   octets            `json:"payload"`
	Item      uint64            `json:"item"`
	Inputs    []octets          `json:"inputs"`
	Storage   map[string]octets `json:"storage"` // by the keys in hexadecimal
	Package   map[string]octets `json:"package"`
	Writes    int               `json:"writes"`
}

type outcome struct {
	Status  string            `json:"status"`
	Left    int64             `json:"left"`
	Output  *octets           `json:"output,omitempty"`
	Storage map[string]octets `json:"storage,omitempty"`
}

// host answers the host calls of one invocation.
type host struct {
	*invocation
	storage map[string]octets
	memory  *pvm.Memory
	r       *pvm.Registers
}

var errAddress = pvm.ErrPanicf("a range that the program cannot access")

// read returns bytes of the program's memory.
func (h *host) read(at, length uint64) (octets, error) {
	if length == 0 {
		return "", nil
	}
	if at > math.MaxUint32 || length > 1<<28 {
		return "", errAddress
	}
	data := make([]byte, length)
	if h.memory.Read(uint32(at), data) != nil {
		return "", errAddress
	}
	return octets(data), nil
}

// answer writes a part of a value to the program's memory, as the host calls fetch
// and read do.
func (h *host) answer(value octets, found bool, to, offset, length uint64) error {
	if !found {
		h.r[7] = none
		return nil
	}
	size := uint64(len(value))
	offset = min(offset, size)
	part := value[offset:][:min(length, size-offset)]
	if len(part) > 0 && (to > math.MaxUint32 || h.memory.Write(uint32(to), []byte(part)) != nil) {
		return errAddress
	}
	h.r[7] = size
	return nil
}

func (h *host) fetched(kind, index uint64) (octets, bool) {
	if part, found := h.Package[strconv.FormatUint(kind, 10)]; found {
		return part, true
	}
	switch {
	case kind == 13 && h.Entry == 0 && index == h.Item:
		return h.Payload, true
	case kind == 15 && h.Entry != 0 && index < uint64(len(h.Inputs)):
		return h.Inputs[index], true
	}
	return "", false
}

func (h *host) write(key string, value octets) {
	old, found := h.storage[key]
	switch {
	case value == "":
		delete(h.storage, key)
	case h.Writes == 0:
		h.r[7] = full
		return
	default:
		h.Writes--
		h.storage[key] = value
	}
	h.r[7] = none
	if found {
		h.r[7] = uint64(len(old))
	}
}

func (h *host) call(number uint64) error {
	r := h.r
	switch number {
	case h.Calls["fetch"]:
		value, found := h.fetched(r[10], r[11])
		return h.answer(value, found, r[7], r[8], r[9])
	case h.Calls["read"]:
		key, err := h.read(r[8], r[9])
		if err != nil {
			return err
		}
		value, found := h.storage[key.String()]
		return h.answer(value, found && r[7] == none, r[10], r[11], r[12]) // others have nothing
	case h.Calls["write"]:
		key, err := h.read(r[7], r[8])
		if err != nil {
			return err
		}
		value, err := h.read(r[9], r[10])
		if err == nil {
			h.write(key.String(), value)
		}
		return err
	}
	r[7] = what
	return nil
}

// withoutMetadata returns the program in a blob without its metadata. The blob
// begins with the length of the metadata, which is below 2^14.
func withoutMetadata(blob octets) []byte {
	length, rest := int(blob[0]), blob[1:]
	if length >= 0x80 {
		length, rest = length&0x3f<<8|int(rest[0]), rest[1:]
	}
	return []byte(rest[length:])
}

func run(i *invocation) outcome {
	h := &host{invocation: i, storage: maps.Clone(i.Storage)}
	if h.storage == nil {
		h.storage = map[string]octets{}
	}
	call := func(number uint64, gas pvm.Gas, r pvm.Registers, m pvm.Memory, x struct{}) (pvm.Gas, pvm.Registers, pvm.Memory, struct{}, error) {
		if gas < callGas {
			return gas, r, m, x, pvm.ErrOutOfGas
		}
		h.r, h.memory = &r, &m
		err := h.call(number)
		return gas - callGas, r, m, x, err
	}
	used, out, _, err := pvm.InvokeWholeProgram(withoutMetadata(i.Program), i.Entry, pvm.UGas(i.Gas), []byte(i.Arguments), call, struct{}{})
	var panicked *pvm.ErrPanic
	switch {
	case err == nil:
		output := octets(out)
		return outcome{Status: "halt", Left: int64(i.Gas) - int64(used), Output: &output, Storage: h.storage}
	case errors.Is(err, pvm.ErrOutOfGas):
		return outcome{Status: "out of gas"}
	case errors.As(err, &panicked):
		return outcome{Status: "panic"}
	}
	return outcome{Status: err.Error()}
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var i invocation
		err := in.Decode(&i)
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = out.Encode(run(&i))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
