package jip2

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

var (
	// ErrMalformed is returned if a message of the node does not follow JIP-2,
	// for example because a required field is missing.
	ErrMalformed = errors.New("jip2: malformed")
	// ErrUnknownVersion is returned if the parameters that the node sends are
	// in a version that this package does not know. It knows only V1.
	ErrUnknownVersion = errors.New("jip2: unknown version")
	// ErrInvalidConfig is wrapped by every error of a Validate method of this package.
	ErrInvalidConfig = errors.New("jip2: invalid config")
	// ErrClosed is returned by all calls after Close.
	ErrClosed = errors.New("jip2: client is closed")
	// ErrDisconnected is returned in two cases: the connection was lost before
	// the node's answer arrived, or there was no connection before the deadline
	// of the call. In the first case, it is unknown whether the node has
	// carried out the call.
	ErrDisconnected = errors.New("jip2: connection lost")
	// ErrUnsupported is returned if the node lacks a required method, which the
	// error names.
	ErrUnsupported = errors.New("jip2: not supported by the node")
	// ErrTooLarge is returned if a request is larger than Config.MaxRequest.
	ErrTooLarge = errors.New("jip2: message too large")
	// ErrHistoryLost is returned if the feed cannot continue from the blocks
	// that it has delivered. More than FeedConfig.MaxGap blocks then lie
	// between the delivered blocks and the node's head, or one of these
	// contradictions has lasted longer than FeedConfig.LostAfter slots:
	//
	//   - The node does not have the blocks in between, because it has pruned
	//     them or follows another chain.
	//   - The node's own final block is on a chain without the finalized block,
	//     or is older while its best block is on such a chain.
	//   - The node names another slot for a block than the slot with which the
	//     block was delivered.
	//
	// The error names the block of the node and the finalized or delivered
	// block. If the node agrees with the delivered blocks in between, Follow
	// continues, however often the node contradicts them: see
	// submit.FeedHealth.
	ErrHistoryLost = errors.New("jip2: history lost")
)

// These are the error codes that JIP-2 defines (0 and above), and those of
// JSON-RPC 2.0 (negative). Later revisions of JIP-2 may define more.
const (
	// CodeOther is any other error. The message explains it.
	CodeOther = 0
	// CodeBlockUnavailable means that the node does not have a block or its
	// state. Error.Data is then the hash of the block, which [Error.Block]
	// decodes.
	CodeBlockUnavailable = 1
	// CodeReportUnavailable means that the node does not have a work report.
	CodeReportUnavailable = 2
	// CodeSegmentUnavailable means that the node does not have a data segment.
	CodeSegmentUnavailable = 3
	// CodeProofUnavailable means that the node cannot make a proof about a block, or that it no
	// longer has the hashes that services yielded in the block.
	CodeProofUnavailable = 4
	// CodeLeafNotFound means that the caller requested a proof about something
	// that does not exist: the service yielded no hash in the block, or the
	// accumulation-output log has no leaf with the given index.
	CodeLeafNotFound = 5
	// CodeCommitmentsUnavailable means that the node has no validator signatures over the BEEFY
	// root of a final block.
	CodeCommitmentsUnavailable = 6
	// CodeNotFinal means that the block is not final.
	CodeNotFinal = 7
	// CodeInvalidRequest means that the node does not recognize the message as
	// a request of JSON-RPC 2.0.
	CodeInvalidRequest = -32600
	// CodeMethodNotFound means that the node does not have the method.
	CodeMethodNotFound = -32601
	// CodeInvalidParams means that the parameters are invalid.
	CodeInvalidParams = -32602
)

// Error is the error object of JSON-RPC 2.0 that a node sends instead of a
// result. Use errors.As to find it in the error of a call.
type Error struct {
	// Code is one of the Code constants of this package, another code of JSON-RPC 2.0 (-32768 to
	// -32000), or a code that a later revision of JIP-2 has added.
	Code int `json:"code"`
	// Message is a text for people. It may be empty.
	Message string `json:"message"`
	// Data holds details in JSON whose form depends on Code. It may be nil.
	Data json.RawMessage `json:"data,omitempty"`
}

// Error returns the code and the message in one line.
func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("jip2: node answered error %d without a message", e.Code)
	}
	return fmt.Sprintf("jip2: node answered error %d: %s", e.Code, e.Message)
}

// errorOf decodes the error field of a message, or returns nil without an error.
func errorOf(raw part) *Error {
	if !present(raw) {
		return nil
	}
	e := new(Error)
	// In JSON-RPC an error is an object, and in JIP-2 it is a string. Accept both. Anything
	// else becomes the text of the message.
	if json.Unmarshal(raw, e) != nil {
		*e = Error{Code: CodeOther}
		if json.Unmarshal(raw, &e.Message) != nil {
			e.Message = excerpt(raw)
		}
	}
	// Hosts keep errors and log them, so limit their size.
	e.Message = cut(e.Message)
	if len(e.Data) > maxShape {
		e.Data = nil
	}
	return e
}

// malformed wraps an error of decoding a part in ErrMalformed.
func malformed(name string, err error) error {
	// The standard library quotes a number that is out of range in full, so the
	// node could make the error as long as it likes.
	return fmt.Errorf("%s: %w: %w", name, ErrMalformed, short(err))
}

// short returns err, or a new error with the beginning of a long text.
func short(err error) error {
	if text := err.Error(); cut(text) != text {
		return errors.New(cut(text))
	}
	return err
}

// cut returns at most the first 1,024 bytes of a text.
func cut(text string) string {
	const most = 1024
	if len(text) <= most {
		// A copy shares no memory with text, so that a large text can be freed.
		return strings.Clone(text)
	}
	end := most
	// Do not cut a character of UTF-8 in two.
	for end > most-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.Clone(text[:end])
}

// present reports whether a field of a message has a value other than null.
func present(raw part) bool { return len(raw) != 0 && string(raw) != "null" }

// excerpt returns the first 200 characters of JSON for errors and logs.
func excerpt(raw part) string { return fmt.Sprintf("%.200s", raw) }

// Block returns the hash of the block that the node does not have. It returns
// false if the code is not CodeBlockUnavailable, or if Data is not a hash.
func (e *Error) Block() (Hash, bool) {
	var h Hash
	var text string
	if e.Code != CodeBlockUnavailable || json.Unmarshal(e.Data, &text) != nil || h.UnmarshalText([]byte(text)) != nil {
		return Hash{}, false
	}
	return h, true
}
