package account

import (
	"encoding/json"
	"fmt"
	"slices"
)

// In JSON, the enumerations of this package are written as names, so that readers
// need no table of numbers. Earlier versions wrote numbers, which are still
// accepted. Decoding a name that this version does not know returns an error.

// String returns the kind in lower case, for example "mined".
func (k EventKind) String() string { return nameOf("EventKind", eventNames[:], uint8(k)) }

// MarshalJSON encodes the kind as its name.
func (k EventKind) MarshalJSON() ([]byte, error) { return json.Marshal(k.String()) }

// UnmarshalJSON accepts a name or a number.
func (k *EventKind) UnmarshalJSON(raw []byte) error {
	return unmarshalName(raw, "EventKind", eventNames[:], (*uint8)(k))
}

// String returns the kind's name, for example "dynamicFee".
func (k Kind) String() string { return nameOf("Kind", kindNames[:], uint8(k)) }

// MarshalJSON encodes the kind as its name.
func (k Kind) MarshalJSON() ([]byte, error) { return json.Marshal(k.String()) }

// UnmarshalJSON accepts a name or a number.
func (k *Kind) UnmarshalJSON(raw []byte) error {
	return unmarshalName(raw, "Kind", kindNames[:], (*uint8)(k))
}

// String returns the state in lower case, for example "pending".
func (s State) String() string { return nameOf("State", stateNames[:], uint8(s)) }

// MarshalJSON encodes the state as its name.
func (s State) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// UnmarshalJSON accepts a name or a number.
func (s *State) UnmarshalJSON(raw []byte) error {
	return unmarshalName(raw, "State", stateNames[:], (*uint8)(s))
}

// String returns the result in lower case, for example "accepted".
func (r SendResult) String() string { return nameOf("SendResult", resultNames[:], uint8(r)) }

// MarshalJSON encodes the result as its name.
func (r SendResult) MarshalJSON() ([]byte, error) { return json.Marshal(r.String()) }

// UnmarshalJSON accepts a name or a number.
func (r *SendResult) UnmarshalJSON(raw []byte) error {
	return unmarshalName(raw, "SendResult", resultNames[:], (*uint8)(r))
}

// nameOf returns the name of value, or its type and number, for example
// "State(12)".
func nameOf(enumeration string, names []string, value uint8) string {
	if int(value) < len(names) && names[value] != "" {
		return names[value]
	}
	return fmt.Sprintf("%s(%d)", enumeration, value)
}

// unmarshalName decodes a name that nameOf wrote.
func unmarshalName(raw []byte, enumeration string, names []string, value *uint8) error {
	// As usual in JSON, null changes nothing.
	if string(raw) == "null" {
		return nil
	}
	var name string
	if json.Unmarshal(raw, &name) != nil {
		// Earlier versions wrote numbers.
		return json.Unmarshal(raw, value)
	}
	if _, err := fmt.Sscanf(name, enumeration+"(%d)", value); err == nil {
		return nil
	}
	at := slices.Index(names, name)
	if at < 0 || name == "" {
		return fmt.Errorf("eoa: %s %q is unknown", enumeration, name)
	}
	*value = uint8(at)
	return nil
}
