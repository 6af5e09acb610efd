package asm

import (
	"fmt"
	"strconv"
	"strings"
)

// statement is a line of a source: a label, an operator and its operands, or
// some of these. For a constant the operator is "=".
type statement struct {
	place    string // name of the source and number of the line
	text     string
	label    string
	operator string
	operands []string
}

// parse returns the statements of a source.
func parse(s Source) (out []statement, err error) {
	number := 0
	for line := range strings.Lines(s.Text) {
		number++
		text, _, _ := strings.Cut(line, ";")
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		st := statement{place: fmt.Sprintf("%s:%d", s.Name, number), text: text}
		rest := text
		if name, value, constant := strings.Cut(text, "="); constant {
			st.label, st.operator, st.operands = strings.TrimSpace(name), "=", []string{value}
			rest = ""
		} else if label, after, labelled := strings.Cut(text, ":"); labelled {
			st.label, rest = label, strings.TrimSpace(after)
		}
		if strings.ContainsAny(st.label, " \t\"") || st.operator == "=" && st.label == "" {
			return nil, fmt.Errorf("%w: %s: %q is not a name", ErrSource, st.place, st.label)
		}
		if operator, operands, _ := strings.Cut(rest, " "); rest != "" {
			st.operator, st.operands = operator, fields(operands)
		}
		if strings.HasPrefix(st.operator, ".") && len(st.operands) == 0 && st.operator != ".ro" && st.operator != ".rw" && st.operator != codeSection {
			return nil, fmt.Errorf("%w: %s: %s without a value", ErrSource, st.place, st.operator)
		}
		out = append(out, st)
	}
	return out, nil
}

// fields splits operands at their commas.
func fields(text string) (out []string) {
	for field := range strings.SplitSeq(text, ",") {
		if field = strings.TrimSpace(field); field != "" {
			out = append(out, field)
		}
	}
	return out
}

// spaced puts spaces between the terms of a sum.
var spaced = strings.NewReplacer(" ", "", "+", " +", "-", " -")

// value computes a sum of numbers and symbols. Numbers up to 2^64-1 wrap.
func (a *assembler) value(text string) (sum int64, err error) {
	terms := strings.Fields(spaced.Replace(text))
	if len(terms) == 0 {
		return 0, fmt.Errorf("%w: a value is missing", errOperands)
	}
	for _, term := range terms {
		name := strings.TrimLeft(term, "+-")
		value, known := a.symbols[name]
		if !known {
			n, err := strconv.ParseUint(name, 0, 64)
			if err != nil {
				return 0, fmt.Errorf("%w: no symbol %q", errOperands, name)
			}
			value = int64(n)
		}
		if strings.HasPrefix(term, "-") {
			value = -value
		}
		sum += value
	}
	return sum, nil
}
