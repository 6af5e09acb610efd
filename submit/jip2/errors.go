package jip2

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

var (
	// ErrMalformed is returned if a message of the node does not follow JIP-2.
	ErrMalformed = errors.New("jip2: malformed")
	// ErrUnknownVersion is returned if the node's parameters have no version
	// V1.
	ErrUnknownVersion = errors.New("jip2: unknown version")
	// ErrInvalidConfig is wrapped by every error of a Validate method of this package.
	ErrInvalidConfig = errors.New("jip2: invalid config")
	// ErrClosed is returned by all calls after Close.
	ErrClosed = errors.New("jip2: client is closed")
	// ErrDisconnected is returned if the connection was lost before the answer
	// arrived, or if there was no connection before the deadline. In the first
	// case it is unknown whether the node has carried out the call.
	ErrDisconnected = errors.New("jip2: connection lost")
	// ErrUnsupported is returned if the node lacks a required method. The error
	// names the method.
	ErrUnsupported = errors.New("jip2: not supported by the node")
	// ErrTooLarge is returned if a request is larger than Config.MaxRequest.
	ErrTooLarge = errors.New("jip2: message too large")
	// ErrHistoryLost is returned if there are more than FeedConfig.MaxGap blocks
	// between the feed's chain and the node's. It is also returned if one of these
	// lasts for longer than FeedConfig.LostAfter slots: the node does not have the
	// blocks in between, because it has pruned them or follows another chain; or it
	// takes back the finality of a block, because its final block is on a chain
	// without it, or is older and its best block is on such a chain. The error names
	// the block of the node and the finalized one.
	ErrHistoryLost = errors.New("jip2: history lost")
)

// Error codes of JIP-2, and of JSON-RPC 2.0 (negative codes). Later revisions of
// JIP-2 may have more.
const (
	// CodeOther is any other error. The message explains it.
	CodeOther = 0
	// CodeBlockUnavailable means that the node does not have a block or its
	// state. Error.Data is the hash of the block: see [Error.Block].
	CodeBlockUnavailable = 1
	// CodeReportUnavailable means that the node does not have a work report.
	CodeReportUnavailable = 2
	// CodeSegmentUnavailable means that the node does not have a data segment.
	CodeSegmentUnavailable = 3
	// CodeProofUnavailable means that the node cannot make a proof about a block,
	// or has forgotten the block's outputs.
	CodeProofUnavailable = 4
	// CodeLeafNotFound means that the service yielded nothing in the block, or that
	// the output log has no such leaf.
	CodeLeafNotFound = 5
	// CodeCommitmentsUnavailable means that the node has no BEEFY signatures for a
	// final block.
	CodeCommitmentsUnavailable = 6
	// CodeNotFinal means that the block is not final.
	CodeNotFinal = 7
	// CodeInvalidRequest means that the request is not one of JSON-RPC 2.0.
	CodeInvalidRequest = -32600
	// CodeMethodNotFound means that the node does not have the method.
	CodeMethodNotFound = -32601
	// CodeInvalidParams means that the parameters are invalid.
	CodeInvalidParams = -32602
)

// Error is an error that the node answered instead of a result: the error
// object of JSON-RPC 2.0.
type Error struct {
	// Code is one of the Code constants, another code of JSON-RPC 2.0, from -32768
	// to -32000, or a code of a later revision of JIP-2.
	Code int `json:"code"`
	// Message is a text for people. It may be empty.
	Message string `json:"message"`
	// Data holds details that depend on Code. It may be nil.
	Data json.RawMessage `json:"data,omitempty"`
}

// Error returns the code and the message in one line.
func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("jip2: node answered error %d without a message", e.Code)
	}
	return fmt.Sprintf("jip2: node answered error %d: %s", e.Code, e.Message)
}

// errorOf decodes the error field of a message. It returns nil if the field is
// missing or null. It accepts the object of JSON-RPC, the string of JIP-2, and
// any other JSON, which becomes the message. The message is cut at 1,024 bytes, and
// data of more than 64 KiB is left out, because hosts keep errors and log them.
func errorOf(raw part) *Error {
	if !present(raw) {
		return nil
	}
	e := new(Error)
	if json.Unmarshal(raw, e) != nil {
		*e = Error{Code: CodeOther}
		if json.Unmarshal(raw, &e.Message) != nil {
			e.Message = excerpt(raw)
		}
	}
	e.Message = cut(e.Message)
	if len(e.Data) > maxShape {
		e.Data = nil
	}
	return e
}

// malformed returns the error of a named part of a message that cannot be decoded, because of
// err. It wraps ErrMalformed. A text of err that is longer than 1,024 bytes is cut: the
// standard library quotes a number that is out of range, whatever its length.
func malformed(name string, err error) error {
	return fmt.Errorf("%s: %w: %w", name, ErrMalformed, short(err))
}

// short returns an error, or one with the beginning of its text if that is longer than
// 1,024 bytes.
func short(err error) error {
	if text := err.Error(); cut(text) != text {
		return errors.New(cut(text))
	}
	return err
}

// cut returns at most the first 1,024 bytes of a text, whole characters of UTF-8. They
// share no memory with it, so that the rest can be freed.
func cut(text string) string {
	const most = 1024
	if len(text) <= most {
		return strings.Clone(text)
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.Clone(text[:end])
}

// present reports whether a field of a message has a value other than null.
func present(raw part) bool { return len(raw) != 0 && string(raw) != "null" }

// excerpt returns the first 200 characters of a node's JSON for errors and logs.
func excerpt(raw part) string { return fmt.Sprintf("%.200s", raw) }

// Block returns the block that the node reports as unavailable. It returns
// false if the code is not CodeBlockUnavailable or the data is not a hash.
func (e *Error) Block() (Hash, bool) {
	var h Hash
	var text string
	if e.Code != CodeBlockUnavailable || json.Unmarshal(e.Data, &text) != nil || h.UnmarshalText([]byte(text)) != nil {
		return Hash{}, false
	}
	return h, true
}
