package service

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/blake2b"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/service/internal/pvm"
	"github.com/jamq/jamq/submit/codec"
)

// requireSame compares the outcome of an invocation with that of the model, except for the gas.
func requireSame(t require.TestingT, want, got outcome) {
	got.Left = 0
	require.Equal(t, want, got)
}

// forEachVersion runs a test with the program of each version of the Gray Paper.
func forEachVersion(t *testing.T, test func(t *testing.T, p *pvm.Program, v codec.Version)) {
	for v := range hostCalls {
		t.Run(v.String(), func(t *testing.T) { test(t, program(t, v), v) })
	}
}

// The program's refine does what the model does.
func TestRefine(t *testing.T) {
	forEachVersion(t, func(t *testing.T, p *pvm.Program, v codec.Version) {
		rapid.Check(t, func(t *rapid.T) {
			r := drawRefining(t)
			requireSame(t, r.outcome(), r.invocation().run(p, v))
		})
	})
}

// The program's accumulate does what the model does, in one call and in those that follow.
func TestAccumulate(t *testing.T) {
	forEachVersion(t, func(t *testing.T, p *pvm.Program, v codec.Version) {
		rapid.Check(t, func(t *rapid.T) {
			a := drawAccumulating(t)
			for range 3 {
				want := a.outcome()
				requireSame(t, want, a.invocation().run(p, v))
				if want.Status == "panic" {
					return
				}
				a = a.following(want, t)
			}
		})
	})
}

// The blobs of two versions differ in nothing except the numbers of the host's calls. Their hashes
// are in docs/service.md, because accounts on chains have them.
func TestBlob(t *testing.T) {
	text, err := os.ReadFile("../docs/service.md")
	require.NoError(t, err)
	for name, s := range map[string]*source{"service": &serviceProgram, "authorizer": &authorizerProgram} {
		blobs := map[codec.Version][]byte{}
		for v := range hostCalls {
			blobs[v], err = s.blob(v)
			require.NoError(t, err)
			require.Contains(t, string(text), fmt.Sprintf("| %s | %s | %x |", name, v, blake2b.Sum256(blobs[v])))
		}
		differ := 0
		for i, octet := range blobs[codec.V072] {
			if octet != blobs[codec.V080][i] {
				differ++
			}
		}
		require.Equal(t, strings.Count(s.parts[0].Text, "ecalli"), differ, name)
		size := len(blobs[codec.V072])
		require.Contains(t, string(text), fmt.Sprintf(" %d,%03d", size/1000, size%1000), "the size of the %s", name)
		_, err = s.blob(codec.V080 + 1)
		require.ErrorIs(t, err, codec.ErrUnknownVersion)
	}
}

// The interpreter has the instructions that the programs use, and no others.
func TestEveryInstructionIsUsed(t *testing.T) {
	var words []string
	for _, part := range slices.Concat(serviceProgram.parts, authorizerProgram.parts) {
		words = append(words, strings.Fields(part.Text)...)
	}
	written := map[string]string{"load_imm_jump": "call", "jump_ind": "return"}
	for _, i := range pvm.Instructions {
		if i.Name == "fallthrough" {
			continue // the assembler inserts it
		}
		name := i.Name
		if alias := written[name]; alias != "" {
			name = alias
		}
		require.True(t, slices.Contains(words, name), name)
	}
}

// If the balance does not suffice for a write, the call panics, whichever write it is. The chain
// undoes the others.
func TestBalanceTooLow(t *testing.T) {
	forEachVersion(t, func(t *testing.T, p *pvm.Program, v codec.Version) {
		a := call("", at9(), nextWith(2, fork), next(2), next(1))
		i := a.invocation()
		for i.Writes = 0; ; i.Writes++ {
			got := i.run(p, v)
			if got.Status == "halt" {
				requireSame(t, a.outcome(), got)
				break
			}
			require.Equal(t, outcome{Status: "panic"}, got)
		}
		require.Equal(t, 9, i.Writes, "two that wait, two blocks with three entries each, and the count")
	})
}

// The account of a genesis has the hash of the code, counts its preimages and its storage, and can
// pay for all blocks that the service keeps and one update that waits for each number.
func TestGenesis(t *testing.T) {
	g := Genesis{Service: 0x01020304, Authorizer: owner, Block: block(0), Preimages: [][]byte{[]byte("authorizer")}}
	entries, err := g.Entries()
	require.NoError(t, err)
	require.Len(t, entries, 1+2*2+2)
	code, err := Blob(codec.V072)
	require.NoError(t, err)
	hash := blake2b.Sum256(code)
	require.Equal(t, code, entries[statetrie.PreimageKey(g.Service, hash)])
	require.Equal(t, []byte{1, 0, 0, 0, 0}, entries[statetrie.RequestKey(g.Service, hash, uint32(len(code)))])
	require.Equal(t, owner[:], entries[statetrie.StorageKey(g.Service, AuthorizerKey())])
	require.Equal(t, block(0).Encode(), entries[statetrie.StorageKey(g.Service, proof.CommitmentKey([]byte(CommitmentPrefix), 0))])

	account := entries[statetrie.ServiceKey(g.Service)]
	require.Len(t, account, 89)
	require.Equal(t, hash[:], account[1:33])
	number := func(at int) uint64 { return binary.LittleEndian.Uint64(account[at:]) }
	require.EqualValues(t, 100_000, number(41))
	octets := 81 + len(code) + 81 + len("authorizer") + 34 + 10 + 32 + 34 + 18 + 168
	require.EqualValues(t, octets, number(57))
	require.EqualValues(t, 6, binary.LittleEndian.Uint32(account[73:]))

	preimages := uint64(2*20 + 81 + len(code) + 81 + len("authorizer"))
	added := depositOf(fullStorage(t)) - depositOf(Storage{string(AuthorizerKey()): owner[:]})
	require.Equal(t, 100+preimages+depositOf(g.Storage())+added, number(33), "the balance")

	g.Version = codec.V080 + 1
	_, err = g.Entries()
	require.ErrorIs(t, err, codec.ErrUnknownVersion)
}

// A state has the JSON of JIP-4, with or without prefixes.
func TestStateJSON(t *testing.T) {
	key := strings.Repeat("0a", 31)
	for _, text := range []string{`{"` + key + `":"01ff"}`, `{"0x` + key + `":"0x01ff"}`} {
		var s State
		require.NoError(t, json.Unmarshal([]byte(text), &s))
		require.Equal(t, State{statetrie.Key(bytes.Repeat([]byte{10}, 31)): {1, 255}}, s)
		raw, err := json.Marshal(s)
		require.NoError(t, err)
		require.Equal(t, `{"`+key+`":"01ff"}`, string(raw))
	}
	for _, text := range []string{`[]`, `{"` + key + `0a":""}`, `{"0a":""}`, `{"x":""}`, `{"` + key + `":"1"}`} {
		require.Error(t, json.Unmarshal([]byte(text), new(State)), text)
	}
}

// depositOf returns the balance that a storage locks (GP 9.8).
func depositOf(s Storage) (deposit uint64) {
	for key, value := range s {
		deposit += uint64(10 + 34 + len(key) + len(value))
	}
	return deposit
}

// fullStorage returns a storage with all blocks that the service keeps, and all updates that may
// wait.
func fullStorage(t *testing.T) Storage {
	const last = History + 3
	var operands []Operand
	for n := uint64(1); n <= last+Ahead; n++ {
		for i := range uint64(Rivals) {
			if n > last+1 { // these wait
				rival := block(n)
				rival.PreRoot = label("wrong", i)
				operands = append(operands, Operand{rival.Package, owner, updateOf(rival)})
			}
		}
		if n <= last {
			operands = append(operands, Operand{block(n).Package, owner, updateOf(block(n))})
		}
	}
	s := Genesis{Authorizer: owner, Block: block(0)}.Storage()
	changes, _, err := Accumulate(s.Get, 1, operands)
	require.NoError(t, err)
	s.Write(changes)
	require.Len(t, s, 3*History+Ahead-1+2)
	return s
}

// The rules take any bytes: as a payload, as outputs, and in the storage.
func FuzzRules(f *testing.F) {
	f.Add(EncodeHeader(block(1)), []byte(nil), block(0).Encode(), updateOf(block(1)))
	f.Add([]byte("short"), []byte{1}, []byte{2}, []byte{3})
	f.Fuzz(func(t *testing.T, payload, count, commitment, output []byte) {
		c, err := DecodeHeader(payload)
		if err == nil {
			require.Equal(t, payload[:HeaderSize], EncodeHeader(c))
		} else {
			require.ErrorIs(t, err, ErrHeader)
		}
		s := Genesis{Authorizer: owner, Block: block(0)}.Storage()
		s[commitmentKey(0)], s[string(waitingKey(2))] = commitment, output
		if len(count) > 0 {
			s[string(CountKey())] = count
		}
		_, _, err = Accumulate(s.Get, 1, []Operand{next(1), {block(1).Package, owner, output}, {block(1).Package, owner, updateOf(block(1))}})
		if err != nil {
			require.ErrorIs(t, err, ErrNotInstalled)
		}
	})
}
