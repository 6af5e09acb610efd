// Package fields checks the fields of a configuration. It reports all fields that are out of range
// at once, so that a host corrects them in one go.
package fields

import (
	"cmp"
	"fmt"
	"strings"
)

// Errors are the fields that are out of range, each with its value and the range. The zero value is
// ready to use.
type Errors []error

// Want adds a field unless it is ok. want describes the range.
func (e *Errors) Want(ok bool, field string, have any, want string) {
	if !ok {
		*e = append(*e, fmt.Errorf("%s is %+v, want %s", field, have, want))
	}
}

// Positive adds a field unless it is above 0.
func Positive[T cmp.Ordered](e *Errors, field string, have T) {
	var zero T
	e.Want(have > zero, field, have, "positive")
}

// Range adds a field unless it is in a range. NaN is in none.
func Range[T cmp.Ordered](e *Errors, field string, have, least, most T) {
	e.Want(have >= least && have <= most, field, have, fmt.Sprintf("%v to %v", least, most))
}

// Add adds an error, nil for none.
func (e *Errors) Add(err error) {
	if err != nil {
		*e = append(*e, err)
	}
}

// AddPart adds the error of a field that is a configuration itself, nil for none.
func (e *Errors) AddPart(field string, err error) {
	if err != nil {
		*e = append(*e, fmt.Errorf("%s: %w", field, err))
	}
}

// Wrap returns nil if there are no errors, and otherwise one error that wraps sentinel and all of
// them.
func (e Errors) Wrap(sentinel error) error {
	if len(e) == 0 {
		return nil
	}
	all := []any{sentinel}
	for _, err := range e {
		all = append(all, err)
	}
	return fmt.Errorf("%w: %w"+strings.Repeat("; %w", len(e)-1), all...)
}
