package live

import (
	"bytes"
	"encoding/json"
)

// Snapshot is the state at one moment. It never changes.
type Snapshot struct {
	// State is what there is to show. It is shared: nobody may change what it refers to.
	State State
	parts [numParts]part
}

// numParts is how many parts a state has: the fields of State.
const numParts = 8

// part is a field of the state in JSON, and the number of the snapshot in which it became so.
type part struct {
	name     string
	raw      []byte
	revision uint64
}

// Seen remembers which parts a reader has. The zero value has none.
type Seen [numParts]uint64

// newSnapshot encodes a state. It returns the snapshot before it if nothing is different.
func newSnapshot(before *Snapshot, state State) *Snapshot {
	s := &Snapshot{State: state}
	same := before != nil
	for i, field := range []struct {
		name  string
		value any
	}{
		{"node", state.Node}, {"flow", state.Flow}, {"heads", state.Heads}, {"bundles", state.Bundles},
		{"chain", state.Chain}, {"fees", state.Fees}, {"events", state.Events}, {"lab", state.Lab},
	} {
		raw, err := json.Marshal(field.value)
		if err != nil {
			panic(err) // plain structs of numbers that are finite, and text
		}
		s.parts[i] = part{field.name, raw, 1}
		if before == nil {
			continue
		}
		old := before.parts[i]
		if bytes.Equal(old.raw, raw) {
			s.parts[i] = old
		} else {
			s.parts[i].revision = old.revision + 1
			same = false
		}
	}
	if same {
		return before
	}
	return s
}

// Changes returns a JSON object with those parts of the state that are not in seen, and adds them to it.
func (s *Snapshot) Changes(seen *Seen) []byte {
	out := []byte{'{'}
	for i, p := range s.parts {
		if seen[i] == p.revision {
			continue
		}
		seen[i] = p.revision
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, '"')
		out = append(out, p.name...)
		out = append(out, '"', ':')
		out = append(out, p.raw...)
	}
	return append(out, '}')
}
