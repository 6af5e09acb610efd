package submit

import (
	"errors"
	"fmt"
)

// Class tells a builder what to do after it has failed to send a package. A network
// attaches a class to the error with [WithClass]. An error without a class counts
// as [Retryable], which is always safe. No class proves that the package did not
// arrive: in every case it may still be reported.
type Class uint8

const (
	// Retryable means that the guarantor could not be reached, for example because of a broken
	// connection, a time-out, or a node that is behind. The builder sends the same bytes again.
	Retryable Class = iota
	// OtherGuarantor means that this guarantor refused the package, but another
	// guarantor may accept it. The builder sends the same bytes again with the
	// next attempt number, which leads to another guarantor.
	OtherGuarantor
	// Rebuild means that no guarantor will accept these bytes. The builder does not
	// send them again. When it is certain that this version of the package can no
	// longer be reported, it builds another version.
	Rebuild
	// Fatal means that retries cannot help until an operator acts, for example because the core
	// does not exist or the node does not support the method. The builder stops building and
	// sending: see builder.Health and builder.Builder.Resume.
	Fatal
)

// String returns the name of the class, such as "other guarantor".
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

// classified is an error to which WithClass has attached a class.
type classified struct {
	error
	class Class
}

func (e *classified) Unwrap() error { return e.error }

// WithClass attaches a class to err. errors.Is and errors.As still find err. If
// err is nil, WithClass returns nil.
func WithClass(class Class, err error) error {
	if err == nil {
		return nil
	}
	return &classified{error: err, class: class}
}

// ClassOf returns the class that WithClass has attached to err, or [Retryable] if
// there is none. If several classes are attached, the outermost one counts.
func ClassOf(err error) Class {
	var c *classified
	if errors.As(err, &c) {
		return c.class
	}
	return Retryable
}
