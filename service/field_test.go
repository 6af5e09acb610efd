package service

import (
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/service/internal/asm"
	"github.com/jamq/jamq/service/internal/pvm"
)

// routine returns a program that calls one routine of the arithmetic with two numbers, x and y,
// which are its arguments, and outputs the number z.
func routine(t *testing.T, call string, field asm.Source) *pvm.Program {
	t.Helper()
	text := fmt.Sprintf(`
.rw
x: .space 32
y: .space 32
z: .space 32
.code
    move_reg r8, r7
    load_imm r7, x
    call r5, copy32
    add_imm_64 r7, r7, 32
    add_imm_64 r8, r8, 32
    call r5, copy32
    %s
    load_imm r7, z
    load_imm r8, 32
    return r0
`, call)
	return assemble(t, asm.Source{Name: "test", Text: text}, field, asm.Source{Name: "library.asm", Text: librarySource})
}

func number(text string) *big.Int {
	n, ok := new(big.Int).SetString(text, 0)
	if !ok {
		panic(text)
	}
	return n
}

var (
	prime   = number("0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffed")
	bits256 = new(big.Int).Lsh(big.NewInt(1), 256)
)

// fieldRoutine is a routine with its rule for numbers of 256 bits. Results are equal modulo the
// prime, or if exact is true, modulo 2^256.
type fieldRoutine struct {
	call  string
	exact bool
	rule  func(x, y *big.Int) *big.Int
}

var fieldRoutines = []fieldRoutine{
	{"call r5, add, z, x, y", true, func(x, y *big.Int) *big.Int { return new(big.Int).Add(x, y) }},
	{"call r5, subtract, z, x, y", true, func(x, y *big.Int) *big.Int { return new(big.Int).Sub(x, y) }},
	{"call r4, field_add, z, x, y", false, func(x, y *big.Int) *big.Int { return new(big.Int).Add(x, y) }},
	{"call r4, field_subtract, z, x, y", false, func(x, y *big.Int) *big.Int { return new(big.Int).Sub(x, y) }},
	{"call r4, multiply, z, x, y", false, func(x, y *big.Int) *big.Int { return new(big.Int).Mul(x, y) }},
	{"call r5, copy32, z, x\ncall r4, canonical, z", true, func(x, y *big.Int) *big.Int { return new(big.Int).Mod(x, prime) }},
	{"call r3, power, z, x, y", false, func(x, y *big.Int) *big.Int {
		return new(big.Int).Exp(x, new(big.Int).SetBit(y, 255, 0), prime)
	}},
}

// edges are numbers at which a carry or a borrow is most likely to be lost.
var edges = []*big.Int{
	big.NewInt(0), big.NewInt(1), big.NewInt(19), big.NewInt(37), big.NewInt(38), number("0xffffffffffffffff"), number("0x10000000000000000"),
	new(big.Int).Sub(prime, big.NewInt(1)), prime, new(big.Int).Add(prime, big.NewInt(1)), new(big.Int).Lsh(prime, 1),
	new(big.Int).Add(new(big.Int).Lsh(prime, 1), big.NewInt(1)), new(big.Int).Sub(bits256, big.NewInt(38)), new(big.Int).Sub(bits256, big.NewInt(1)),
	number("0xffffffffffffffff0000000000000000ffffffffffffffff0000000000000000"),
}

// The arithmetic of the authorizer is that of math/big, at the edges and for random numbers.
func TestField(t *testing.T) {
	for _, r := range fieldRoutines {
		p := routine(t, r.call, asm.Source{Name: "field.asm", Text: fieldSource})
		check := func(t require.TestingT, x, y *big.Int) {
			got, halted := r.run(p, x, y)
			require.True(t, halted)
			require.Equal(t, r.expect(r.rule(x, y)).String(), got.String(), "%s of %x and %x", r.call, x, y)
		}
		for _, x := range edges {
			for _, y := range edges {
				check(t, x, y)
			}
		}
		rapid.Check(t, func(t *rapid.T) { check(t, drawEdge(t), drawEdge(t)) })
	}
}

func drawEdge(t *rapid.T) *big.Int {
	return new(big.Int).SetBytes(rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.Just[byte](255), rapid.Just[byte](0)), 32, 32).Draw(t, "number"))
}

// run runs the routine with two numbers, and returns false if it does not halt.
func (r fieldRoutine) run(p *pvm.Program, x, y *big.Int) (*big.Int, bool) {
	i := invocation{Gas: 1_000_000, Arguments: append(little256(x), little256(y)...)}
	result := p.Run(0, i.Gas, i.Arguments, &host{invocation: &i})
	slices.Reverse(result.Output)
	return r.expect(new(big.Int).SetBytes(result.Output)), result.Status == pvm.Halted
}

// expect returns the number that stands for all that are equal to n.
func (r fieldRoutine) expect(n *big.Int) *big.Int {
	if r.exact {
		return new(big.Int).Mod(n, bits256)
	}
	return new(big.Int).Mod(n, prime)
}

func little256(n *big.Int) []byte {
	raw := n.FillBytes(make([]byte, 32))
	slices.Reverse(raw)
	return raw
}
