package service

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/service/internal/pvm"
	"github.com/jamq/jamq/submit/codec"
)

// TestGas compares the gas in docs/service.md with that of the shared cases, and of the calls that
// end the wait of others.
func TestGas(t *testing.T) {
	rows := 0
	for _, c := range append(readCases(t, serviceCases), readCases(t, authorizerCases)...) {
		if gasOf(t, c.Name) != nil {
			requireGas(t, c.Name, c.invocation, c.Want)
			rows++
		}
	}
	require.Greater(t, rows, 6)
	for _, s := range releases() {
		i := s.invocation()
		got := i.run(program(t, codec.V072), codec.V072)
		requireSame(t, s.outcome(), got)
		requireGas(t, "accumulate: "+s.name, i, got)
	}
}

// A work item with AccumulateGas has enough for everything that may wait, in both versions. The
// model of a processor that 0.8.0 has for instructions is not in this repository, so each counts as
// 40.
func TestAccumulateGas(t *testing.T) {
	const instruction = 40
	for _, s := range releases() {
		i := s.invocation()
		i.Gas = AccumulateGas
		got := i.run(program(t, codec.V072), codec.V072)
		requireSame(t, s.outcome(), got)
		require.Less(t, laterGas(t, i)+instruction*(i.Gas-got.Left), int64(AccumulateGas), s.name)
	}
}

// A call whose gas does not suffice has no effect, because the chain undoes it.
func TestTooLittleGas(t *testing.T) {
	s := releasing("", false, false)
	i := s.invocation()
	need := i.Gas - i.run(program(t, codec.V072), codec.V072).Left
	i.Gas = need - 1
	require.Equal(t, outcome{Status: "out of gas"}, i.run(program(t, codec.V072), codec.V072))
	i.Gas = need
	requireSame(t, s.outcome(), i.run(program(t, codec.V072), codec.V072))
}

// releases returns calls with a block that ends the wait of all others that may wait: with and
// without rivals of each, and with and without old blocks that are removed.
func releases() (out []accumulateScenario) {
	const name = "64 blocks, of which 63 waited"
	for rivals, among := range map[bool]string{false: "", true: ", among rivals"} {
		for old, removed := range map[bool]string{false: "", true: ", and old ones go"} {
			out = append(out, releasing(name+among+removed, rivals, old))
		}
	}
	return out
}

// releasing returns one of these calls.
func releasing(name string, rivals, old bool) accumulateScenario {
	last := uint64(9)
	if old {
		last += History
	}
	s := Genesis{Authorizer: owner, Block: block(last)}.Storage()
	for n := last + 1 - History; old && n < last+1-History+Ahead; n++ {
		s[commitmentKey(n)] = block(n).Encode()
		s[string(MarkKey(block(n).Package))] = []byte{1, 2, 3, 4}
		s[string(EntryKey(n-1))] = make([]byte, 168)
	}
	for n := last + 2; n <= last+Ahead; n++ {
		var list []byte
		for i := uint64(0); rivals && i < Rivals-1; i++ {
			wrong := block(n)
			wrong.PreRoot = label("wrong", i)
			list = append(list, updateOf(wrong)...)
		}
		s[string(waitingKey(n))] = append(list, updateOf(block(n))...)
	}
	return call(name, s, next(last+1-9))
}

// laterHost adds up what the calls of accumulate cost in 0.8.0.
type laterHost struct {
	*host
	gas int64
}

// Call implements pvm.Host. Each call has a price, and two more per KiB of its key and of its
// value.
func (h *laterHost) Call(number uint64, m *pvm.Machine) pvm.Status {
	r := m.Registers // before the call
	status := h.host.Call(number, m)
	found := m.Registers[7]
	if found == none {
		found = 0
	}
	price := func(base, key, keyLength, value, valueLength uint64) {
		h.gas += int64(base + (key*keyLength+value*valueLength)/1024)
	}
	switch number {
	case h.calls["fetch"]:
		price(355, 0, 0, 344, found)
	case h.calls["read"]:
		price(2407, 1736, r[9], 248, found)
	case h.calls["write"]:
		price(2442, 3358, r[8], 216, r[10])
	}
	return status
}

// laterGas returns the gas in 0.8.0 of the calls that the host answers in an accumulation.
func laterGas(t *testing.T, i invocation) int64 {
	h := &laterHost{host: newHost(i, codec.V080)}
	require.Equal(t, pvm.Halted, program(t, codec.V080).Run(i.Entry, i.Gas, i.Arguments, h).Status)
	return h.gas
}

// requireGas compares the gas of an invocation with that in docs/service.md: in 0.7.2 and, of an
// accumulation, that of the host's calls in 0.8.0.
func requireGas(t *testing.T, name string, i invocation, got outcome) {
	t.Helper()
	want := []string{strconv.FormatInt(i.Gas-got.Left, 10), "–"}
	if i.Entry == 5 {
		want[1] = strconv.FormatInt(laterGas(t, i), 10)
	}
	require.Equal(t, want, gasOf(t, name), name)
}

// gasOf returns the two cells of docs/service.md with the gas of a call, nil if there is no row.
func gasOf(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/service.md")
	require.NoError(t, err)
	_, after, there := strings.Cut(string(text), "| "+name+" | ")
	if !there {
		return nil
	}
	row, _, _ := strings.Cut(after, " |\n")
	return strings.Split(row, " | ")
}
