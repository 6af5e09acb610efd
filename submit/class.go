package submit

import (
	"errors"
	"fmt"
)

// Class says what the failure of a submission calls for. A [Submitter] marks its errors by
// [WithClass]; an error without a mark is [Retryable], which is always safe. No class is evidence
// that the package did not arrive: whatever the class, it counts as out.
type Class uint8

const (
	// Retryable: the way to the network failed, for example a connection, a time-out, or a node
	// that is behind. The runner sends the same bytes again.
	Retryable Class = iota
	// OtherGuarantor: this guarantor refuses the package; another may take it. The runner sends the
	// same bytes again, with the next Attempt.
	OtherGuarantor
	// Rebuild: no guarantor will take these bytes. The runner does not send them again, and asks
	// for another version once this one is dead.
	Rebuild
	// Fatal: the host asks for the impossible, for example a core that does not exist, or a method
	// that the node does not have. The runner builds and sends nothing more until an operator has
	// looked: see Health.Paused and [Runner.Resume].
	Fatal
)

// String returns the class in words.
func (c Class) String() string {
	switch c {
	case Retryable:
		return "retryable"
	case OtherGuarantor:
		return "other guarantor"
	case Rebuild:
		return "rebuild"
	case Fatal:
		return "fatal"
	}
	return fmt.Sprintf("submit.Class(%d)", uint8(c))
}

// classified is an error with its class.
type classified struct {
	error
	class Class
}

func (e *classified) Unwrap() error { return e.error }

// WithClass marks an error, which errors.Is and errors.As still find. A nil error stays nil.
func WithClass(class Class, err error) error {
	if err == nil {
		return nil
	}
	return &classified{error: err, class: class}
}

// ClassOf returns the class of an error: the outermost mark, or Retryable.
func ClassOf(err error) Class {
	var c *classified
	if errors.As(err, &c) {
		return c.class
	}
	return Retryable
}
