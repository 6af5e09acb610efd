package service

import (
	_ "embed"
	"fmt"
	"slices"
	"sync"

	"github.com/jamq/jamq/service/internal/asm"
	"github.com/jamq/jamq/submit/codec"
)

var (
	//go:embed program/service.asm
	serviceSource string
	//go:embed program/authorizer.asm
	authorizerSource string
	//go:embed program/ed25519.asm
	ed25519Source string
	//go:embed program/field.asm
	fieldSource string
	//go:embed program/sha512.asm
	sha512Source string
	//go:embed program/library.asm
	librarySource string
)

// source is a program in assembly, in parts that are assembled in order. metadata
// tells people which program a preimage contains; the chain does not read it.
type source struct {
	metadata string
	parts    []asm.Source
	made     sync.Map // blobs by version
}

var (
	serviceProgram = source{metadata: "jamq service 1", parts: []asm.Source{
		{Name: "service.asm", Text: serviceSource},
		{Name: "library.asm", Text: librarySource},
	}}
	authorizerProgram = source{metadata: "jamq authorizer 1", parts: []asm.Source{
		{Name: "authorizer.asm", Text: authorizerSource},
		{Name: "ed25519.asm", Text: ed25519Source},
		{Name: "field.asm", Text: fieldSource},
		{Name: "sha512.asm", Text: sha512Source},
		{Name: "library.asm", Text: librarySource},
	}}
)

// hostCalls has the numbers of the host calls that the programs use, for each
// version of the Gray Paper (appendix B). The versions differ because 0.8.0
// inserted grow_heap as number 1.
var hostCalls = map[codec.Version]map[string]uint64{
	codec.V072: {"fetch": 1, "read": 3, "write": 4},
	codec.V080: {"fetch": 2, "read": 4, "write": 5},
}

// Blob returns the code of the service for a version of the Gray Paper. The
// service's account on JAM names this code by its hash. The code contains nothing
// that is specific to one rollup, so all rollups have the same code hash. The error
// wraps codec.ErrUnknownVersion.
func Blob(version codec.Version) ([]byte, error) { return serviceProgram.blob(version) }

// AuthorizerBlob returns the code of the authorizer for a version of the Gray
// Paper. A signed package names this code by its hash. The code contains nothing
// that is specific to one builder, because the builder's key is the configuration
// of the authorizer. The error wraps codec.ErrUnknownVersion.
func AuthorizerBlob(version codec.Version) ([]byte, error) { return authorizerProgram.blob(version) }

func (s *source) blob(version codec.Version) ([]byte, error) {
	if blob, made := s.made.Load(version); made {
		return slices.Clone(blob.([]byte)), nil
	}
	calls, known := hostCalls[version]
	if !known {
		return nil, fmt.Errorf("service: %w: %s", codec.ErrUnknownVersion, version)
	}
	program, err := asm.Assemble(calls, s.parts...)
	if err != nil {
		return nil, err // a test assembles every version
	}
	blob := codec.AppendNatural(nil, uint64(len(s.metadata)))
	blob = append(append(blob, s.metadata...), program...)
	s.made.Store(version, slices.Clone(blob))
	return blob, nil
}
