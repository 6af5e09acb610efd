package jip2server

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/jamtest"
)

// A genesis record contains the start slot (4 bytes) and the chain's configuration as
// JSON. A restart compares the configurations, because replaying the journal with
// another one would give a chain that the node's clients have not seen.

// startLen is the length of the start slot in a genesis record, in bytes.
const startLen = 4

// genesisRecord returns the first record of a new chain's journal.
func genesisRecord(cfg *jamtest.Config) []byte {
	record := binary.LittleEndian.AppendUint32([]byte{recordGenesis}, uint32(cfg.StartSlot))
	return append(record, describe(cfg)...)
}

// describe encodes those settings that determine how a chain continues. It leaves out
// the start slot and the retention, and replaces the genesis state by its root.
func describe(cfg *jamtest.Config) []byte {
	plain := *cfg
	plain.StartSlot, plain.Retention, plain.Script = 0, 0, nil
	script := ""
	if cfg.Script != nil {
		script = cfg.Script.String()
	}
	var genesis *statetrie.Trie
	for key, value := range cfg.Genesis { // any order makes the same trie
		genesis = genesis.Set(key, value)
	}
	raw, err := json.Marshal(struct {
		jamtest.Config
		Genesis common.Hash
		Script  string
	}{plain, genesis.Root(), script})
	if err != nil {
		panic(err) // numbers and texts can be encoded
	}
	return raw
}

// replayGenesis creates the chain from a genesis record. It fails if the server's
// configuration differs from the recorded one.
func (s *Server) replayGenesis(data []byte) error {
	if len(data) < startLen {
		return fmt.Errorf("%w: a genesis of %d bytes, want at least %d", ErrJournal, len(data), startLen)
	}
	if differs := differences(describe(&s.cfg.Chain), data[startLen:]); differs != "" {
		return fmt.Errorf("%w: the chain was made with another configuration: %s", ErrJournal, differs)
	}
	return s.begin(jamq.Slot(binary.LittleEndian.Uint32(data)))
}

// differences describes the fields that differ between two configurations, or returns
// "".
func differences(have, want []byte) string {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(have, &a) != nil || json.Unmarshal(want, &b) != nil {
		return "the journal's cannot be read"
	}
	names := slices.Collect(maps.Keys(a))
	for name := range b {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []string
	for _, name := range names {
		if string(a[name]) != string(b[name]) {
			out = append(out, fmt.Sprintf("%s is %s, want %s", name, a[name], b[name]))
		}
	}
	return strings.Join(out, "; ")
}
