package service

import (
	_ "embed"
	"fmt"

	"github.com/jamq/jamq/service/internal/asm"
	"github.com/jamq/jamq/submit/codec"
)

var (
	//go:embed program/service.asm
	serviceSource string
	//go:embed program/library.asm
	librarySource string
)

// metadata names the program to a reader of the preimage. The chain does not
// read it.
const metadata = "jamq service 1"

// hostCalls has the numbers of the host's calls that the program uses, by
// version of the Gray Paper (appendix B). 0.8.0 inserted grow_heap as number 1.
var hostCalls = map[codec.Version]map[string]uint64{
	codec.V072: {"fetch": 1, "read": 3, "write": 4},
	codec.V080: {"fetch": 2, "read": 4, "write": 5},
}

// Blob returns the service's code for a version of the Gray Paper: the preimage
// of the code hash that an account has. It holds nothing of a particular rollup,
// so all rollups have the same code hash. The error wraps codec.ErrUnknownVersion.
func Blob(version codec.Version) ([]byte, error) {
	calls, known := hostCalls[version]
	if !known {
		return nil, fmt.Errorf("service: %w: %s", codec.ErrUnknownVersion, version)
	}
	program, err := asm.Assemble(calls,
		asm.Source{Name: "service.asm", Text: serviceSource}, asm.Source{Name: "library.asm", Text: librarySource})
	if err != nil {
		return nil, err // a test assembles every version
	}
	blob := codec.AppendNatural(nil, uint64(len(metadata)))
	return append(append(blob, metadata...), program...), nil
}
