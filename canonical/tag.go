package canonical

import (
	"fmt"
	"strconv"
)

// Tag names a block: one of the named tags, or a number.
type Tag struct {
	name   tagName
	number uint64
}

type tagName uint8

const (
	byNumber tagName = iota
	earliest
	pending
	latest
	safe
	finalized
)

// The named tags of Ethereum's JSON-RPC.
var (
	Earliest  = Tag{name: earliest}
	Pending   = Tag{name: pending}
	Latest    = Tag{name: latest}
	Safe      = Tag{name: safe}
	Finalized = Tag{name: finalized}
)

// Number returns the tag of the block with the number n.
func Number(n uint64) Tag { return Tag{number: n} }

// ParseTag reads "earliest", "pending", "latest", "safe", "finalized", or a
// number in hexadecimal with 0x and without leading zeros, as Ethereum's
// JSON-RPC requires. The error wraps ErrInvalidTag.
func ParseTag(text string) (Tag, error) {
	for _, t := range []Tag{Earliest, Pending, Latest, Safe, Finalized} {
		if text == t.String() {
			return t, nil
		}
	}
	if len(text) > 2 && text[:2] == "0x" {
		if n, err := strconv.ParseUint(text[2:], 16, 64); err == nil && (text[2] != '0' || text == "0x0") {
			return Number(n), nil
		}
	}
	return Tag{}, fmt.Errorf("%w: %.40q, want earliest, pending, latest, safe, finalized or a number such as 0x1b", ErrInvalidTag, text)
}

// String returns the text that [ParseTag] reads, in lower case.
func (t Tag) String() string {
	if t.name == byNumber {
		return "0x" + strconv.FormatUint(t.number, 16)
	}
	return [...]string{earliest: "earliest", pending: "pending", latest: "latest", safe: "safe", finalized: "finalized"}[t.name]
}

// Resolve returns the block that a tag names. A number must be at most that of
// pending. The error wraps ErrUnknownBlock if the number is greater, or if the
// block is no longer retained.
func (t *Tracker) Resolve(tag Tag) (Head, error) {
	heads := t.Heads()
	switch tag.name {
	case earliest:
		return heads.Earliest, nil
	case pending:
		return heads.Pending, nil
	case latest:
		return heads.Latest, nil
	case safe:
		return heads.Safe, nil
	case finalized:
		return heads.Finalized, nil
	}
	if tag.number == heads.Earliest.Number {
		return heads.Earliest, nil
	}
	e, err := t.tracked(tag.number)
	if err != nil {
		return Head{}, err
	}
	return e.head, nil
}
