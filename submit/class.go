package submit

import (
	"errors"
	"fmt"
)

// Class says what the failure of a submission calls for. A [Submitter] marks its errors by [WithClass]; what carries no mark is
// [Retryable], which is always safe. No class is evidence that the package did not arrive: whatever the class, it counts as out.
type Class uint8

const (
	// Retryable: the way to the network failed (a connection, a time-out, a node that is behind). The same bytes may be sent again.
	Retryable Class = iota
	// OtherGuarantor: this one refuses the package; another may take it.
	OtherGuarantor
	// Rebuild: nobody will take these bytes. Another version is built once this one is dead.
	Rebuild
	// Fatal: the host asks for what cannot be: a core that does not exist, a method that the node does not have. Retries cannot help; an
	// operator must.
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

// WithClass marks an error, which stays visible for errors.Is and errors.As. A nil error stays nil.
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
