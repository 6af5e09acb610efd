package buildertest

import (
	"slices"

	"github.com/jamq/jamq"
)

// MissingFields returns the names of the fields of jamq.Block that are empty in all
// of the blocks. It is for the tests of a host that converts the blocks of its
// node: a field that the host forgets to fill in makes packages seem dead.
//
// The blocks must come from a chain on which a package was accumulated. Accumulated
// counts as missing only if a block has AccumulatedKnown. Condemned never counts as
// missing, because verdicts are rare.
func MissingFields(blocks ...jamq.Block) (missing []string) {
	known := func(b jamq.Block) bool { return b.AccumulatedKnown }
	for _, field := range []struct {
		name   string
		filled func(jamq.Block) bool
	}{
		{"ParentStateRoot", func(b jamq.Block) bool { return b.ParentStateRoot != [32]byte{} }},
		{"Reported", func(b jamq.Block) bool { return len(b.Reported) > 0 }},
		{"Available", func(b jamq.Block) bool { return len(b.Available) > 0 }},
		{"Accumulated", func(b jamq.Block) bool { return len(b.Accumulated) > 0 }},
	} {
		if field.name == "Accumulated" && !slices.ContainsFunc(blocks, known) {
			continue // it is derived
		}
		if !slices.ContainsFunc(blocks, field.filled) {
			missing = append(missing, field.name)
		}
	}
	return missing
}
