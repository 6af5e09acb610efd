package jip2

import (
	"encoding/json"
	"errors"
	"fmt"
)

var (
	// ErrMalformed: JSON that JIP-2 does not allow.
	ErrMalformed = errors.New("jip2: malformed")
	// ErrUnknownVersion: parameters of a version that is not V1.
	ErrUnknownVersion = errors.New("jip2: unknown version")
	// ErrInvalidConfig is wrapped by every error of a Validate method of this package.
	ErrInvalidConfig = errors.New("jip2: invalid config")
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("jip2: client is closed")
	// ErrDisconnected: the connection was lost before the answer came. Whether the node did what it was asked is not known.
	ErrDisconnected = errors.New("jip2: connection lost")
	// ErrUnsupported: the node does not have a method that is needed; the text names it.
	ErrUnsupported = errors.New("jip2: not supported by the node")
	// ErrTooLarge: a request is longer than Config.MaxMessage.
	ErrTooLarge = errors.New("jip2: message too large")
	// ErrHistoryLost: the chain goes on from a block that the feed never saw and cannot fetch any more, or finality contradicts itself.
	ErrHistoryLost = errors.New("jip2: history lost")
)

// Error codes of JIP-2 and, below -32000, of JSON-RPC 2.0.
const (
	CodeOther              = 0
	CodeBlockUnavailable   = 1 // the data is the block's hash
	CodeReportUnavailable  = 2
	CodeSegmentUnavailable = 3
	CodeMethodNotFound     = -32601
	CodeInvalidParams      = -32602
)

// Error is what a node answers instead of a result: an error object of JSON-RPC 2.0. Use errors.As to look into it.
type Error struct {
	// Code is one of the Code constants, or JSON-RPC's own below -32000.
	Code int `json:"code"`
	// Message is for people; some nodes send none.
	Message string `json:"message"`
	// Data depends on Code; nil where there is none.
	Data json.RawMessage `json:"data,omitempty"`
}

// Error returns code and message in a line.
func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("jip2: node answered error %d without a message", e.Code)
	}
	return fmt.Sprintf("jip2: node answered error %d: %s", e.Code, e.Message)
}

// errorOf returns the error in the place where JSON-RPC has one, or nil if there
// is none. It accepts the object of JSON-RPC, the string of JIP-2, and any other
// JSON, which becomes the message.
func errorOf(raw json.RawMessage) *Error {
	if !present(raw) {
		return nil
	}
	object := new(Error)
	if json.Unmarshal(raw, object) == nil {
		return object
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = excerpt(raw)
	}
	return &Error{Code: CodeOther, Message: text}
}

// present reports whether a field of a message has a value other than null.
func present(raw json.RawMessage) bool { return len(raw) != 0 && string(raw) != "null" }

// excerpt returns the beginning of JSON that a node sent, for errors and logs.
func excerpt(raw json.RawMessage) string { return fmt.Sprintf("%.200s", raw) }

// Block returns the block that the node says is not available, with CodeBlockUnavailable; otherwise false.
func (e *Error) Block() (Hash, bool) {
	var h Hash
	var text string
	if e.Code != CodeBlockUnavailable || json.Unmarshal(e.Data, &text) != nil || h.UnmarshalText([]byte(text)) != nil {
		return Hash{}, false
	}
	return h, true
}
