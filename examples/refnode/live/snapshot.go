package live

import (
	"bytes"
	"encoding/json"
)

// Snapshot is the state at one moment. It is immutable.
type Snapshot struct {
	// State is the state to show. It is shared between readers, which must not
	// modify anything that it refers to.
	State State
	parts [numParts]part
}

// numParts is the number of parts of a state: the fields of State.
const numParts = 9

// part is one field of the state in JSON, with a revision that grows with each
// change.
type part struct {
	name     string
	raw      []byte
	revision uint64
}

// Seen records the revisions of the parts that a reader has. The zero value
// means that it has none.
type Seen [numParts]uint64

// newSnapshot encodes a state. If nothing differs from before, it returns
// before.
func newSnapshot(before *Snapshot, state State) *Snapshot {
	s := &Snapshot{State: state}
	same := before != nil
	for i, field := range []struct {
		name  string
		value any
	}{
		{"node", state.Node}, {"flow", state.Flow}, {"heads", state.Heads}, {"bundles", state.Bundles},
		{"chain", state.Chain}, {"fees", state.Fees}, {"events", state.Events}, {"lab", state.Lab}, {"cluster", state.Cluster},
	} {
		raw, err := json.Marshal(field.value)
		if err != nil {
			panic(err) // impossible: finite numbers and text
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

// Changes returns a JSON object with the parts of the state that the reader
// does not have yet, and records them in seen.
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
