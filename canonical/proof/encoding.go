package proof

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// MarshalText implements encoding.TextMarshaler.
func (n StateNode) MarshalText() ([]byte, error) { return hexutil.Bytes(n[:]).MarshalText() }

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *StateNode) UnmarshalText(text []byte) error {
	return hexutil.UnmarshalFixedText("StateNode", text, n[:])
}

// MarshalText implements encoding.TextMarshaler.
func (k ValidatorKey) MarshalText() ([]byte, error) { return hexutil.Bytes(k[:]).MarshalText() }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *ValidatorKey) UnmarshalText(text []byte) error {
	return hexutil.UnmarshalFixedText("ValidatorKey", text, k[:])
}

// MarshalText implements encoding.TextMarshaler.
func (k BLSKey) MarshalText() ([]byte, error) { return hexutil.Bytes(k[:]).MarshalText() }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *BLSKey) UnmarshalText(text []byte) error {
	return hexutil.UnmarshalFixedText("BLSKey", text, k[:])
}

// decodeStrictly reads one JSON value into v. encoding/json alone is lenient: it takes names in any case, null for anything, and a name
// twice. Here what was read must be what v is written as, apart from white space and the order of names.
func decodeStrictly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the document")
	}
	again, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var have, want any
	if err := json.Unmarshal(data, &have); err != nil {
		return err
	}
	if err := json.Unmarshal(again, &want); err != nil {
		return err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return err
	}
	if !reflect.DeepEqual(have, want) || compact.Len() != len(again) { // what is there twice makes it longer
		return errors.New("a name is missing, twice there or in another case, or a value is not written as it should be")
	}
	return nil
}
