package statedb

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/statedb/ubt"
)

var update = flag.Bool("update", false, "write the vectors of the witness format in testdata again")

const vectorsFile = "testdata/witness/vectors.json"

// statement is the input of a verifier.
type statement struct {
	Witness hexutil.Bytes `json:"witness"`
	// PreRoot is the trusted root. In mutated witnesses it may be nil: then the
	// verifier takes the root that the proof leads to.
	PreRoot *common.Hash `json:"preRoot"`
	// Values are the new values of the keys that are set.
	Values []common.Hash `json:"values"`
}

// verdict is the answer of a verifier.
type verdict struct {
	Refused  string         `json:"refused,omitempty"` // the rule
	PostRoot *common.Hash   `json:"postRoot,omitempty"`
	State    []*common.Hash `json:"state,omitempty"` // of each entry, before
}

// vector is a case of the witness format, for verifiers in other languages.
type vector struct {
	Name string `json:"name"`
	statement
	verdict
}

// rules are the names of docs/witness.md, each with parts of the errors that
// come from the rule.
var rules = map[string][]string{
	"checksum":  {"wrong checksum"},
	"version":   {"version"},
	"length":    {"bytes left, want", "items of at least"},
	"entry":     {"entry begins with", "both set and deleted"},
	"order":     {"want ascending keys"},
	"size":      {"bytes after the header", "bytes, want at least 16"},
	"padding":   {"unused bits are set"},
	"streams":   {"too few", "more than the tree needs"},
	"depth":     {"below the last bit of a stem"},
	"lone":      {"over at most one stem"},
	"unopened":  {"empty node, want an opened leaf", "stem without a key"},
	"kind":      {"stem without values at its keys", "has values at its keys"},
	"opened":    {"does not belong at depth", "is one of the keys", "is not the first of its stem"},
	"embedding": {"like the data of a stem"},
	"root":      {"root is"},
	"code":      {"belongs to no account", "want ascending order"},
	"writes":    {"write of", "writes, want"},
	"hidden":    {"not in the proof"},
}

// ruleOf returns the rule that an error comes from.
func ruleOf(t require.TestingT, err error) string {
	require.ErrorIs(t, err, ErrWitness)
	for name, texts := range rules {
		for _, text := range texts {
			if strings.Contains(err.Error(), text) {
				return name
			}
		}
	}
	require.NoError(t, err, "no rule of docs/witness.md")
	return ""
}

// verify is the Go verifier.
func (s *statement) verify(t require.TestingT) verdict {
	v, err := s.tryVerify(t)
	if err != nil {
		return verdict{Refused: ruleOf(t, err)}
	}
	return v
}

func (s *statement) tryVerify(t require.TestingT) (v verdict, err error) {
	w, err := ParseWitness(s.Witness)
	if err != nil {
		return v, err
	}
	preRoot := s.PreRoot
	if preRoot == nil {
		tree, err := ubt.Open(&hasher, w.Proof, w.uses())
		if err != nil {
			return v, errors.Join(ErrWitness, err)
		}
		root := tree.Root()
		preRoot = &root
	}
	var writes []Write
	values := s.Values
	for _, e := range w.Entries {
		switch {
		case e.Deleted:
			writes = append(writes, Write{Access: e.Access, Deleted: true})
		case e.Set && len(values) > 0:
			writes = append(writes, Write{Access: e.Access, Value: values[0]})
			values = values[1:]
		}
	}
	for range values { // too many
		writes = append(writes, Write{Access: Access{Key: Key(slices.Repeat([]byte{0xff}, 32))}})
	}
	post, err := Verify(w, *preRoot, writes)
	if err != nil {
		return v, err
	}
	v.PostRoot = &post
	stateless, err := NewStateless(w, *preRoot)
	require.NoError(t, err)
	for _, e := range w.Entries {
		value, ok, err := stateless.tree.Get(e.Key)
		require.NoError(t, err)
		if ok {
			v.State = append(v.State, (*common.Hash)(&value))
		} else {
			v.State = append(v.State, nil)
		}
	}
	return v, nil
}

// The vectors are those that this test creates, and each refusal comes from the
// rule that its vector names.
func TestWitnessVectors(t *testing.T) {
	var vectors []vector
	seen := map[string]bool{}
	for _, v := range append(acceptedVectors(t), refusedVectors(t)...) {
		want := v.Refused
		v.verdict = v.verify(t)
		require.Equal(t, want, v.Refused, v.Name)
		seen[want] = true
		vectors = append(vectors, v)
	}
	for rule := range rules {
		require.True(t, seen[rule] || rule == "hidden", "no vector breaks the rule %s", rule)
	}
	lines := make([]string, len(vectors))
	for i, v := range vectors {
		line, err := json.Marshal(v)
		require.NoError(t, err)
		lines[i] = string(line)
	}
	want := "[\n" + strings.Join(lines, ",\n") + "\n]\n"
	if *update {
		require.NoError(t, os.WriteFile(vectorsFile, []byte(want), 0o644))
	}
	got, err := os.ReadFile(vectorsFile)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "the vectors have changed: run go test ./statedb -run TestWitnessVectors -update")
}

func readVectors(t require.TestingT) (vectors []vector) {
	raw, err := os.ReadFile(vectorsFile)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &vectors))
	return vectors
}

// The example of the document is the vector that it names.
func TestExampleOfTheDocument(t *testing.T) {
	page, err := os.ReadFile("../docs/witness.md")
	require.NoError(t, err)
	_, example, found := strings.Cut(string(page), "## Example")
	require.True(t, found)
	var digits strings.Builder // the first words of each indented line, if they are hexadecimal
	for line := range strings.Lines(example) {
		if strings.HasPrefix(line, "    r = ") {
			break
		}
		for _, word := range strings.Fields(line) {
			if _, err := hex.DecodeString(word); err != nil || !strings.HasPrefix(line, "    ") {
				break
			}
			digits.WriteString(word)
		}
	}
	vectors := readVectors(t)
	i := slices.IndexFunc(vectors, func(v vector) bool { return v.Name == "an absent key where another stem is" })
	require.Equal(t, hex.EncodeToString(vectors[i].Witness), digits.String())
}

// statementOf returns the honest statement of a view's reads and writes.
func statementOf(t require.TestingT, v *View) statement {
	w, err := v.Witness()
	require.NoError(t, err)
	root := v.ActiveRoot()
	s := statement{Witness: w.Encode(), PreRoot: &root, Values: []common.Hash{}}
	for _, write := range v.Writes() {
		if !write.Deleted {
			s.Values = append(s.Values, write.Value)
		}
	}
	return s
}

// acceptedVectors are executions, each on another state.
func acceptedVectors(t *testing.T) (vectors []vector) {
	for _, e := range executions(t) {
		v := open(t, NewStore())
		if e.before != nil {
			e.before(v)
			commit(t, v)
		}
		e.run(v)
		require.NoError(t, v.Err())
		vectors = append(vectors, vector{Name: e.name, statement: statementOf(t, v)})
	}
	v, _ := sample(t)
	return append(vectors, vector{Name: "a block of accounts, slots and code", statement: statementOf(t, v)})
}

type execution struct {
	name   string
	before func(*View)
	run    func(*View)
}

// near returns raw keys whose stems differ late.
func near(i byte) Key { return Key{0x33, StemSize - 1: i} }

func executions(t *testing.T) []execution {
	a, b := common.Address{1}, common.Address{2}
	two := func(v *View) {
		v.Set(Key{0x10}, [32]byte{1})
		v.Set(Key{0x90}, [32]byte{2})
	}
	nearTwo := func(v *View) {
		v.Set(near(1), [32]byte{1})
		v.Set(near(2), [32]byte{2})
	}
	wide := func(v *View) {
		for i := range 256 {
			if i != 7 && i != 100 {
				v.Set(Key{0x10, StemSize: byte(i)}, [32]byte{byte(i)})
			}
		}
	}
	setCode := func(v *View) { setTwoCodes(t, v) }
	nearAndFar := func(v *View) {
		nearTwo(v)
		v.Set(Key{0x90}, [32]byte{3})
	}
	return []execution{
		{"nothing, of the empty state", nil, func(*View) {}},
		{"nothing, of a state", two, func(*View) {}},
		{"an absent key of the empty state", nil, func(v *View) { v.Get(Key{0x10}) }},
		{"the first value of a state", nil, func(v *View) { v.Set(Key{0x10}, [32]byte{1}) }},
		{"a value of zero, which is not an absent one", two, func(v *View) { v.Set(Key{0x10}, [32]byte{}) }},
		{"keys that are read", two, func(v *View) { v.Get(Key{0x10}); v.Get(Key{0x90}) }},
		{"an absent key where another stem is", two, func(v *View) { v.Get(Key{0x20}) }},
		{"absent keys of three stems where one is", two, func(v *View) { v.Get(Key{0x08}); v.Get(Key{0x10}); v.Get(Key{0x20}); v.Get(Key{0x40}) }},
		{"an absent key in a stem with values", wide, func(v *View) { v.Get(Key{0x10, StemSize: 7}) }},
		{"an absent key in a stem that is opened", two, func(v *View) { v.Get(Key{0x10, StemSize: 9}) }},
		{"values of a full stem", wide, func(v *View) {
			v.Get(Key{0x10, StemSize: 8})
			v.Set(Key{0x10, StemSize: 100}, [32]byte{1})
			v.Delete(Key{0x10, StemSize: 255})
		}},
		{"a deletion that leaves a stem alone", two, func(v *View) { v.Delete(Key{0x10}) }},
		{"a deletion of all", two, func(v *View) { v.Delete(Key{0x10}); v.Delete(Key{0x90}) }},
		{"a deletion of an absent key", two, func(v *View) { v.Delete(Key{0x20}) }},
		{"a deletion beside a key that is set", two, func(v *View) { v.Delete(Key{0x10}); v.Set(Key{0x11}, [32]byte{3}) }},
		{"stems that differ late", nearTwo, func(v *View) { v.Get(near(1)); v.Set(near(4), [32]byte{3}) }},
		{"a key beside a chain", nearTwo, func(v *View) { v.Set(Key{0x33, 9}, [32]byte{3}) }},
		{"an absent key beside a chain, which is opened", nearTwo, func(v *View) { v.Get(Key{0x33, 9}) }},
		{"a deletion at the end of a chain", nearTwo, func(v *View) { v.Delete(near(2)) }},
		{"deletions on both sides that leave a stem alone", func(v *View) { two(v); v.Set(Key{0x50}, [32]byte{3}) }, func(v *View) { v.Delete(Key{0x10}); v.Delete(Key{0x50}) }},
		{"a chain that is deleted, and a stem is alone", nearAndFar, func(v *View) { v.Delete(near(1)); v.Delete(near(2)) }},
		{"a chain that is deleted beside a key that is set", nearAndFar, func(v *View) { v.Delete(near(1)); v.Delete(near(2)); v.Set(Key{0x50}, [32]byte{4}) }},
		{"a deletion in a stem that keeps a value", func(v *View) { two(v); v.Set(Key{0x10, StemSize: 200}, [32]byte{3}) }, func(v *View) { v.Delete(Key{0x10}) }},
		{"slots in and beside the header of an account", func(v *View) {
			for _, slot := range []common.Hash{{}, {31: 63}, {31: 64}, {0xff}} {
				v.SetStorage(a, slot, common.Hash{1})
			}
		}, func(v *View) {
			v.Account(a)
			v.Storage(a, common.Hash{31: 63})
			v.SetStorage(a, common.Hash{31: 64}, common.Hash{2})
			v.SetStorage(a, common.Hash{0xff}, common.Hash{})
			v.Storage(a, common.Hash(slices.Repeat([]byte{0xff}, 32)))
			v.Storage(a, common.Hash{30: 1})
		}},
		{"code of two accounts", setCode, func(v *View) { v.Code(v.Account(a).CodeHash); v.Code(v.Account(b).CodeHash) }},
		{"new code, in chunks", setCode, func(v *View) {
			h, err := v.SetCode(a, slices.Repeat([]byte{1}, 31*130))
			require.NoError(t, err)
			require.NoError(t, v.SetAccount(a, Account{CodeHash: h, CodeSize: 31 * 130}))
		}},
		{"an account that is deleted", setCode, func(v *View) { v.DeleteAccount(a) }},
	}
}

// setTwoCodes gives code to the accounts at 1 and 2.
func setTwoCodes(t *testing.T, v *View) {
	for i := range byte(2) {
		a := common.Address{1 + i}
		code := slices.Repeat([]byte{0x60, i}, 80)
		h, err := v.SetCode(a, code)
		require.NoError(t, err)
		require.NoError(t, v.SetAccount(a, Account{CodeHash: h, CodeSize: len(code)}))
	}
}
