package pvm_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/service/internal/asm"
	"github.com/jamq/jamq/service/internal/pvm"
)

// silent is a host that answers no call.
type silent struct{}

func (silent) Call(_ uint64, m *pvm.Machine) pvm.Status { return m.Charge(10) }

func assemble(t testing.TB, text string) []byte {
	t.Helper()
	blob, err := asm.Assemble(map[string]uint64{"call": 1}, asm.Source{Name: "test", Text: text})
	require.NoError(t, err)
	return blob
}

// Programs are refused, and never executed, if a length in them is wrong.
func TestLoadRefuses(t *testing.T) {
	good := assemble(t, ".ro\na: .u8 1\n.rw\nb: .u8 2\n.space 4096\n.code\ncall r5, x\nx:\ntrap")
	_, err := pvm.Load(good)
	require.NoError(t, err)
	for length := range good {
		_, err := pvm.Load(good[:length])
		require.ErrorIs(t, err, pvm.ErrProgram, "the first %d bytes", length)
	}
	change := func(at int, value ...byte) []byte {
		bad := append([]byte{}, good...)
		copy(bad[at:], value)
		return bad
	}
	for name, bad := range map[string][]byte{
		"one byte more":                   append(append([]byte{}, good...), 0),
		"more memory than the limit":      change(6, 0xff, 0xff),
		"more stack than the limit":       change(8, 0xff, 0xff, 0xff),
		"more read-only data than it has": change(0, 0xff),
		"longer code":                     change(13, 0xff),
		"more jumps than it has":          change(17, 9),
		"entries of 5 bytes":              change(18, 5),
		"more instructions":               change(19, 99),
	} {
		_, err := pvm.Load(bad)
		require.ErrorIs(t, err, pvm.ErrProgram, name)
	}
}

// An entry point or arguments that are out of range end in a panic of the program.
func TestRunOutOfRange(t *testing.T) {
	p, err := pvm.Load(assemble(t, ".code\nreturn r0"))
	require.NoError(t, err)
	for _, entry := range []int{-1, 2, 1 << 30} {
		require.Equal(t, pvm.Panicked, p.Run(entry, 100, nil, silent{}).Status, "entry %d", entry)
	}
	require.Equal(t, pvm.Halted, p.Run(0, 100, make([]byte, pvm.MaxArguments), silent{}).Status)
	require.Equal(t, pvm.Panicked, p.Run(0, 100, make([]byte, pvm.MaxArguments+1), silent{}).Status)
}

// Random programs, and random code in a program that is right, never panic the process, and use no
// more gas than they have.
func FuzzRun(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0}, []byte("arguments"))
	whole := assemble(f, ".code\ncall r5, x\nx:\necalli call\nload_u64 r1, 0x10000\nstore_u64 r1, 0x20000\nreturn r5")
	f.Add(whole, []byte{1})
	f.Add(whole[15:], []byte{1})
	f.Fuzz(func(t *testing.T, blob, arguments []byte) {
		header := []byte{0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0} // one zero page
		around := append(binary.LittleEndian.AppendUint32(header, uint32(len(blob))), blob...)
		for _, blob := range [][]byte{blob, around} {
			p, err := pvm.Load(blob)
			if err != nil {
				require.ErrorIs(t, err, pvm.ErrProgram)
				continue
			}
			r := p.Run(0, 10_000, arguments, silent{})
			require.NotEqual(t, pvm.Running, r.Status)
			require.GreaterOrEqual(t, r.Gas, int64(0))
		}
	})
}
