package service

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/service/internal/asm"
	"github.com/jamq/jamq/service/internal/pvm"
	"github.com/jamq/jamq/submit/codec"
)

// TestEveryLineMatters leaves out one line of the service after the other. A case must have another
// outcome then, except for lines that are there for safety only, and are marked so.
func TestEveryLineMatters(t *testing.T) {
	cases := scenarios()
	accumulatings := rapid.Custom(drawAccumulating)
	for seed := range 100 {
		a := accumulatings.Example(seed)
		cases = append(cases, sharedCase{invocation: a.invocation(), Want: a.outcome()})
	}
	forEachLine(t, serviceProgram.parts, 1, func(parts []asm.Source) bool {
		return notices(t, parts, cases, 100_000)
	})
}

// TestEveryLineOfTheAuthorizerMatters does the same with the authorizer: one line in some in each
// run, and all with -pvms. The cases of its arithmetic are those of TestField.
func TestEveryLineOfTheAuthorizerMatters(t *testing.T) {
	cases, c := authorizerScenarios(t), newCodec(t, codec.V072)
	tooLarge := authorizing(t, c, signedOfSize(t, c, MaxSigned+1))
	cases = append(cases, sharedCase{invocation: tooLarge, Want: outcome{Status: "panic"}})
	step := 40
	if *pvms > 0 {
		step = 1
	}
	own := len(authorizerProgram.parts) - 1 // the last one belongs to the service, too
	forEachLine(t, authorizerProgram.parts[:own], step, func(parts []asm.Source) bool {
		parts = append(slices.Clone(parts), authorizerProgram.parts[own])
		if parts[2].Text != fieldSource && fieldNotices(t, parts[2]) {
			return true
		}
		return notices(t, parts, cases, authorizerGas)
	})
}

// forEachLine leaves out every step-th line, and requires that notice reports it.
func forEachLine(t *testing.T, parts []asm.Source, step int, notice func(parts []asm.Source) bool) {
	t.Helper()
	number := 0
	for s := range parts {
		lines := strings.SplitAfter(parts[s].Text, "\n")
		for i, line := range lines {
			if !strings.HasPrefix(line, "    ") || strings.HasPrefix(strings.TrimSpace(line), ".") {
				continue // no instruction
			}
			if number++; number%step != 0 {
				continue
			}
			without := slices.Clone(parts)
			without[s].Text = strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "")
			safety := strings.Contains(line, "; safety")
			assert.Equal(t, safety, !notice(without), "%s:%d: %s", parts[s].Name, i+1, line)
		}
	}
}

func assemble(t *testing.T, parts ...asm.Source) *pvm.Program {
	t.Helper()
	program, err := asm.Assemble(hostCalls[codec.V072], parts...)
	require.NoError(t, err)
	p, err := pvm.Load(program)
	require.NoError(t, err)
	return p
}

// notices reports whether a case has another outcome than it must have.
func notices(t *testing.T, parts []asm.Source, cases []sharedCase, gas int64) bool {
	t.Helper()
	p := assemble(t, parts...)
	for _, c := range cases {
		c.Gas = gas
		got := c.run(p, codec.V072)
		got.Left, c.Want.Left = 0, 0
		if !reflect.DeepEqual(got, c.Want) {
			return true
		}
	}
	return false
}

// fieldNotices reports whether a routine of the arithmetic has a wrong result for one of the edges.
func fieldNotices(t *testing.T, field asm.Source) bool {
	t.Helper()
	for _, r := range fieldRoutines {
		p := routine(t, r.call, field)
		for _, x := range edges {
			for _, y := range edges {
				got, ok := r.run(p, x, y)
				if !ok || got.Cmp(r.expect(r.rule(x, y))) != 0 {
					return true
				}
			}
		}
	}
	return false
}
