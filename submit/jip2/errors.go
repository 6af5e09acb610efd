package jip2

import (
	"encoding/json"
	"fmt"
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

// Block returns the block that the node says is not available, with CodeBlockUnavailable; otherwise false.
func (e *Error) Block() (Hash, bool) {
	var h Hash
	var text string
	if e.Code != CodeBlockUnavailable || json.Unmarshal(e.Data, &text) != nil || h.UnmarshalText([]byte(text)) != nil {
		return Hash{}, false
	}
	return h, true
}
