package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// params are the positional parameters of a request, in JSON.
type params []json.RawMessage

// Errors of a parameter of another JSON type than the expected one. zcashd has the code -1
// for them, which is that of all errors without a code.
var (
	errNotText    = errors.New("JSON value is not a string as expected")
	errNotInteger = errors.New("JSON value is not an integer as expected")
	errNotFlag    = errors.New("JSON value is not a boolean as expected")
	errRange      = errors.New("JSON integer out of range")
)

// kind returns the type of a JSON value in zcashd's words. A value that is absent is null.
func kind(raw json.RawMessage) string {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return "null"
	}
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "bool"
	case 'n':
		return "null"
	}
	return "number"
}

// text returns a parameter that is a string.
func (p params) text(i int) (s string, err error) {
	if kind(p[i]) != "string" {
		return "", errNotText
	}
	return s, json.Unmarshal(p[i], &s)
}

// integer returns a parameter that is an integer of 32 bits.
func (p params) integer(i int) (int64, error) {
	if kind(p[i]) != "number" {
		return 0, errNotInteger
	}
	v, err := strconv.ParseInt(string(p[i]), 10, 32)
	if err != nil {
		return 0, errRange
	}
	return v, nil
}

// flag returns a parameter that is true or false.
func (p params) flag(i int) (v bool, err error) {
	if kind(p[i]) != "bool" {
		return false, errNotFlag
	}
	return v, json.Unmarshal(p[i], &v)
}

// expect returns an error with the code -3 if parameters have other types than these, as
// the calls of zcashd do that check all types first.
func (p params) expect(types ...string) error {
	for i, want := range types[:min(len(types), len(p))] {
		if got := kind(p[i]); got != want {
			return faultf(codeType, "Expected type %s, got %s", want, got)
		}
	}
	return nil
}

// usage returns the line that explains a call: the names of its parameters, those that may
// be omitted in parentheses.
func (m *method) usage(name string) string {
	words := append([]string{name}, m.required...)
	if len(m.optional) > 0 {
		words = append(words, "( "+strings.Join(m.optional, " ")+" )")
	}
	return strings.Join(words, " ")
}

// checkNumber returns an error, which ends with the usage, if a call has too few or too many
// parameters.
func (m *method) checkNumber(name string, have int) error {
	least, most := len(m.required), len(m.required)+len(m.optional)
	problem := "Not enough"
	switch {
	case have > most:
		problem = "Too many"
	case have >= least:
		return nil
	}
	need := "exactly " + strconv.Itoa(least)
	if most > least {
		need = "at least " + strconv.Itoa(least) + " and at most " + strconv.Itoa(most)
	}
	return faultf(codeParameters, "%s parameters for method `%s`. Needed %s, but received %d\n\n%s",
		problem, name, need, have, m.usage(name))
}
