package account

import "encoding/json"

// In JSON the enumerations of this package are names, so that readers need no
// table of numbers. Earlier versions wrote numbers, which are still accepted. A
// name that this version does not know gives an error.

// MarshalJSON returns the name.
func (k EventKind) MarshalJSON() ([]byte, error) { return json.Marshal(k.String()) }

// UnmarshalJSON accepts a name or a number.
func (k *EventKind) UnmarshalJSON(raw []byte) error {
	return unmarshalName(raw, "EventKind", eventNames[:], (*uint8)(k))
}

// MarshalJSON returns the name.
func (k Kind) MarshalJSON() ([]byte, error) { return json.Marshal(k.String()) }

// UnmarshalJSON accepts a name or a number.
func (k *Kind) UnmarshalJSON(raw []byte) error {
	return unmarshalName(raw, "Kind", kindNames[:], (*uint8)(k))
}

// MarshalJSON returns the name.
func (s State) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// UnmarshalJSON accepts a name or a number.
func (s *State) UnmarshalJSON(raw []byte) error {
	return unmarshalName(raw, "State", stateNames[:], (*uint8)(s))
}

// MarshalJSON returns the name.
func (r SendResult) MarshalJSON() ([]byte, error) { return json.Marshal(r.String()) }

// UnmarshalJSON accepts a name or a number.
func (r *SendResult) UnmarshalJSON(raw []byte) error {
	return unmarshalName(raw, "SendResult", resultNames[:], (*uint8)(r))
}
