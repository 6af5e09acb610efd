package asm

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func assemble(t *testing.T, text string) []byte {
	t.Helper()
	blob, err := Assemble(map[string]uint64{"log": 100}, Source{"test", text})
	require.NoError(t, err)
	return blob
}

// codeOf returns jump table, instructions and mask of a program without data, as text.
func codeOf(t *testing.T, text string) string {
	t.Helper()
	return hex.EncodeToString(assemble(t, ".code\n"+text)[15:])
}

func TestEncodings(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"trap", "00 02 01 00 01"},
		{"ecalli log", "00 02 02 0a64 01"},
		{"load_imm r9, 0", "00 02 02 3309 01"},
		{"load_imm r9, 127", "00 02 03 33097f 01"},
		{"load_imm r9, 128", "00 02 04 33098000 01"},
		{"load_imm r9, -128", "00 02 03 330980 01"},
		{"load_imm r9, -129", "00 02 04 33097fff 01"},
		{"load_imm r9, 0x7fffffff", "00 02 06 3309ffffff7f 01"},
		{"move_reg r1, r2", "00 02 02 6421 01"},
		{"add_64 r1, r2, r3", "00 02 03 c83201 01"},
		{"add_imm_64 r1, r2, 3", "00 02 03 952103 01"},
		{"branch_eq_imm r1, 300, 7", "00 02 08 51212c0107000000 01"},
		{"x: jump x", "00 02 05 2800000000 01"},
		{"return r5\njump 0", "00 02 07 3205 2800000000 05"},
		// A label that a fall reaches begins a block, and one behind a jump needs nothing.
		{"load_imm r1, 1\nx: jump x\ny: jump x", "00 02 0e 330101 01 2800000000 28fbffffff 1902"},
		// A call has an entry in the jump table: the offset to return to.
		{"call r5, x\ntrap\nx: return r5", "01 02 0a 0700 50150208000000 00 3205 8101"},
	} {
		require.Equal(t, strings.ReplaceAll(c.want, " ", ""), codeOf(t, c.text), c.text)
	}
}

// Data that the program may change begins in the zone behind the read-only data. Zeros at
// its end are no part of the blob.
func TestData(t *testing.T) {
	blob := assemble(t, `
half = 2                    ; constants need no section
.rw
first:  .u8 1, half+1
second: .space 4096
.ro
text:   .text "two words"
word:   .u64 0xffffffffffffffff, first-first-1
.code
    load_imm r1, text+4
    load_imm r1, word
    load_imm r1, first
    load_imm r1, second
.rw
third:  .space 1
`)
	require.Equal(t, "190000 020000 0100 000000", hex.EncodeToString(blob[:3])+" "+hex.EncodeToString(blob[3:6])+" "+
		hex.EncodeToString(blob[6:8])+" "+hex.EncodeToString(blob[8:11]))
	require.Equal(t, "two words"+strings.Repeat("\xff", 16)+"\x01\x03", string(blob[11:38]))
	require.Contains(t, hex.EncodeToString(blob), "3301040001"+"3301090001"+"3301000003"+"3301020003")
}

func TestWrongSources(t *testing.T) {
	for text, want := range map[string]string{
		".code\nfly r1":                         `test:2: "fly r1": no such instruction`,
		".code\nmove_reg r1":                    "wrong operands: 1, want 2",
		".code\nmove_reg r1, r13":               `"r13", want a register`,
		".code\nmove_reg r1, 2":                 `"2", want a register`,
		".code\nload_imm r1, 0x80000000":        "2147483648: out of range",
		".code\nload_imm r1, x":                 `no symbol "x"`,
		".code\nload_imm r1, 1+":                `no symbol ""`,
		".code\necalli gas":                     `no call "gas"`,
		".code\njump x":                         `test:2: "jump x": no label x`,
		".code\nx:\nx:":                         "x is defined twice",
		"x = 1\nx = 2":                          "x is defined twice",
		"x = y":                                 `no symbol "y"`,
		"x =":                                   "a value is missing",
		"= 1":                                   `"" is not a name`,
		".code\ntwo words: trap":                `"two words" is not a name`,
		".u8 1":                                 "no section has begun",
		".ro\n.u8 256":                          "256: out of range",
		".ro\n.u8":                              ".u8 without a value",
		".ro\n.u16 1":                           "not a directive",
		".ro\n.space -1":                        "-1: out of range",
		".ro\n.space 0x7fffffffffffffff":        ": out of range",
		".rw\n.space 0x900000\n.space 0x900000": "not a program: memory of",
		".code" + strings.Repeat("\ntrap", 1<<16+1): "65537 bytes of code, want at most 65536",
		".code\nbranch_eq_imm r1, x, 2":             `no symbol "x"`,
		".code\nbranch_eq_imm r1, 1":                "wrong operands: 2, want 3",
		".code\nbranch_eq_imm r1, 1, 2,3":           "wrong operands: 4, want 3",
	} {
		_, err := Assemble(nil, Source{"test", text})
		require.ErrorIs(t, err, ErrSource, text)
		require.ErrorContains(t, err, want, text)
	}
}

// No source panics the process, and a source that is assembled is the same program each time.
func FuzzAssemble(f *testing.F) {
	f.Add(".ro\na: .u8 1, 2\n.rw\nb: .space 3\n.code\nx: call r1, x\nbranch_eq r1, r2, x\necalli log\nload_imm r3, a+b-1")
	f.Add("x = 1 ; y\n.code\n\"")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "space") {
			return // much memory, in many lines
		}
		blob, err := Assemble(map[string]uint64{"log": 100}, Source{"fuzz", text})
		if err != nil {
			require.ErrorIs(t, err, ErrSource)
			return
		}
		again, err := Assemble(map[string]uint64{"log": 100}, Source{"fuzz", text})
		require.NoError(t, err)
		require.Equal(t, blob, again)
	})
}
